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
  PipelineClock(PipelineSchedule schedule, std::span<const StageTimes> stages,
                std::int64_t micro_batches)
      : stages_(stages), state_(stages.size()) {
    const auto count = static_cast<std::int64_t>(stages.size());
    for (std::size_t s = 0; s < stages.size(); ++s) {
      state_[s].actions = actions_of(schedule, count, static_cast<std::int64_t>(s), micro_batches);
      state_[s].forward_done.assign(static_cast<std::size_t>(micro_batches), never);
      state_[s].backward_done.assign(static_cast<std::size_t>(micro_batches), never);
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
    for (const State& state : state_) times.waits.push_back(times.total - state.busy);
    return times;
  }

 private:
  static constexpr Nanoseconds never{-1};

  struct State {
    std::vector<StageAction> actions;
    std::size_t next = 0;
    Nanoseconds now{}, busy{};
    std::vector<Nanoseconds> forward_done, backward_done;  ///< by micro-batch
  };

  // When what the action needs of a neighbour is there.
  Nanoseconds ready(std::size_t s, const StageAction& action) const {
    const auto m = static_cast<std::size_t>(action.micro_batch);
    if (!action.is_backward) return s == 0 ? Nanoseconds{} : state_[s - 1].forward_done[m];
    return s + 1 == state_.size() ? state_[s].forward_done[m] : state_[s + 1].backward_done[m];
  }

  bool act(std::size_t s) {
    State& state = state_[s];
    if (state.next == state.actions.size()) return false;
    const StageAction action = state.actions[state.next];
    const Nanoseconds from = ready(s, action);
    if (from == never) return false;
    const Nanoseconds takes = action.is_backward ? stages_[s].backward : stages_[s].forward;
    state.now = std::max(state.now, from) + takes;
    state.busy += takes;
    auto& done = action.is_backward ? state.backward_done : state.forward_done;
    done[static_cast<std::size_t>(action.micro_batch)] = state.now;
    ++state.next;
    return true;
  }

  std::span<const StageTimes> stages_;
  std::vector<State> state_;
};

}  // namespace

PipelineTimes run_pipeline(PipelineSchedule schedule, std::span<const StageTimes> stages,
                           std::int64_t micro_batches) {
  return PipelineClock(schedule, stages, micro_batches).run();
}

}  // namespace tidemark
