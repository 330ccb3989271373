// Example, 1f1b, the first of three stages, four micro-batches:
//   F0 F1 F2 B0 F3 B1 B2 B3     kept of others: 2 while F2, B0, F3 and B1 run
// With three micro-batches F3 is missing, and B1 has one other beside it. Interleaved, the last of
// two stages with two chunks a and b, two micro-batches:
//   Fa0 Fa1 Fb0 Bb0 Fb1 Bb1 Ba0 Ba1     while Fb1 runs, two of a are kept
#include "simulator/planner/in_flight.h"

#include <algorithm>

#include "simulator/parallel/pipeline_actions.h"

namespace tidemark {
namespace {

// Beside `a` nothing is there that is not beside `b`, which does the same.
bool is_within(const Moment& a, const Moment& b) {
  if (a.is_backward != b.is_backward || a.chunk != b.chunk || a.is_later() != b.is_later())
    return false;
  for (std::size_t c = 0; c < a.beside.size(); ++c)
    if (a.beside[c].kept > b.beside[c].kept || a.beside[c].held > b.beside[c].held ||
        a.beside[c].has_gradients > b.beside[c].has_gradients)
      return false;
  return true;
}

class Counting {
 public:
  explicit Counting(std::int64_t chunks) : now_(static_cast<std::size_t>(chunks)) {}

  void take(const StageAction& action) {
    Moment moment{action.work == StageWork::Backward, static_cast<std::size_t>(action.chunk)};
    ChunkInFlight& own = now_[moment.chunk];
    if (moment.is_backward) --own.kept;
    moment.beside = now_;
    if (std::ranges::find(found_, moment) == found_.end()) found_.push_back(std::move(moment));
    if (action.work == StageWork::Backward) {
      own.has_gradients = true;
      return;
    }
    ++own.kept;
    ++own.held;
    if (action.chunk + 1 == std::ssize(now_))
      for (ChunkInFlight& chunk : now_) --chunk.held;
  }

  std::vector<Moment> most() && {
    std::vector<Moment> left;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      bool is_beaten = false;
      for (std::size_t k = 0; k < found_.size() && !is_beaten; ++k)
        is_beaten = k != i && is_within(found_[i], found_[k]);
      if (!is_beaten) left.push_back(found_[i]);
    }
    return left;
  }

 private:
  std::vector<ChunkInFlight> now_;
  std::vector<Moment> found_;
};

}  // namespace

std::vector<Moment> moments_of(const StepOptions& step) {
  const std::int64_t stages = step.mesh[Axis::Pipeline], batches = step.accumulate.count;
  const auto schedule = step.schedule.value_or(PipelineSchedule());
  Counting counting(stages == 1 ? 1 : schedule.chunks);
  if (stages == 1) {
    for (std::int64_t batch = 0; batch < std::min<std::int64_t>(batches, 2); ++batch)
      for (const StageWork work : {StageWork::Forward, StageWork::Backward})
        counting.take({work, batch, 0});
    return std::move(counting).most();
  }
  for (const StageAction& action :
       actions_of(schedule, stages, step.rank.value_or(RankClass()).stage, batches))
    counting.take(action);
  return std::move(counting).most();
}

bool is_in_flight(const std::vector<Moment>& moments) {
  return std::ranges::any_of(moments, [](const Moment& moment) {
    return std::ranges::any_of(moment.beside, [](const ChunkInFlight& c) { return c.kept > 0; });
  });
}

std::int64_t most_kept(const std::vector<Moment>& moments) {
  std::int64_t most = 0;
  for (const Moment& moment : moments) {
    std::int64_t kept = 1;
    for (const ChunkInFlight& chunk : moment.beside) kept += chunk.kept;
    most = std::max(most, kept);
  }
  return most;
}

// 1f1b takes the last stage's micro-batches so, and all chunks as one.
std::shared_ptr<const Trace> one_after_another(const std::shared_ptr<const Trace>& trace,
                                               std::int64_t most) {
  const std::int64_t stages = trace->step.mesh[Axis::Pipeline];
  if (trace->step.accumulate.count <= most && stages == 1) return trace;
  auto few = std::make_shared<Trace>(*trace);
  few->step.accumulate.count = std::min(few->step.accumulate.count, most);
  if (stages == 1) return few;
  few->step.rank = RankClass{stages - 1};
  few->step.schedule = PipelineSchedule();
  return few;
}

}  // namespace tidemark
