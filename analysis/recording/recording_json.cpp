// Writes a recording as JSON text in columns: one line of integers for each field.
#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <utility>

#include "analysis/recording/recording_format.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/quoted.h"
#include "traces/trace_json.h"

namespace tidemark {
namespace {

std::int64_t number(std::integral auto value) { return static_cast<std::int64_t>(value); }
std::int64_t number(Nanoseconds time) { return time.count(); }
template <typename Enum>
requires std::is_enum_v<Enum> std::int64_t number(Enum value) {
  return static_cast<std::int64_t>(value);
}

class RecordingWriter {
 public:
  explicit RecordingWriter(const Recording& recording)
      : recording_(recording), schedule_(recording.schedule), timeline_(recording.timeline) {}
  std::string write();

 private:
  void write_head();
  void write_buffers();
  void write_encodings();
  void write_steps();
  void write_timeline();
  void write_decisions();

  void text(std::string_view key, std::string_view value) {
    out_ += fmt::format(",\n  \"{}\": {}", key, json_text(value));
  }
  void value(std::string_view key, std::int64_t value) {
    out_ += fmt::format(",\n  \"{}\": {}", key, value);
  }
  template <typename Names>
  void names(std::string_view key, const Names& names, std::string_view end) {
    out_ += fmt::format("\n    \"{}\": [\"{}\"]{}", key, fmt::join(names, "\", \""), end);
  }
  void begin_columns(std::string_view key) {
    out_ += fmt::format(",\n  \"{}\": {{", key);
    is_first_ = true;
  }
  void end_columns() { out_ += "\n  }"; }
  /// A list in one line, of what `get` gives for each item.
  template <typename Items, typename Get>
  void column(std::string_view key, const Items& items, Get get) {
    out_ += fmt::format("{}\n    \"{}\": ", std::exchange(is_first_, false) ? "" : ",", key);
    list(items, get);
  }
  template <typename Items, typename Get>
  void list(const Items& items, Get get) {
    out_ += '[';
    bool is_first = true;
    for (const auto& item : items) {
      if (!std::exchange(is_first, false)) out_ += ',';
      const fmt::format_int digits(number(get(item)));
      out_.append(digits.data(), digits.size());
    }
    out_ += ']';
  }

  const Recording& recording_;
  const Schedule& schedule_;
  const Timeline& timeline_;
  std::string out_;
  bool is_first_ = true;
};

std::string RecordingWriter::write() {
  write_head();
  write_buffers();
  write_steps();
  write_timeline();
  write_decisions();
  std::string trace = write_trace(*recording_.trace);
  trace.pop_back();  // its newline
  return std::move(out_ += ",\n  \"trace\": " + trace + "\n}\n");
}

void RecordingWriter::write_head() {
  out_ = fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {}", timeline_format,
                     timeline_version);
  text("source", sources[static_cast<std::size_t>(recording_.source)].name);
  text("strategy", recording_.strategy);
  text("device", recording_.device);
  value("capacity_bytes", recording_.capacity.count);
  value("planned_bytes", recording_.planned.count);
  value("duration_ns", timeline_.duration.count());
  value("host_ns", timeline_.host.count());
  value("idle_ns", timeline_.idle.count());
  value("waits_for_host_ns", timeline_.waits_for_host.count());
  value("overlap_ns", timeline_.overlap.count());
  value("streams", number(schedule_.streams));
  value("events", number(schedule_.events));
  out_ += ",\n  \"names\": {";
  names("step", step_kinds, ",");
  names("task", names_of(tasks), ",");
  names("role", names_of(roles), ",");
  names("category", names_of(categories), "\n  }");
}

void RecordingWriter::write_buffers() {
  const auto tensor = [](TensorId id) { return id == no_tensor ? no_number : number(id); };
  begin_columns("buffers");
  column("bytes", schedule_.buffers, [](const Buffer& b) { return b.size.count; });
  column("tensor", schedule_.buffers, [&](const Buffer& b) { return tensor(b.tensor); });
  column("role", schedule_.buffers, [](const Buffer& b) { return b.role; });
  column("category", schedule_.buffers, [](const Buffer& b) { return b.category; });
  column("stream", schedule_.buffers, [](const Buffer& b) { return b.stream; });
  column("persistent", schedule_.buffers, [](const Buffer& b) { return b.persistent; });
  if (!recording_.offsets.empty())
    column("offset", recording_.offsets, [](std::int64_t offset) { return offset; });
  const auto is_coded = [](const Buffer& b) {
    return b.role == Role::Codes || b.role == Role::Ranges;
  };
  const bool has_codes = std::ranges::any_of(schedule_.buffers, is_coded);
  if (has_codes) column("encoding", schedule_.buffers, [](const Buffer& b) { return b.encoding; });
  end_columns();
  if (has_codes) write_encodings();
}

void RecordingWriter::write_encodings() {
  begin_columns("encodings");
  column("bits", schedule_.encodings, [](const Encoding& e) { return e.bits; });
  column("axis", schedule_.encodings, [](const Encoding& e) { return e.axis; });
  column("group", schedule_.encodings, [](const Encoding& e) { return e.group; });
  column("metadata", schedule_.encodings, [](const Encoding& e) { return e.metadata; });
  if (std::ranges::any_of(schedule_.encodings, &Encoding::delayed))
    column("delayed", schedule_.encodings, [](const Encoding& e) { return e.delayed; });
  if (!std::ranges::all_of(schedule_.encodings, has_ranges))
    column("format", schedule_.encodings, [](const Encoding& e) { return e.format; });
  end_columns();
}

/// Number of the buffer, event or op that the step is about.
std::int64_t object_of(const Step& step) {
  return std::visit(Overload{[](const Allocate& s) { return number(s.buffer); },
                             [](const Free& s) { return number(s.buffer); },
                             [](const Run& s) { return s.op == no_op ? no_number : number(s.op); },
                             [](const CopyOut& s) { return number(s.buffer); },
                             [](const CopyIn& s) { return number(s.buffer); },
                             [](const Record& s) { return number(s.event); },
                             [](const Wait& s) { return number(s.event); },
                             [](const Synchronize& s) { return number(s.event); }},
                    step);
}

void RecordingWriter::write_steps() {
  std::vector<const Run*> runs;
  for (const Step& step : schedule_.steps)
    if (const Run* run = std::get_if<Run>(&step)) runs.push_back(run);
  begin_columns("steps");
  column("kind", schedule_.steps, [](const Step& step) { return step.index(); });
  column("of", schedule_.steps, object_of);
  column("stream", schedule_.steps, [&](const Step& step) { return stream_of(schedule_, step); });
  end_columns();
  begin_columns("run_steps");
  column("task", runs, [](const Run* run) { return run->task; });
  column("reads", runs, [](const Run* run) { return run->reads; });
  column("writes", runs, [](const Run* run) { return run->writes; });
  end_columns();
  // In the order of the runs, wherever they lie in the pool.
  std::vector<BufferId> operands;
  for (const Run* run : runs) {
    operands.insert(operands.end(), schedule_.reads(*run).begin(), schedule_.reads(*run).end());
    operands.insert(operands.end(), schedule_.writes(*run).begin(), schedule_.writes(*run).end());
  }
  out_ += ",\n  \"operands\": ";
  list(operands, [](BufferId id) { return id; });
}

void RecordingWriter::write_timeline() {
  begin_columns("runs");
  column("step", timeline_.runs, [](const TimedRun& run) { return run.step; });
  column("begin_ns", timeline_.runs, [](const TimedRun& run) { return run.begin; });
  column("end_ns", timeline_.runs, [](const TimedRun& run) { return run.end; });
  end_columns();
  begin_columns("memory");
  column("time_ns", timeline_.memory, [](const MemoryEvent& event) { return event.time; });
  column("buffer", timeline_.memory, [](const MemoryEvent& event) { return event.buffer; });
  column("appears", timeline_.memory, [](const MemoryEvent& event) { return event.appears; });
  end_columns();
}

// Few texts are shared by many tensors.
void RecordingWriter::write_decisions() {
  if (recording_.decisions.empty()) return;
  std::vector<std::string_view> texts(recording_.decisions.begin(), recording_.decisions.end());
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  begin_columns("decisions");
  out_ += "\n    \"texts\": [";
  for (const std::string_view& known : texts)
    out_ += fmt::format("{}\n      {}", &known == texts.data() ? "" : ",", json_text(known));
  out_ += "\n    ]";
  is_first_ = false;
  column("of_tensor", recording_.decisions, [&](const std::string& decision) {
    return std::ranges::lower_bound(texts, decision) - texts.begin();
  });
  end_columns();
}

}  // namespace

std::string write_recording_text(const Recording& recording) {
  CHECK(recording.trace != nullptr);
  if (const std::string defect = defect_of(recording); !defect.empty())
    throw InputError(fmt::format("timeline of {}: {}", printable(title(recording), 200), defect));
  return RecordingWriter(recording).write();
}

}  // namespace tidemark
