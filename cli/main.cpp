// tidemark: what each way of saving memory in transformer training needs, saves and costs.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/freed_memory.h"
#include "cli/commands/child_process.h"
#include "cli/commands/command_line.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {
namespace {

void deliver(const Result& result, const Options& options) {
  if (options.output && !result.is_written) {
    write_file(*options.output, result.text);
  } else {
    write_standard_output(result.text);
  }
  if (!options.quiet) std::fputs(result.notes.c_str(), stderr);
}

ExitCode run(int argc, char** argv) {
  const CommandLine line = parse_command_line(argc, argv);
  if (!line.command) return write_standard_output(line.text), ExitCode::Ok;
  if (line.options.output && line.options.output->empty())
    throw UsageError("--output: the name is empty (leave the option out for standard output)");
  if (line.options.output) require_writable(*line.options.output);
  const Result result = line.command->run(line.options);
  deliver(result, line.options);
  end_likewise({.exit_code = 0, .signal = result.signal});
  return result.exit_code;
}

// Names in it may come from anywhere: no control character reaches the terminal.
ExitCode say(std::string problem, ExitCode code) {
  std::ranges::replace_if(
      problem, [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7F; }, '?');
  std::fprintf(stderr, "tidemark: %s\n", problem.c_str());
  return code;
}

constexpr const char* out_of_memory = "out of memory (use a smaller model or trace)";

ExitCode run_guarded(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const UsageError& error) {
    return say(error.what(), ExitCode::Usage);
  } catch (const NoDevice& error) {
    return say(error.what(), ExitCode::NotHere);
  } catch (const InputError& error) {
    return say(error.what(), ExitCode::Error);
  } catch (const std::bad_alloc&) {
    return say(out_of_memory, ExitCode::Error);
  } catch (const std::length_error&) {
    return say(out_of_memory, ExitCode::Error);
  } catch (const std::exception& error) {
    return say(error.what(), ExitCode::Error);
  }
}

}  // namespace
}  // namespace tidemark::cli

int main(int argc, char** argv) {
  tidemark::keep_freed_memory();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that left is an error of writing, told in one line
  return static_cast<int>(tidemark::cli::run_guarded(argc, argv));
}
