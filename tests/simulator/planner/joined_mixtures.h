// Plans that recover neighbouring blocks together, as random as tests want them.
#pragma once

#include "simulator/cost/cost_model.h"
#include "simulator/lower.h"
#include "simulator/planner/planner.h"
#include "tests/simulator/dice.h"

namespace tidemark {

/// By op.
inline std::vector<std::int64_t> forward_ns_of(const Trace& trace, const Needs& needs,
                                               const Device& device) {
  const CostModel costs(trace, needs, device);
  const Schedule schedule = lower(trace, keep_everything(trace));
  std::vector<std::int64_t> ns(trace.ops.size());
  for (const Step& step : schedule.steps)
    if (const Run* run = std::get_if<Run>(&step); run && run->task == Task::Forward)
      ns[index(run->op)] = costs.of(schedule, *run).time.count();
  return ns;
}

/// Stages as they are, or as many blocks as one of `joined` says, with a local plan for each.
struct Mixture {
  Stages chain;
  std::vector<LocalPlan> locals;
};

/// Of plans that are the cheapest where a byte costs about so many ns.
inline Mixture mixture_of(const Planner& planner, const std::vector<JoinedStages>& joined,
                          const std::vector<std::int64_t>& forward_ns, double price, Dice& dice) {
  Mixture made;
  const auto add = [&](const Stage& stage) {
    // A price of its own now and then: what blocks do is not alike.
    const double its =
        dice.one_in(3) ? price * std::pow(2, static_cast<double>(dice.below(7)) - 3) : price;
    made.chain.all.push_back(stage);
    made.locals.push_back(
        stage.decided.empty()
            ? keep_all(stage)
            : cheapest_at({planner.trace(), planner.needs(), stage, forward_ns}, its).plan);
  };
  const std::vector<Stage>& single = planner.stages().all;
  for (std::size_t s = 0; s < single.size();) {
    const JoinedStages& each = dice.pick(joined);
    const Stage& stage = each.beginning[s];
    const bool is_joined = stage.begin != stage.end && !dice.one_in(4);
    add(is_joined ? stage : single[s]);
    s += is_joined ? each.length : 1;
  }
  return made;
}

inline std::vector<JoinedStages> all_joined(const Planner& planner) {
  std::vector<JoinedStages> joined;
  for (const std::size_t length : joined_lengths)
    joined.push_back(join(planner.trace(), planner.needs(), planner.stages(), length));
  return joined;
}

inline Schedule lowered(const Planner& planner, const Mixture& mixture) {
  std::vector<const LocalPlan*> locals;
  for (const LocalPlan& local : mixture.locals) locals.push_back(&local);
  return lower(planner.trace(), assembled(planner.trace(), mixture.chain, locals));
}

}  // namespace tidemark
