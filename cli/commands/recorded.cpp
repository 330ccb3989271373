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
#include "cli/reports/print_snapshot.h"

namespace tidemark::cli {
namespace {

bool is_timeline(const std::string& path) {
  return path.ends_with(".timeline.json") || path.ends_with(".timeline.json.zst");
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
  importers::KinetoTimeline made;
  try {
    made = importers::read_kineto(document.root(), printable(name));
  } catch (const InputError& error) {
    const std::string_view problem = error.what();
    if (problem.starts_with(path)) throw;
    throw InputError(fmt::format("{}: {}", printable(path, 200), problem));
  }
  Recording recording{.source = Source::Measured,
                      .strategy = "profiled",
                      .device = made.device,
                      .capacity = {},
                      .planned = {},
                      .trace = made.trace,
                      .schedule = std::move(made.schedule),
                      .timeline = std::move(made.timeline)};
  for (const std::string& callers : made.callers)
    recording.decisions.push_back(callers.empty() ? callers : "allocated in " + callers);
  return recording;
}

}  // namespace

bool is_recorded(const std::string& path) {
  return is_timeline(path) || importers::is_memory_snapshot(path) || importers::is_kineto(path);
}

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
  if (importers::is_kineto(path))
    throw UsageError(
        fmt::format("{}: is a profile of PyTorch, of kernels and allocations; a step to plan is "
                    "needed here (tidemark view and diff take profiles)",
                    printable(path, 200)));
}

Recording read_recorded(const std::string& path) {
  if (importers::is_kineto(path)) return read_profile(path);
  if (!importers::is_memory_snapshot(path)) return read_recording(path);
  const ReadSnapshot read = read_snapshot(path);
  return recording_of(read.snapshot, read.made);
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

}  // namespace tidemark::cli
