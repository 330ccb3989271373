// `tidemark capture`: a step of the user's own PyTorch code, or of a model of transformers, run by
// their Python, as a trace.
#include <fmt/format.h>

#include <csignal>

#include "base/files.h"
#include "base/quoted.h"
#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/commands/python_process.h"
#include "cli/commands/scenario.h"
#include "simulator/cost/usual_device.h"
#include "simulator/kernel_choice.h"
#include "traces/trace_json.h"

namespace tidemark::cli {
namespace {

// By Ctrl-C or kill, of which a Python that ends in order says so as shells do.
bool is_stopped(const Ending& ending) {
  return ending.signal != 0 || ending.exit_code == 128 + SIGINT ||
         ending.exit_code == 128 + SIGTERM;
}

// Which device PyTorch is told of.
std::vector<std::string> device_arguments(const Options& options) {
  const Device device = find_device(options.device.value_or(std::string(usual_device)));
  const auto capability = capability_of(device);
  if (!capability)
    throw UsageError(fmt::format("{} is no GPU: a capture needs one whose kernels PyTorch chooses",
                                 printable(device.name)));
  return {"--sm",
          fmt::format("{}", *capability),
          "--multiprocessors",
          fmt::format("{}", static_cast<std::int64_t>(device.sm_count)),
          "--memory",
          fmt::format("{}", device.capacity.count),
          "--title=" + device.title};
}

// As they are written in files ("bf16" for bfloat16), but optimizers, which are PyTorch's here.
std::vector<std::string> step_arguments(const Options& options) {
  Options known = options;
  known.step.erase("--optimizer");
  const auto written = typed_step(step_of(known));
  std::vector<std::string> arguments;
  for (const auto& [name, typed] : options.step) {
    arguments.emplace_back(name);
    const auto found = written.find(name);
    if (name != "--padded") arguments.push_back(found == written.end() ? typed : found->second);
  }
  return arguments;
}

std::vector<std::string> arguments_of(const Options& options, const std::string& output) {
  std::vector<std::string> arguments = {"-m", "tidemark.capture", options.subject, "-o", output};
  for (std::string& argument : device_arguments(options)) arguments.push_back(std::move(argument));
  for (std::string& argument : step_arguments(options)) arguments.push_back(std::move(argument));
  if (options.beside_gpu) arguments.emplace_back("--beside-gpu");
  if (options.quiet) arguments.emplace_back("--quiet");
  if (!options.program.empty()) arguments.emplace_back("--");
  arguments.insert(arguments.end(), options.program.begin(), options.program.end());
  return arguments;
}

}  // namespace

Result run_capture(const Options& options) {
  if (options.subject.empty())
    throw UsageError(
        "capture: need SCRIPT.py:FUNCTION, as in tidemark capture train.py:make_step, or a "
        "config.json");
  require_ending(options, ".trace.json", "a trace file");
  const TemporaryFolder folder;
  unpack_package(folder.path());
  const std::string output = (folder.path() / "step.trace.json").string();
  const std::string python = find_python(options.python ? &*options.python : nullptr);
  const Ending ending = run_python(python, folder.path(), arguments_of(options, output));
  if (is_stopped(ending))
    return {"", "stopped: nothing was captured\n", static_cast<ExitCode>(ending.exit_code),
            ending.signal, true};
  if (ending.exit_code != 0) throw InputError("nothing was captured; the line above says why");
  Result result;
  const Trace trace = load_trace(output);
  result.text = write_trace(trace);
  if (options.output)
    result.notes = fmt::format("{}: {} ops, {} tensors\n", printable(*options.output, 200),
                               trace.ops.size(), trace.tensors.size());
  return result;
}

}  // namespace tidemark::cli
