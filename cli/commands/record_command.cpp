// `tidemark record`: a library and a hook for Python are put into the processes of the user's
// program, each of which writes a file; afterwards those become one recording per process.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/embedded_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/quoted.h"
#include "cli/commands/child_process.h"
#include "cli/commands/commands.h"
#include "cli/commands/python_process.h"
#include "importers/run_append.h"
#include "importers/run_file.h"

namespace tidemark::cli {

std::string_view recorder_library();
std::span<const EmbeddedFile> embedded_hooks();

namespace {

namespace fs = std::filesystem;

constexpr const char* usual_output = "run.timeline";

/// What processes leave in the folder, by their number: PID.run of the library; PID.pickle,
/// PID.marks and PID.notes of the hook for Python.
struct Left {
  std::int64_t pid = 0;
  fs::path run;
  importers::RunAddition addition;
};

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

void put_hooks(const fs::path& folder) {
  write_file((folder / "libtidemark_recorder.so").string(), recorder_library());
  fs::create_directory(folder / "python");
  for (const EmbeddedFile& file : embedded_hooks())
    write_file((folder / "python" / file.name).string(), file.text);
}

// Another profiler that is loaded in the same way keeps its place: CUPTI serves one of them.
std::vector<std::string> variables_of(const fs::path& folder, std::vector<std::string>& notes) {
  const std::string library = (folder / "libtidemark_recorder.so").string();
  const std::string before =
      is_set("PYTHONPATH") ? ":" + std::string(std::getenv("PYTHONPATH")) : "";
  std::vector<std::string> variables = {"TIDEMARK_RUN_FOLDER=" + folder.string(),
                                        "PYTHONPATH=" + (folder / "python").string() + before};
  for (const char* variable : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) {
    if (!is_set(variable)) {
      variables.push_back(std::string(variable) + "=" + library);
    } else {
      notes.push_back(fmt::format("{} is set already, to {}: that profiler records, not Tidemark",
                                  variable, printable(std::getenv(variable), 200)));
    }
  }
  return variables;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  const std::string text = read_file(path.string(), FileKind::Recording);
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(printable(text.substr(begin, end - begin), 400));
  }
  return lines;
}

// By process, the first one first.
std::vector<Left> find_left(const fs::path& folder) {
  std::vector<Left> all;
  const auto of = [&](std::int64_t pid) -> Left& {
    const auto found = std::ranges::find(all, pid, &Left::pid);
    if (found != all.end()) return *found;
    return all.emplace_back(Left{pid, folder / fmt::format("{}.run", pid), {}});
  };
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string stem = entry.path().stem().string(), kind = entry.path().extension().string();
    std::int64_t pid = 0;
    if (std::from_chars(stem.data(), stem.data() + stem.size(), pid).ec != std::errc()) continue;
    Left& left = of(pid);
    if (kind == ".pickle") left.addition.snapshot_file = entry.path().string();
    if (kind == ".marks") left.addition.marks_file = entry.path().string();
    if (kind == ".notes") left.addition.notes = lines_of(entry.path());
  }
  std::ranges::sort(all, {}, &Left::pid);
  return all;
}

// "run.timeline", "run.2.timeline", …
std::string numbered(const std::string& output, std::size_t number) {
  if (number == 1) return output;
  const fs::path path(output);
  return (path.parent_path() /
          fmt::format("{}.{}{}", path.stem().string(), number, path.extension().string()))
      .string();
}

// PyTorch's history may be the part that no longer fits on the disk; then it stays a file by
// itself.
std::string join(Left& left, const std::string& output) {
  const std::string problem = importers::append_to_run(left.run.string(), left.addition);
  if (problem.empty()) return {};
  const std::string snapshot = left.addition.snapshot_file;
  if (snapshot.empty()) return fmt::format("{}: {}\n", printable(output, 200), problem);
  const std::string beside = output + ".pickle";
  fs::rename(snapshot, beside);
  return fmt::format("{}: {}; PyTorch's memory history is {} instead\n", printable(output, 200),
                     problem, printable(beside, 200));
}

std::string describe(const std::string& path) {
  const importers::RunFile run = importers::read_run_file(path);
  std::string text =
      fmt::format("{}: {} kernels, {} copies and fills, {} allocations{}\n", printable(path, 200),
                  run.kernels.size(), run.transfers.size(), run.memory.size(),
                  run.snapshot.empty() ? "" : ", PyTorch's memory history");
  for (const std::string& line : importers::defects(run)) text += "  note: " + line + "\n";
  return text;
}

// Processes that used no GPU leave nothing, unless all of them did not.
std::string collect(const fs::path& folder, const std::string& output,
                    std::vector<std::string> notes) {
  std::vector<Left> all = find_left(folder);
  std::string said;
  for (Left& left : all) said += join(left, output);
  std::erase_if(all, [&](const Left& left) {
    return &left != &all.front() && !importers::has_records(left.run.string());
  });
  if (all.size() > 1 && !importers::has_records(all.front().run.string())) all.erase(all.begin());
  if (all.empty()) {
    notes.emplace_back(
        "nothing started CUDA: no process of the program used a GPU, or no driver is installed");
    all.push_back(Left{0, folder / "0.run", {}});
  }
  if (const std::string problem =
          importers::append_to_run(all.front().run.string(), {.notes = std::move(notes)});
      !problem.empty())
    said += fmt::format("{}: {}\n", printable(output, 200), problem);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string path = numbered(output, i + 1);
    fs::rename(all[i].run, path);
    said += describe(path);
  }
  return said + fmt::format("See it: tidemark view {}\n", shell_quoted(output));
}

}  // namespace

Result run_record(const Options& options) {
  if (options.program.empty() || !options.subject.empty())
    throw UsageError(
        "record: need a program behind --, as in tidemark record -o run.timeline -- python "
        "train.py");
  const std::string output = options.output.value_or(usual_output);
  if (fs::exists(output) && !fs::is_regular_file(output))
    throw UsageError(fmt::format("--output: {} is no ordinary file, which a recording replaces",
                                 quoted(output)));
  require_writable(output);
  const fs::path parent = fs::absolute(output).parent_path();
  const TemporaryFolder folder(parent, fs::path(output).filename().string());
  put_hooks(folder.path());
  std::vector<std::string> notes;
  const auto variables = variables_of(folder.path(), notes);
  const Ending ending = run_program(options.program, variables);
  std::string said;
  try {
    said = collect(folder.path(), output, std::move(notes));
  } catch (const std::exception& error) {  // the program's own ending is what counts
    said = fmt::format("tidemark: {}\n", error.what());
  }
  return {"", said, static_cast<ExitCode>(ending.exit_code), ending.signal, true};
}

}  // namespace tidemark::cli
