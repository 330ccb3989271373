// Writes the events as text, one process at a time; times never pass through floating point.
#include "analysis/export/chrome_trace.h"

#include <fmt/format.h>

#include "base/json_text.h"

namespace tidemark::exports {
namespace {

// "12.345": never through a double, which would lose the nanoseconds of a long run.
std::string microseconds(Nanoseconds time) {
  return fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000);
}

class Process {
 public:
  Process(const Recording& recording, std::size_t pid, std::string& out)
      : recording_(recording), pid_(pid), out_(out) {}

  void write() {
    metadata("process_name", 0, "name", json_text(title(recording_)));
    for (std::size_t s = 0; s < recording_.schedule.streams; ++s) {
      metadata("thread_name", s, "name", json_text(fmt::format("stream {}", s)));
      metadata("thread_sort_index", s, "sort_index", fmt::format("{}", s));
    }
    for (const TimedRun& run : recording_.timeline.runs) write_run(run);
    write_counters();
  }

 private:
  void begin(std::string_view phase, std::string_view name) {
    out_ += fmt::format("{}\n{{\"ph\":\"{}\",\"pid\":{},\"name\":{}", out_.back() == '[' ? "" : ",",
                        phase, pid_, json_text(name));
  }

  void metadata(std::string_view what, std::size_t track, std::string_view key,
                const std::string& value) {
    begin("M", what);
    out_ += fmt::format(",\"tid\":{},\"args\":{{\"{}\":{}}}}}", track, key, value);
  }

  void write_run(const TimedRun& timed) {
    const Step& step = recording_.schedule.steps[timed.step];
    const Run* run = std::get_if<Run>(&step);
    const bool has_op = run && run->op != no_op;
    std::string_view task = std::holds_alternative<CopyOut>(step) ? "copy_out" : "copy_in";
    if (run) task = to_string(run->task);
    begin("X", has_op ? std::string_view((*recording_.trace)[run->op].name) : task);
    out_ += fmt::format(",\"cat\":\"{}\",\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{\"step\":{}",
                        task, index(timed.stream), microseconds(timed.begin),
                        microseconds(timed.end - timed.begin), timed.step);
    if (has_op)
      out_ += fmt::format(",\"kind\":\"{}\"", to_string((*recording_.trace)[run->op].kind));
    out_ += "}}";
  }

  void counter(Nanoseconds time, std::size_t category, Bytes value) {
    begin("C", fmt::format("memory: {}", categories[category].name));
    out_ += fmt::format(",\"ts\":{},\"args\":{{\"bytes\":{}}}}}", microseconds(time), value.count);
  }

  // Every event, also those at one time: the peak may last for none.
  void write_counters() {
    BytesByCategory now = recording_.timeline.baseline;
    for (std::size_t c = 0; c < category_count; ++c)
      if (uses(static_cast<Category>(c))) counter({}, c, now[c]);
    for (const MemoryEvent& event : recording_.timeline.memory) {
      const Buffer& buffer = recording_.schedule[event.buffer];
      const auto c = static_cast<std::size_t>(buffer.category);
      now[c] += event.appears ? buffer.size : Bytes{} - buffer.size;
      counter(event.time, c, now[c]);
    }
  }

  bool uses(Category category) const {
    for (const Buffer& buffer : recording_.schedule.buffers)
      if (buffer.category == category) return true;
    return false;
  }

  const Recording& recording_;
  std::size_t pid_;
  std::string& out_;
};

}  // namespace

std::string chrome_trace(std::span<const Recording> recordings) {
  std::string out =
      "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"format\":\"tidemark\"},\n"
      "\"traceEvents\":[";
  for (std::size_t i = 0; i < recordings.size(); ++i) Process(recordings[i], i + 1, out).write();
  return out + "\n]}\n";
}

}  // namespace tidemark::exports
