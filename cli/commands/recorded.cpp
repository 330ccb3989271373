// What a file is, is said by its content; what it becomes is a recording, whatever it was.
#include "cli/commands/recorded.h"

#include <fmt/format.h>

#include <filesystem>

#include "analysis/export/chrome_trace.h"
#include "analysis/export/pictures.h"
#include "analysis/export/svg.h"
#include "base/error.h"
#include "base/quoted.h"
#include "cli/commands/formats.h"
#include "cli/commands/scenario.h"
#include "cli/reports/print_run.h"
#include "cli/reports/print_snapshot.h"
#include "importers/nsys.h"
#include "importers/run_timeline.h"
#include "importers/stack_category.h"
#include "importers/timeline_window.h"

namespace tidemark::cli {
namespace {

bool is_timeline(const std::string& path) {
  return path.ends_with(".timeline.json") || path.ends_with(".timeline.json.zst");
}

Recording recording_of(importers::RecordedTimeline made, const std::string& strategy,
                       const std::string& said_of_callers) {
  Recording recording{.source = Source::Measured,
                      .strategy = strategy,
                      .device = made.device,
                      .capacity = {},
                      .planned = {},
                      .trace = made.trace,
                      .schedule = std::move(made.schedule),
                      .timeline = std::move(made.timeline)};
  for (const std::string& callers : made.callers)
    recording.decisions.push_back(callers.empty() ? callers : said_of_callers + callers);
  return recording;
}

Recording recording_of(const importers::RunTimeline& made) {
  return recording_of(made.recorded, "recorded", "allocated by ");
}

struct ReadSnapshot {
  importers::MemorySnapshot snapshot;
  importers::SnapshotTimeline made;
};

ReadSnapshot read_snapshot(const std::string& path) {
  ReadSnapshot read{importers::read_memory_snapshot(path), {}};
  try {
    const std::string name = std::filesystem::path(path).filename().string();
    read.made = importers::timeline_of(read.snapshot, printable(name));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", printable(path, 200), error.what()));
  }
  return read;
}

Recording read_profile(const std::string& path) {
  const JsonDocument document = read_json(path, FileKind::Recording);
  const std::string name = std::filesystem::path(path).filename().string();
  importers::RecordedTimeline made;
  try {
    made = importers::read_kineto(document.root(), printable(name));
  } catch (const InputError& error) {
    const std::string_view problem = error.what();
    if (problem.starts_with(path)) throw;
    throw InputError(fmt::format("{}: {}", printable(path, 200), problem));
  }
  return recording_of(std::move(made), "profiled", "allocated in ");
}

Recording read_export(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return recording_of(importers::read_nsys(path, printable(name)), "profiled", "");
}

// With what each block is for, as far as its stack says so.
RecordedRun snapshot_with_categories(const std::string& path) {
  ReadSnapshot read = read_snapshot(path);
  RecordedRun run{cli::recording_of(read.snapshot, read.made), std::move(read.made.requested)};
  for (Buffer& buffer : run.recording.schedule.buffers)
    buffer.category =
        importers::category_of(read.snapshot, read.made.stack_of[index(buffer.tensor)]);
  return run;
}

struct ReadRun {
  importers::RunFile file;
  importers::RunTimeline made;
};

ReadRun read_run(const std::string& path) {
  ReadRun read{importers::read_run_file(path), {}};
  const std::string name = std::filesystem::path(path).filename().string();
  read.made = importers::timeline_of(read.file, printable(name));
  return read;
}

}  // namespace

bool is_imported(const std::string& path) {
  return importers::is_run_file(path) || importers::is_memory_snapshot(path) ||
         importers::is_kineto(path) || importers::is_nsys(path);
}

bool is_recorded(const std::string& path) { return is_timeline(path) || is_imported(path); }

Recording recording_of(const importers::MemorySnapshot& snapshot,
                       const importers::SnapshotTimeline& made) {
  Recording recording{
      .source = Source::Measured,
      .strategy = snapshot.settings_text.empty() ? "recorded" : printable(snapshot.settings_text),
      .device = fmt::format("cuda:{}", made.device),
      .capacity = {},
      .planned = made.extent,
      .trace = made.trace,
      .schedule = made.schedule,
      .timeline = made.timeline,
      .offsets = made.offsets};
  for (const std::string& stack : made.stacks)
    recording.decisions.push_back(stack.empty() ? stack : "allocated by " + stack);
  return recording;
}

void refuse_profile(const std::string& path) {
  if (importers::is_run_file(path))
    throw UsageError(
        fmt::format("{}: is a recorded run; a step to plan is needed here (tidemark view, explain "
                    "and diff take recordings)",
                    printable(path, 200)));
  if (importers::is_kineto(path))
    throw UsageError(
        fmt::format("{}: is a profile of PyTorch, of kernels and allocations; a step to plan is "
                    "needed here (tidemark view and diff take profiles)",
                    printable(path, 200)));
  if (importers::is_nsys(path))
    throw UsageError(
        fmt::format("{}: is taken for a recording of Nsight Systems, of kernels and copies; a step "
                    "to plan is needed here (tidemark view and diff take it, exported to SQLite)",
                    printable(path, 200)));
}

Recording read_step(const std::string& path) {
  if (!importers::is_run_file(path)) return read_recorded(path);
  const ReadRun read = read_run(path);
  const std::vector<Nanoseconds>& marks = read.made.marks;
  const std::size_t count = marks.size();
  if (count < 2 || marks[count - 2] == marks[count - 1]) return recording_of(read.made);
  return recording_of(importers::window_of(read.made.recorded, marks[count - 2], marks[count - 1]),
                      fmt::format("recorded, step {} of {}", count, count), "allocated by ");
}

Recording read_recorded(const std::string& path, ReadProgress* progress) {
  if (importers::is_kineto(path)) return read_profile(path);
  if (importers::is_run_file(path)) return recording_of(read_run(path).made);
  if (importers::is_nsys(path)) return read_export(path);
  if (!importers::is_memory_snapshot(path)) return read_recording(path, progress);
  const ReadSnapshot read = read_snapshot(path);
  return recording_of(read.snapshot, read.made);
}

RecordedRun read_beside(const std::string& path) {
  if (!std::filesystem::exists(path))
    throw InputError(fmt::format("{}: there is no such file", printable(path, 200)));
  if (!is_recorded(path))
    throw InputError(
        fmt::format("{}: --beside needs what was recorded: a memory snapshot, a profile with "
                    "profile_memory=True, a recorded run or a timeline",
                    printable(path, 200)));
  if (importers::is_nsys(path))
    throw InputError(
        fmt::format("{}: a recording of Nsight Systems has what was asked of the driver, pieces in "
                    "which PyTorch places its tensors: --beside needs the tensors' own blocks (a "
                    "memory snapshot, or a profile with profile_memory=True)",
                    printable(path, 200)));
  RecordedRun run = importers::is_memory_snapshot(path) ? snapshot_with_categories(path)
                                                        : RecordedRun{read_step(path), {}};
  if (run.recording.schedule.buffers.empty())
    throw InputError(fmt::format("{}: has no blocks of memory to compare", printable(path, 200)));
  return run;
}

void refuse_inputs(const Options& options) {
  for (const OptionRow& row : option_table())
    if (long_name(row) != "--top" &&
        (row.group == "step" || row.group == "device" || row.group == "scenario") &&
        is_given(options, row))
      throw UsageError(
          fmt::format("{} cannot change {}: it holds a step that was predicted or "
                      "measured before",
                      long_name(row), options.subject));
}

Result explain_snapshot(const Options& options) {
  refuse_inputs(options);
  if (!options.item.empty() || options.saved || options.levers || options.plan_out ||
      options.graph || options.require_fit)
    throw UsageError(
        "a memory snapshot has blocks and stacks, no tensors, ops and plans: explain takes "
        "--top, --format and --output with it");
  constexpr std::int64_t usual_top = 12, most = 1'000'000;
  const std::int64_t top = options.top ? parse_count(*options.top, "--top", 0, most) : usual_top;
  const Format format = format_of(options, for_explain, of_a_snapshot);
  const ReadSnapshot read = read_snapshot(options.subject);
  const auto facts = [&] {
    return SnapshotFacts{options.subject, read.snapshot, read.made,
                         importers::report_of(read.snapshot, read.made)};
  };
  const auto recording = [&] { return recording_of(read.snapshot, read.made); };
  const auto pictures = [&] {
    const Recording made = recording();
    return exports::stacked({exports::memory_svg(made), exports::icicle_svg(made)});
  };
  const auto chrome = [&] {
    const Recording made = recording();
    return exports::chrome_trace({&made, 1});
  };
  return {written_as(format, {{Format::Table,
                               [&] {
                                 return snapshot_table(facts(), style_of(options),
                                                       static_cast<std::size_t>(top));
                               }},
                              {Format::Json, [&] { return snapshot_json(facts()); }},
                              {Format::Svg, pictures},
                              {Format::Chrome, chrome},
                              {Format::Collapsed, [&] { return snapshot_stacks(facts()); }}}),
          "", ExitCode::Ok};
}

Result explain_run(const Options& options) {
  refuse_inputs(options);
  if (!options.item.empty() || options.saved || options.levers || options.plan_out ||
      options.graph || options.require_fit)
    throw UsageError(
        "a recorded run has kernels and blocks, no ops and plans: explain takes --top, --format "
        "and "
        "--output with it");
  constexpr std::int64_t usual_top = 12, most = 1'000'000;
  const auto top = static_cast<std::size_t>(
      options.top ? parse_count(*options.top, "--top", 0, most) : usual_top);
  const Format format = format_of(options, for_explain, of_a_snapshot);
  const ReadRun read = read_run(options.subject);
  const RunFacts facts{options.subject, read.file, read.made};
  const auto snapshot = [&] {
    if (!read.made.memory)
      throw UsageError(options.subject + ": holds no memory history of PyTorch, so no stacks");
    const auto& [history, made] = *read.made.memory;
    return SnapshotFacts{options.subject, history, made, importers::report_of(history, made)};
  };
  const auto table = [&] {
    const Style style = style_of(options);
    std::string text = run_table(facts, style, top);
    return read.made.memory ? text + "\n" + snapshot_table(snapshot(), style, top) : text;
  };
  const auto pictures = [&] {
    const Recording made = recording_of(read.made);
    return exports::stacked({exports::memory_svg(made), exports::icicle_svg(made)});
  };
  const auto chrome = [&] {
    const Recording made = recording_of(read.made);
    return exports::chrome_trace({&made, 1});
  };
  return {written_as(format, {{Format::Table, table},
                              {Format::Json, [&] { return run_json(facts); }},
                              {Format::Svg, pictures},
                              {Format::Chrome, chrome},
                              {Format::Collapsed, [&] { return snapshot_stacks(snapshot()); }}}),
          "", ExitCode::Ok};
}

}  // namespace tidemark::cli
