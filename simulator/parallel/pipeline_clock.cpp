// Stages take turns until none can go on: each has one list of actions, and looks only at its
// neighbours' clocks.
#include "simulator/parallel/pipeline_clock.h"

#include <algorithm>

#include "base/error.h"
#include "simulator/parallel/pipeline_order.h"

namespace tidemark {
namespace {

class PipelineClock {
 public:
  PipelineClock(const PipelineSchedule& schedule, std::span<const StageTimes> stages,
                std::int64_t micro_batches)
      : stages_(stages), chunks_(schedule.chunks), state_(stages.size()) {
    const auto count = static_cast<std::int64_t>(stages.size());
    for (std::size_t s = 0; s < stages.size(); ++s) {
      state_[s].actions = actions_of(schedule, count, static_cast<std::int64_t>(s), micro_batches);
      const auto parts = static_cast<std::size_t>(micro_batches * chunks_);
      state_[s].forward_done.assign(parts, never);
      state_[s].backward_done.assign(parts, never);
    }
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
      times.total = std::max(times.total, state.now);
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
    std::vector<Nanoseconds> forward_done, backward_done;  ///< by micro-batch and chunk
    std::vector<PipelinePass> passes;
  };

  std::size_t part_of(const StageAction& action, std::int64_t chunk) const {
    return static_cast<std::size_t>(action.micro_batch * chunks_ + chunk);
  }

  // When what the action needs of a neighbour is there: the first stage's is the last, one chunk
  // before, and the last stage's the first, one chunk behind.
  Nanoseconds ready(std::size_t s, const StageAction& action) const {
    const std::int64_t chunk = action.chunk;
    const auto& first = state_.front();
    const auto& last = state_.back();
    if (!action.is_backward) {
      if (s > 0) return state_[s - 1].forward_done[part_of(action, chunk)];
      return chunk == 0 ? Nanoseconds{} : last.forward_done[part_of(action, chunk - 1)];
    }
    if (s + 1 < state_.size()) return state_[s + 1].backward_done[part_of(action, chunk)];
    return chunk + 1 == chunks_ ? last.forward_done[part_of(action, chunk)]
                                : first.backward_done[part_of(action, chunk + 1)];
  }

  bool act(std::size_t s) {
    State& state = state_[s];
    if (state.next == state.actions.size()) return false;
    const StageAction action = state.actions[state.next];
    const Nanoseconds from = ready(s, action);
    if (from == never) return false;
    const Nanoseconds whole = action.is_backward ? stages_[s].backward : stages_[s].forward;
    const Nanoseconds takes = whole * (action.chunk + 1) / chunks_ - whole * action.chunk / chunks_;
    state.now = std::max(state.now, from) + takes;
    state.busy += takes;
    state.passes.push_back(
        {action.micro_batch, action.chunk, action.is_backward, state.now - takes, state.now});
    auto& done = action.is_backward ? state.backward_done : state.forward_done;
    done[part_of(action, action.chunk)] = state.now;
    ++state.next;
    return true;
  }

  std::span<const StageTimes> stages_;
  const std::int64_t chunks_;
  std::vector<State> state_;
};

}  // namespace

PipelineTimes run_pipeline(const PipelineSchedule& schedule, std::span<const StageTimes> stages,
                           std::int64_t micro_batches) {
  return PipelineClock(schedule, stages, micro_batches).run();
}

}  // namespace tidemark
