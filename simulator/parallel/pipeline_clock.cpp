// Stages take turns until none can go on: each has one list of actions, and looks only at when its
// neighbours' chunks were done.
#include "simulator/parallel/pipeline_clock.h"

#include <algorithm>

#include "base/error.h"

namespace tidemark {
namespace {

class PipelineClock {
 public:
  PipelineClock(const PipelineSchedule& schedule, std::span<const ChunkTimes> chunks,
                std::int64_t micro_batches)
      : schedule_(schedule),
        chunks_(chunks),
        stages_(std::ssize(chunks) / schedule.chunks),
        micro_batches_(micro_batches),
        state_(static_cast<std::size_t>(stages_)) {
    for (std::size_t s = 0; s < state_.size(); ++s)
      state_[s].actions =
          actions_of(schedule, stages_, static_cast<std::int64_t>(s), micro_batches);
    const auto parts = static_cast<std::size_t>(micro_batches) * chunks.size();
    forward_done_.assign(parts, never);
    backward_done_.assign(parts, never);
  }

  PipelineTimes run() && {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t s = 0; s < state_.size(); ++s)
        while (act(s)) goes_on = true;
    }
    PipelineTimes times;
    for (const State& state : state_) {
      CHECK(state.next == state.actions.size());
      if (state.passes.empty()) continue;
      times.total = std::max(times.total, state.now - state.passes.front().begin);
      times.end = std::max(times.end, state.now);
    }
    for (State& state : state_) {
      times.waits.push_back(times.total - state.busy);
      times.passes.push_back(std::move(state.passes));
    }
    return times;
  }

 private:
  static constexpr Nanoseconds never{-1};

  struct State {
    std::vector<StageAction> actions;
    std::size_t next = 0;
    Nanoseconds now{}, busy{};
    std::vector<PipelinePass> passes;
  };

  std::size_t part_of(std::int64_t chunk, std::int64_t micro_batch) const {
    return static_cast<std::size_t>(chunk * micro_batches_ + micro_batch);
  }

  // When what the action needs of the chunk before or behind is there.
  Nanoseconds ready(const StageAction& action, std::int64_t chunk) const {
    switch (action.work) {
      case StageWork::Forward:
        return chunk == 0 ? Nanoseconds{} : forward_done_[part_of(chunk - 1, action.micro_batch)];
      case StageWork::Backward:
        return chunk + 1 == std::ssize(chunks_)
                   ? forward_done_[part_of(chunk, action.micro_batch)]
                   : backward_done_[part_of(chunk + 1, action.micro_batch)];
      case StageWork::Weights:
        return backward_done_[part_of(chunk, action.micro_batch)];
    }
    return {};
  }

  Nanoseconds time_of(const ChunkTimes& chunk, StageWork work) const {
    if (work == StageWork::Forward) return chunk.forward;
    return work == StageWork::Backward ? chunk.backward : chunk.weights;
  }

  bool act(std::size_t s) {
    State& state = state_[s];
    if (state.next == state.actions.size()) return false;
    const StageAction action = state.actions[state.next];
    const std::int64_t chunk =
        chunk_in_model(schedule_, stages_, {static_cast<std::int64_t>(s), action.chunk});
    const Nanoseconds from = ready(action, chunk);
    if (from == never) return false;
    const Nanoseconds takes = time_of(chunks_[static_cast<std::size_t>(chunk)], action.work);
    state.now = std::max(state.now, from) + takes;
    state.busy += takes;
    state.passes.push_back({action, state.now - takes, state.now});
    const std::size_t part = part_of(chunk, action.micro_batch);
    if (action.work == StageWork::Forward) forward_done_[part] = state.now;
    if (action.work == StageWork::Backward) backward_done_[part] = state.now;
    ++state.next;
    return true;
  }

  const PipelineSchedule& schedule_;
  std::span<const ChunkTimes> chunks_;  ///< of all stages
  const std::int64_t stages_, micro_batches_;
  std::vector<State> state_;
  std::vector<Nanoseconds> forward_done_, backward_done_;  ///< by chunk of the model, micro-batch
};

}  // namespace

PipelineTimes run_pipeline(const PipelineSchedule& schedule, std::span<const ChunkTimes> chunks,
                           std::int64_t micro_batches) {
  return PipelineClock(schedule, chunks, micro_batches).run();
}

}  // namespace tidemark
