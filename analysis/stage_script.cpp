// Example, the first of two stages. The step of three is cut where other passes begin,
//   F0 | F1 | B0 | F2 | B1 | B2 update
// and F1 and B1 are what all between take. A slot that B1 frees is one of its own micro-batch's,
// whichever that is; what the first has made, gradients, is freed behind the last.
// Tested by tests/analysis/many_batches_property_test.cpp.
#include "analysis/stage_script.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "analysis/paged_states.h"
#include "simulator/allocator/recorded_step.h"
#include "simulator/cost/cost_model.h"
#include "simulator/cost/model_flops.h"
#include "simulator/parallel/exchanges.h"
#include "simulator/simulate.h"

namespace tidemark {
namespace {

using allocator::AllocatorCall;
using allocator::AllocatorCalls;
using Kind = AllocatorCall::Kind;

constexpr std::size_t works = 3;

std::size_t place_of(const StageAction& action) {
  return static_cast<std::size_t>(action.chunk) * works + static_cast<std::size_t>(action.work);
}

std::int64_t count_of(std::span<const StageAction> actions) {
  return 1 + std::ranges::max(actions, {}, &StageAction::micro_batch).micro_batch;
}

// Either the device is behind, or it waits for the host before one of the runs.
void add(Pace& pace, const Cost& cost, Nanoseconds host_launch) {
  const Nanoseconds launch = host_launch * cost.kernels;
  if (!pace.first_launch) pace.first_launch = launch;
  pace.launches += launch;
  pace.busy += cost.time;
  pace.late = std::max(pace.late, pace.launches) + cost.time;
}

const ActionScript& script_in(const StageScript& script, const StageAction& action,
                              std::int64_t count) {
  const auto& scripts = action.micro_batch == 0           ? script.first
                        : action.micro_batch + 1 == count ? script.last
                                                          : script.between;
  return scripts[place_of(action)];
}

class Scripting {
 public:
  Scripting(const Trace& asked, const Evaluation& placed, const Device& device)
      : trace_(*placed.planned.trace),
        schedule_(placed.schedule),
        costs_(trace_, placed.planned.derived->needs, device,
               moves_paged_states(trace_, schedule_, device)),
        calls_(allocator::calls_of(placed.planned, schedule_, device)),
        size_of_(calls_.slots),
        owner_(schedule_.buffers.size()) {
    const auto& gradients = placed.planned.derived->needs.gradients;
    script_.schedule = trace_.step.schedule.value_or(PipelineSchedule());
    script_.stages = trace_.step.mesh[Axis::Pipeline];
    script_.host_launch = device.host_launch;
    script_.report = placed.report;
    script_.flops = &asked == &trace_ ? flops_by_unit(asked, gradients) : flops_by_unit(asked);
    script_.before = calls_.before;
    for (const AllocatorCall& call : calls_.before) size_of_[call.slot] = call.size;
    script_.own = static_cast<std::uint32_t>(calls_.slots);
    actions_ = actions_of(script_.schedule, script_.stages,
                          trace_.step.rank.value_or(RankClass()).stage, scripted_batches);
    const std::size_t places = static_cast<std::size_t>(script_.schedule.chunks) * works;
    for (auto* scripts : {&script_.first, &script_.between, &script_.last}) scripts->resize(places);
    first_number_.resize(places + 1);
  }

  std::optional<StageScript> run() && {
    cut();
    if (cuts_.size() != actions_.size()) return std::nullopt;
    number_slots();
    for (std::size_t a = 0; a + 1 < actions_.size(); ++a)
      if (!write_action(a)) return std::nullopt;
    if (!write_tail()) return std::nullopt;
    return std::move(script_);
  }

 private:
  static constexpr std::size_t nobody = SIZE_MAX;

  /// Where something begins.
  struct Cut {
    std::size_t step, call;
  };
  /// Who has allocated a buffer, and after so many others.
  struct Owner {
    std::size_t action = nobody;
    std::uint32_t number = 0;
  };

  // A run's buffers are allocated before it, and freed behind it; its scratch is called like none
  // of the buffers. Passes that are not those of the schedule are too many or too few.
  void cut() {
    PassWalk walk(trace_);
    Cut next{0, 0};
    std::size_t call = 0;
    const auto skip = [&](auto is) {
      while (call < calls_.step.size() && is(calls_.step[call])) ++call;
    };
    for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
      const Step& step = schedule_.steps[i];
      if (const Run* run = std::get_if<Run>(&step)) {
        if (run->task != Task::Optimizer && begins_action(walk, *run)) cuts_.push_back(next);
        skip([&](const AllocatorCall& of) { return is_scratch(of); });
      } else if (std::holds_alternative<Free>(step)) {
        skip([](const AllocatorCall& of) { return of.kind == Kind::RecordStream; });
        ++call;
      } else if (std::holds_alternative<Allocate>(step) ||
                 std::holds_alternative<Synchronize>(step)) {
        ++call;
      }
      if (!std::holds_alternative<Allocate>(step)) next = {i + 1, call};
    }
  }

  bool begins_action(PassWalk& walk, const Run& run) const {
    const bool begins = walk.begins_pass(run) || cuts_.empty();
    if (!begins || cuts_.size() >= actions_.size()) return begins;
    const StageAction& action = actions_[cuts_.size()];
    return action.work == walk.work() && action.chunk == walk.chunk();
  }

  bool is_scratch(const AllocatorCall& call) const {
    return call.kind != Kind::CompleteEvents && call.slot >= owner_.size();
  }

  std::span<const AllocatorCall> calls_in(std::size_t action) const {
    const std::size_t begin = cuts_[action].call;
    const bool is_last = action + 1 == cuts_.size();
    const std::size_t end = is_last ? calls_.step.size() : cuts_[action + 1].call;
    return std::span(calls_.step).subspan(begin, end - begin);
  }
  std::span<const Step> steps_in(std::size_t action) const {
    const std::size_t begin = cuts_[action].step;
    const bool is_last = action + 1 == cuts_.size();
    const std::size_t end = is_last ? schedule_.steps.size() : cuts_[action + 1].step;
    return std::span(schedule_.steps).subspan(begin, end - begin);
  }

  // The tail stands behind all kinds of actions.
  std::size_t place_in(std::size_t action) const {
    return action + 1 == actions_.size() ? first_number_.size() - 1 : place_of(actions_[action]);
  }

  void number_slots() {
    std::vector<std::uint32_t> most(first_number_.size());
    for (std::size_t a = 0; a < actions_.size(); ++a) {
      std::uint32_t count = 0;
      for (const AllocatorCall& call : calls_in(a))
        if (call.kind == Kind::Allocate && !is_scratch(call)) owner_[call.slot] = {a, count++};
      most[place_in(a)] = std::max(most[place_in(a)], count);
    }
    for (std::size_t p = 0; p < most.size(); ++p)
      first_number_[p] = std::exchange(script_.each, script_.each + most[p]);
  }

  std::uint32_t own_slot(const Owner& owner) const {
    return script_.own + first_number_[place_in(owner.action)] + owner.number;
  }

  std::int64_t batch_of(const Owner& owner) const { return actions_[owner.action].micro_batch; }

  // What the action adds to what is allocated, and the most that it adds meanwhile.
  std::pair<Bytes, Bytes> asked_in(std::size_t a) {
    Bytes now, most;
    for (const AllocatorCall& call : calls_in(a)) {
      if (call.kind == Kind::Allocate) now += size_of_[call.slot] = call.size;
      if (call.kind == Kind::Free) now -= size_of_[call.slot];
      most = std::max(most, now);
    }
    return {now, most};
  }

  bool write_action(std::size_t a) {
    const StageAction& action = actions_[a];
    auto& scripts = action.micro_batch == 0   ? script_.first
                    : action.micro_batch == 1 ? script_.between
                                              : script_.last;
    ActionScript& script = scripts[place_of(action)];
    std::tie(script.added, script.most) = asked_in(a);
    for (AllocatorCall call : calls_in(a)) {
      if (call.kind != Kind::CompleteEvents && !is_scratch(call)) {
        const Owner& owner = owner_[call.slot];
        if (owner.action == nobody || batch_of(owner) != action.micro_batch) return false;
        call.slot = own_slot(owner);
      }
      script.calls.push_back(call);
    }
    for (const Step& step : steps_in(a)) {
      const Run* run = std::get_if<Run>(&step);
      if (!run) continue;
      if (run->stream != StreamId::Compute) return false;
      const Cost cost = costs_.of(schedule_, *run);
      add(script.pace, cost, script_.host_launch);
      if (exchange_of(trace_, schedule_, *run)) script.exchanges += cost.time;
    }
    return true;
  }

  bool write_tail() {
    const std::size_t a = actions_.size() - 1;
    script_.tail_action = actions_[a];
    if (script_.tail_action.micro_batch + 1 != scripted_batches) return false;
    for (AllocatorCall call : calls_in(a)) {
      if (call.kind != Kind::CompleteEvents && !is_scratch(call)) {
        const Owner& owner = owner_[call.slot];
        if (owner.action == nobody || batch_of(owner) == 1) return false;
        call.slot = own_slot(owner) + (batch_of(owner) == 0 ? 0 : script_.each);
      }
      script_.tail_calls.push_back(call);
    }
    script_.work = calls_.work - cuts_[a].call;
    script_.tail_most = asked_in(a).second;
    script_.streams = schedule_.streams;
    for (const Step& step : steps_in(a))
      if (const Run* run = std::get_if<Run>(&step))
        script_.tail.push_back({costs_.of(schedule_, *run),
                                run->task != Task::Optimizer && !is_collective(run->task),
                                exchange_of(trace_, schedule_, *run).has_value()});
    return schedule_.streams == 1 || play_tail();
  }

  // Several streams are simulated. Nothing in the tail may wait for the host, so that it goes on
  // as it does here however early the host was.
  bool play_tail() {
    const Timeline timeline = simulate(costs_, schedule_);
    const StepTimes all = times_of(trace_, schedule_, timeline);
    const auto first = std::ranges::find_if(timeline.runs, [&](const TimedRun& run) {
      return run.step >= cuts_.back().step && run.stream == StreamId::Compute;
    });
    if (first == timeline.runs.end() || timeline.host > first->begin) return false;
    Nanoseconds exchanged{};
    for (const StageAction& action : std::span(actions_).first(actions_.size() - 1))
      exchanged += script_in(script_, action, scripted_batches).exchanges;
    script_.streams_tail = {.duration = all.duration - first->begin,
                            .overlap = all.overlap,
                            .communication = {all.communication.alone - exchanged,
                                              all.communication.exposed - exchanged},
                            .behind = all.behind};
    return true;
  }

  const Trace& trace_;
  const Schedule& schedule_;
  const CostModel costs_;
  const AllocatorCalls calls_;
  std::vector<StageAction> actions_;
  std::vector<Cut> cuts_;                    ///< by action
  std::vector<Bytes> size_of_;               ///< by slot, of those that were allocated
  std::vector<Owner> owner_;                 ///< by buffer
  std::vector<std::uint32_t> first_number_;  ///< of a micro-batch's slots, by kind of action
  StageScript script_;
};

/// Device and host, as simulate() moves them on one stream.
class StageClock {
 public:
  explicit StageClock(StepTimes& times) : times_(times) {}

  Nanoseconds now() const { return now_; }
  Nanoseconds host() const { return host_; }
  Nanoseconds begin_after(Nanoseconds launch) const { return std::max(now_, host_ + launch); }

  void pass(const Pace& pace) {
    const Nanoseconds end = std::max(now_ + pace.busy, host_ + pace.late);
    times_.waits_for_host += end - now_ - pace.busy;
    now_ = end;
    host_ += pace.launches;
  }

 private:
  StepTimes& times_;
  Nanoseconds now_{}, host_{};
};

bool are_alike(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape && a.dtype == b.dtype && a.category == b.category &&
         a.trainable == b.trainable && a.storage == b.storage && a.held_until == b.held_until;
}

bool are_alike(const Op& a, const Op& b) {
  Op named = a;
  named.name = b.name, named.line = b.line, named.rng_key = b.rng_key;
  return named == b;
}

bool are_alike(const Block& a, const Block& b) {
  Block named = a;
  named.name = b.name;
  return named == b;
}

bool are_alike(const Trace& a, const Trace& b) {
  StepOptions step = a.step;
  step.rank = b.step.rank;
  const auto alike = [](const auto& x, const auto& y) { return are_alike(x, y); };
  return step == b.step && a.operands == b.operands && a.attributes == b.attributes &&
         a.opaque_rows == b.opaque_rows && a.update == b.update && a.loss == b.loss &&
         std::ranges::equal(a.tensors, b.tensors, alike) &&
         std::ranges::equal(a.ops, b.ops, alike) && std::ranges::equal(a.blocks, b.blocks, alike);
}

}  // namespace

bool are_alike(const PlannedStep& a, const PlannedStep& b) {
  return a.refusal == b.refusal && a.plan == b.plan && are_alike(*a.trace, *b.trace);
}

std::optional<StageScript> script_of(const Trace& asked, const Evaluation& placed,
                                     const Device& device) {
  const StepOptions& step = placed.planned.trace->step;
  CHECK(step.accumulate.count == scripted_batches && step.mesh[Axis::Pipeline] > 1);
  return Scripting(asked, placed, device).run();
}

std::optional<StepTimes> times_of(const StageScript& script, std::span<const StageAction> actions) {
  CHECK(!actions.empty() && place_of(actions.back()) == place_of(script.tail_action));
  StepTimes times;
  times.chunks.resize(static_cast<std::size_t>(script.schedule.chunks));
  StageClock clock(times);
  const std::int64_t count = count_of(actions);
  StageAction now;
  Nanoseconds since{};
  const auto turn_to = [&](const StageAction& next, Nanoseconds at) {
    time_of(times.chunks[static_cast<std::size_t>(now.chunk)], now.work) += at - since;
    now = next, since = at;
  };
  for (const StageAction& action : actions.first(actions.size() - 1)) {
    const ActionScript& part = script_in(script, action, count);
    if (&action != actions.data()) turn_to(action, clock.begin_after(*part.pace.first_launch));
    clock.pass(part.pace);
    times.communication.alone += part.exchanges;
  }
  times.communication.exposed = times.communication.alone;
  Pace tail;
  for (const LastRun& run : script.tail) add(tail, run.cost, script.host_launch);
  turn_to(actions.back(), clock.begin_after(*tail.first_launch));
  if (script.streams > 1) {
    if (clock.host() + tail.launches > clock.now()) return std::nullopt;
    const StepTimes& of = script.streams_tail;
    times.duration = clock.now() + of.duration;
    times.overlap = of.overlap;
    times.communication.alone += of.communication.alone;
    times.communication.exposed += of.communication.exposed;
    times.behind = of.behind;
  } else {
    Nanoseconds end{};
    for (const LastRun& run : script.tail) {
      Pace pace;
      add(pace, run.cost, script.host_launch);
      clock.pass(pace);
      if (run.ends_pass) end = clock.now();
      if (run.exchanges) times.communication.alone += run.cost.time;
    }
    times.communication.exposed = times.communication.alone;
    times.duration = std::max(clock.now(), clock.host());
    times.behind = times.duration - end;
  }
  turn_to({}, times.duration - times.behind);
  return times;
}

AllocatorCalls calls_of(const StageScript& script, std::span<const StageAction> actions) {
  AllocatorCalls calls;
  calls.before = script.before;
  const auto count = static_cast<std::uint32_t>(count_of(actions));
  const auto append = [&](std::span<const AllocatorCall> some, std::uint32_t from,
                          std::uint32_t shift) {
    for (AllocatorCall call : some) {
      if (call.slot >= from) call.slot += shift;
      calls.step.push_back(call);
    }
  };
  const auto work = actions.first(actions.size() - 1);
  std::size_t steps = script.tail_calls.size();
  for (const StageAction& action : work) steps += script_in(script, action, count).calls.size();
  calls.step.reserve(steps);
  for (const StageAction& action : work)
    append(script_in(script, action, count).calls, script.own,
           static_cast<std::uint32_t>(action.micro_batch) * script.each);
  calls.work = calls.step.size() + script.work;
  append(script.tail_calls, script.own + script.each, (count - 2) * script.each);
  calls.slots = script.own + count * script.each;
  calls.streams = script.streams;
  return calls;
}

allocator::LastRound last_round(const StageScript& script, std::span<const StageAction> actions,
                                std::int64_t micro_batches) {
  const std::int64_t count = count_of(actions);
  const auto calls_before = [&](std::int64_t micro_batch) {
    std::size_t calls = 0;
    for (const StageAction& action : actions.first(actions.size() - 1)) {
      if (action == StageAction{StageWork::Forward, micro_batch, 0}) break;
      calls += script_in(script, action, count).calls.size();
    }
    return calls;
  };
  const std::size_t begin = calls_before(count - 1);
  return {begin, begin - calls_before(count - 1 - micro_batches)};
}

Bytes requested_peak(const StageScript& script, std::span<const StageAction> actions) {
  Bytes now, most;
  for (const AllocatorCall& call : script.before) now += call.size;
  const std::int64_t count = count_of(actions);
  for (const StageAction& action : actions.first(actions.size() - 1)) {
    const ActionScript& part = script_in(script, action, count);
    most = std::max(most, now + part.most);
    now += part.added;
  }
  return std::max(most, now + script.tail_most);
}

}  // namespace tidemark
