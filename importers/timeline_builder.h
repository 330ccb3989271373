// From what recordings hold, spans on lanes and blocks that come and go, to a timeline.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simulator/timeline.h"
#include "traces/trace.h"

namespace tidemark::importers {

/// Each thing that ran is an op of the trace by its name; blocks of one size that one caller has
/// allocated are one tensor. What the recording does not say stays unknown.
struct RecordedTimeline {
  std::string device;  ///< "cuda:0", "cpu"
  std::shared_ptr<const Trace> trace;
  Schedule schedule;
  Timeline timeline;
  std::vector<std::string> callers;  ///< by tensor: who allocated it, innermost first
};

/// Something that took time, on a stream or a thread. Times are from the timeline's beginning.
struct RecordedSpan {
  Nanoseconds begin{}, end{};
  std::int64_t lane = 0;
  std::string_view name;
  Task task = Task::Forward;
};

class TimelineBuilder {
 public:
  /// `name` is the recording's.
  TimelineBuilder(std::string name, Nanoseconds duration);
  /// Goes on with what is there already, its times `later`.
  TimelineBuilder(RecordedTimeline begun, Nanoseconds later, Nanoseconds duration);

  /// All that ran, once.
  void add_runs(std::vector<RecordedSpan> spans);

  TensorId tensor(const std::string& name, const std::string& callers, std::int64_t bytes,
                  Category category = Category::Unknown);
  /// Of its tensor's category.
  BufferId add_buffer(std::int64_t bytes, TensorId tensor);
  Bytes size(BufferId buffer) const { return made_.schedule[buffer].size; }
  void appear(BufferId buffer, Nanoseconds time);
  void disappear(BufferId buffer, Nanoseconds time);
  /// Is there from the beginning to the end.
  void stay(BufferId buffer);

  RecordedTimeline finish() &&;

 private:
  void add_run(const RecordedSpan& span, StreamId stream);
  void sum_up_streams();

  RecordedTimeline made_;
  Trace trace_;
  std::unordered_map<std::string_view, OpId> ops_;
  std::unordered_map<std::string, TensorId> tensors_;
  std::vector<Nanoseconds> busy_until_;  // by stream
  std::int64_t all_bytes_ = 0;
};

}  // namespace tidemark::importers
