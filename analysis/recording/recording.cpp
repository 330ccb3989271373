// Checks that buffers, runs and memory events agree with each other, and reads and writes files.
#include "analysis/recording/recording.h"

#include <fmt/format.h>

#include "analysis/recording/packed_columns.h"
#include "analysis/recording/recording_format.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"

namespace tidemark {
namespace {

using namespace literals;

std::string defect_of_buffers(const Recording& recording) {
  Bytes sum;
  for (std::size_t b = 0; b < recording.schedule.buffers.size(); ++b) {
    sum += recording.schedule.buffers[b].size;
    if (sum.count > largest_size)
      return fmt::format("/buffers/bytes/{}: more than {} in all buffers together", b,
                         to_text(Bytes{largest_size}));
    if (recording.offsets.empty()) continue;
    const std::int64_t end = recording.offsets[b] + recording.schedule.buffers[b].size.count;
    if (recording.planned.count > 0 && end > recording.planned.count)
      return fmt::format("/buffers/offset/{}: ends at byte {} of an arena of {}", b, end,
                         recording.planned.count);
  }
  return "";
}

std::string defect_of_runs(const Recording& recording) {
  const auto& [schedule, timeline] = std::tie(recording.schedule, recording.timeline);
  std::vector<bool> has_run(schedule.steps.size());
  std::vector<Nanoseconds> busy_until(schedule.streams);
  for (std::size_t i = 0; i < timeline.runs.size(); ++i) {
    const TimedRun& run = timeline.runs[i];
    const Step& step = schedule.steps[run.step];
    if (!takes_time(step))
      return fmt::format("/runs/step/{}: step {} is no run and no copy", i, run.step);
    if (has_run[run.step]) return fmt::format("/runs/step/{}: step {} ran twice", i, run.step);
    has_run[run.step] = true;
    Nanoseconds& busy = busy_until[index(stream_of(schedule, step))];
    if (run.begin < busy)
      return fmt::format("/runs/begin_ns/{}: found {}; its stream is busy until {}", i,
                         run.begin.count(), busy.count());
    if (run.end < run.begin || run.end > timeline.duration)
      return fmt::format("/runs/end_ns/{}: found {}; need a time from {} to {}", i, run.end.count(),
                         run.begin.count(), timeline.duration.count());
    busy = run.end;
  }
  return "";
}

std::string defect_of_memory(const Recording& recording) {
  enum class State : std::uint8_t { Absent, Present, Gone };
  std::vector<State> states(recording.schedule.buffers.size());
  const Timeline& timeline = recording.timeline;
  Nanoseconds last{};
  for (std::size_t i = 0; i < timeline.memory.size(); ++i) {
    const MemoryEvent& event = timeline.memory[i];
    if (event.time < last || event.time > timeline.duration)
      return fmt::format("/memory/time_ns/{}: found {}; need a time from {} to {}", i,
                         event.time.count(), last.count(), timeline.duration.count());
    last = event.time;
    State& state = states[index(event.buffer)];
    if (recording.schedule[event.buffer].persistent)
      return fmt::format("/memory/buffer/{}: buffer {} is persistent and has no events", i,
                         index(event.buffer));
    if (state != (event.appears ? State::Absent : State::Present))
      return fmt::format("/memory/appears/{}: buffer {} {}", i, index(event.buffer),
                         event.appears ? "appears twice" : "disappears without being present");
    state = event.appears ? State::Present : State::Gone;
  }
  return "";
}

// What is wrong with the rest of a text is wrong with the text, which has the lines to say it by.
JsonDocument parsed(const UnpackedText& unpacked, std::string_view text, std::string_view file) {
  if (unpacked.columns.by_place.empty()) return JsonDocument(text, file);
  try {
    return JsonDocument(unpacked.rest, file);
  } catch (const InputError&) {
    return JsonDocument(text, file);
  }
}

}  // namespace

StreamId stream_of(const Schedule& schedule, const Step& step) {
  return std::visit(Overload{[&](const Allocate& s) { return schedule[s.buffer].stream; },
                             [](const Synchronize&) { return StreamId::Compute; },
                             [](const auto& s) { return s.stream; }},
                    step);
}

bool takes_time(const Step& step) {
  return std::holds_alternative<Run>(step) || std::holds_alternative<CopyOut>(step) ||
         std::holds_alternative<CopyIn>(step);
}

std::string defect_of(const Recording& recording) {
  const Timeline& timeline = recording.timeline;
  for (const auto& [name, time] :
       {std::pair("host_ns", timeline.host), std::pair("idle_ns", timeline.idle),
        std::pair("waits_for_host_ns", timeline.waits_for_host),
        std::pair("overlap_ns", timeline.overlap)})
    if (time > timeline.duration)
      return fmt::format("/{}: found {}; need a time within the step's {}", name, time.count(),
                         timeline.duration.count());
  for (const auto find : {defect_of_buffers, defect_of_runs, defect_of_memory})
    if (std::string defect = find(recording); !defect.empty()) return defect;
  return "";
}

bool has_memory(const Recording& recording) { return !recording.schedule.buffers.empty(); }

std::string title(const Recording& recording) {
  const std::string& model = recording.trace->model;
  return fmt::format("{} · {} · {} {} {}", model.empty() ? "(unnamed)" : model, recording.strategy,
                     sources[static_cast<std::size_t>(recording.source)].name,
                     recording.source == Source::Predicted ? "for" : "on", recording.device);
}

Recording read_recording_text(std::string&& text, std::string_view file, ReadProgress* progress) {
  UnpackedText unpacked = take_columns(text, file, progress);
  if (progress) progress->begin("checking");
  const JsonDocument document = parsed(unpacked, text, file);
  // Of a large step each of these is a gigabyte: what is not needed is gone before the next comes.
  // (Assigning an empty one would keep the room.)
  std::string().swap(text), std::string().swap(unpacked.rest);
  return read_recording(document.root(), file, std::move(unpacked.columns));
}

Recording read_recording_text(std::string_view text, std::string_view file) {
  UnpackedText unpacked = take_columns(text, file);
  const JsonDocument document = parsed(unpacked, text, file);
  return read_recording(document.root(), file, std::move(unpacked.columns));
}

Recording read_recording(JsonView root, std::string_view file) {
  return read_recording(root, file, PackedColumns{});
}

Recording read_recording(const std::string& path, ReadProgress* progress) {
  // The limits of JSON itself do not hold for its columns: 50 million runs and events have 3 GB.
  constexpr FileKindRow file{FileKind::Recording, "a timeline", 4_GiB, "record a smaller step"};
  return read_recording_text(read_file(path, file, progress), path, progress);
}

void write_recording(const std::string& path, const Recording& recording) {
  write_file(path, write_recording_text(recording));
}

}  // namespace tidemark
