// Menus: the local plans that stages choose from, proposed by cuts and by strategies that have
// names (named_plans.cpp), and measured in lowered schedules.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/graph/differentiate.h"
#include "simulator/parallel/shards.h"
#include "simulator/place/place.h"
#include "simulator/planner/planner.h"
#include "simulator/planner/policy_form.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {
namespace {

constexpr std::size_t longest_menu = 64;
// Blocks are joined where memory is dear: the dearest prices are enough.
constexpr std::size_t prices_of_joined = 10;
// Of the step's time, for all the error that is allowed: prices from those that rule most codes out
// to those that let most in (of bounds: bounded_errors.cpp). Each is one more hull in the menu.
constexpr std::array shares_of_errors = {1.0, 0.1, 0.01};

Schedule schedule_of(const Trace& trace, const Needs& needs, const Plan& plan) {
  Derived derived{needs, derive_recovery(trace, plan, needs)};
  CHECK(derived.recovery.defects.empty());
  return place(differentiate(trace, plan, derived), placement_of(trace, plan));
}

// Of each op its forward runs, one in each of so many passes, from the schedule that runs nothing
// twice.
std::vector<Load> forward_load(const Trace& trace, const Schedule& schedule, const CostModel& costs,
                               std::int64_t passes) {
  std::vector<Load> load(trace.ops.size());
  for (const Step& step : schedule.steps)
    if (const Run* run = std::get_if<Run>(&step); run && run->task == Task::Forward)
      load[index(run->op)] = load_shared(costs.of(schedule, *run), passes, true);
  return load;
}

bool is_of_mode(const Stage& stage, const LocalPlan& local, Held held) {
  if (held == Held::Free) return true;
  for (std::size_t d = 0; d < stage.decided.size(); ++d)
    if (stage.held[d] && (local.forms[d].action == Action::Keep) != (held == Held::Kept))
      return false;
  return true;
}

class MenuBuilder {
 public:
  MenuBuilder(const Stage& stage, Held held, std::vector<Planner::Entry>& menu)
      : stage_(stage), held_(held), menu_(menu) {}

  void add(LocalPlan plan) {
    const auto is_same = [&](const Planner::Entry& entry) { return entry.plan == plan; };
    if (menu_.size() < longest_menu && is_of_mode(stage_, plan, held_) &&
        std::ranges::none_of(menu_, is_same))
      menu_.push_back({std::move(plan), {}});
  }
  void add(const std::vector<LocalPlan>& plans) {
    for (const LocalPlan& plan : plans) add(plan);
  }
  void add(const std::vector<Proposal>& proposals) {
    for (const Proposal& proposal : proposals) add(proposal.plan);
  }

 private:
  const Stage& stage_;
  Held held_;
  std::vector<Planner::Entry>& menu_;
};

// Gathered parameters that several stages read stay for the last of them. A rerun outside of blocks
// would hold them beyond that, in the memory of all stages between: no sum.
bool holds_gathered(const Trace& trace, const Needs& needs, const Stage& stage,
                    const LocalPlan& local) {
  if (!parameters_are_cut(trace.step) || stage.block >= 0) return false;
  const auto is_held = [&](TensorId input) {
    const TensorId storage = trace[input].storage;
    const OpId last = needs.last_read[index(storage)];
    return trace[storage].category == Category::Parameter && last != no_op && last >= stage.end;
  };
  return std::ranges::any_of(local.regions, [&](const LocalRegion& region) {
    for (std::size_t i = region.begin; i < region.end; ++i)
      if (std::ranges::any_of(trace.inputs(trace.ops[index(stage.begin) + i]), is_held))
        return true;
    return false;
  });
}

}  // namespace

// Each form by itself, everything else being kept: the codes' own passes, less what gradients read
// less. Together with others a form costs no less: reruns may have to decode, too, and a gradient
// that reads several operands in codes saves no more than with each of them alone.
void Planner::measure_codes() {
  coded_.resize(trace_->tensors.size());
  const std::vector<bool> quantizable = quantizable_storages(*trace_, needs_);
  std::vector<Menu> menus;
  for (const std::vector<std::uint32_t>& members : stages_.kinds) {
    const Stage& stage = stages_.all[members.front()];
    Menu& menu = menus.emplace_back();
    menu.push_back({keep_all(stage), {}});
    // `form_in`: of a local plan, that of the storage.
    const auto add = [&](TensorId storage, const auto& form_in) {
      for (const int each : settings_.bits) {
        if (!quantizable[index(storage)]) continue;
        if (bounds_errors() && noise_->of_codes(storage, each) > settings_.most_error) continue;
        menu.push_back({keep_all(stage), {}});
        form_in(menu.back().plan) = {Action::Quantize,
                                     mesa_encoding((*trace_)[storage].shape, each)};
      }
    };
    for (std::size_t d = 0; d < stage.decided.size(); ++d)
      if (!stage.held[d])
        add(stage.decided[d], [d](LocalPlan& plan) -> Form& { return plan.forms[d]; });
    for (std::size_t k = 0; k < stage.inputs.size(); ++k)
      if (stage.needed_here[k])
        add(stage.inputs[k], [k](LocalPlan& plan) -> Form& { return plan.inputs[k]; });
  }
  measure(stages_, menus);
  for (const Stage& stage : stages_.all)
    for (const Entry& entry : menus[stage.kind]) {
      const auto note = [&](TensorId storage, const Form& form) {
        if (form.action != Action::Quantize) return;
        coded_[index(storage)].push_back(
            {form.encoding, rounded(size_of_codes(form.encoding, (*trace_)[storage].shape)),
             entry.cost.time - menus[stage.kind].front().cost.time,
             entry.cost.forward_ns - menus[stage.kind].front().cost.forward_ns,
             entry.cost.load - menus[stage.kind].front().cost.load});
      };
      for (std::size_t d = 0; d < stage.decided.size(); ++d)
        note(stage.decided[d], entry.plan.forms[d]);
      for (std::size_t k = 0; k < stage.inputs.size(); ++k)
        note(stage.inputs[k], entry.plan.inputs[k]);
    }
}

// By tensor: in the form that takes least.
std::vector<std::int64_t> Planner::least_bytes() const {
  std::vector<std::int64_t> least;
  for (const Tensor& tensor : trace_->tensors) least.push_back(rounded(tidemark::size(tensor)));
  for (std::size_t t = 0; t < coded_.size(); ++t)
    for (const Coded& coded : coded_[t]) least[t] = std::min(least[t], coded.bytes);
  return least;
}

void Planner::propose() {
  const Schedule kept = schedule_of(*measured_, needs_, keep_everything(*trace_));
  reference_ = survey(*trace_, stages_, kept, *costs_, device_, counted_, Shared::Held);
  bare_ = survey(*trace_, stages_, kept, *costs_, device_, counted_);
  at_gradients_ = least_backward(*trace_, stages_, kept, bare_, device_, counted_, least_bytes());
  for (const std::vector<AtGradient>& stage : at_gradients_) {
    std::int64_t most = 0;
    for (const AtGradient& each : stage) most = std::max(most, each.bytes);
    least_backward_.push_back(most);
  }
  forward_load_ = forward_load(*trace_, kept, *costs_, trace_->step.accumulate.count);
  forward_ns_ = forward_in(resource_);
  gradient_runs_ = runs_of_backward(*measured_, kept, *costs_, counted_.like_second);
  for (Mode& mode : modes_) mode.menus.emplace_back(stages_.kinds.size());
  const std::vector<PlannedStep> named = named_steps();
  for (const PlannedStep& step : named) add_named(0, step);
  for (PlannedStep& step : steps_with_other_codes())
    add_named(0, std::move(step), Described::AsWhole);
  for (std::uint32_t kind = 0; kind < stages_.kinds.size(); ++kind) propose_single(named, kind);
  if (settings_.form != PlanForm::Tensors) return;
  joined_.reserve(joined_lengths.size());  // parts point into it
  for (const std::size_t length : joined_lengths) {
    JoinedStages joined = join(*trace_, needs_, stages_, length);
    if (joined.chain.all.size() == stages_.all.size() || is_stopped() ||
        !std::ranges::all_of(joined.chain.all, can_be_cut))
      break;
    const PlannedStep segmented =
        plan_step(trace_, parse_strategy(fmt::format("checkpoint:every={}", length)));
    for (Mode& mode : modes_)
      propose_joined(mode, joined, segmented, mode.menus.emplace_back(joined.chain.kinds.size()));
    joined_.push_back(std::move(joined));
    add_named(joined_.size(), segmented);
  }
}

std::vector<std::int64_t> Planner::forward_in(Resource resource) const {
  std::vector<std::int64_t> ns;
  for (const Load& load : forward_load_) ns.push_back(load[resource]);
  return ns;
}

// The hulls of a kind of stage that can be cut.
void Planner::cut(std::uint32_t kind, const std::vector<std::vector<Coded>>* coded) {
  const Stage& stage = stages_.all[stages_.kinds[kind].front()];
  ProposalInput input{*trace_, needs_, stage, forward_ns_, Held::Kept, coded};
  keeping_[kind] = hull_of(input);
  input.held = Held::Free;
  free_[kind] = can_drop_held(stages_) ? hull_of(input) : keeping_[kind];
  if (!undoes_[kind]) return;
  input.undoes_couplings = true;
  undoing_[kind] = hull_of(input);
  for (Proposal& proposal : undoing_[kind])
    proposal.kept -= undone_bytes(stages_.kinds[kind].front());
}

// Of the stage's inputs, if its couplings can be undone.
std::int64_t Planner::undone_bytes(std::size_t stage) const {
  std::int64_t bytes = 0;
  if (undoes_[stages_.all[stage].kind])
    for (const TensorId input : stages_.all[stage].inputs)
      bytes += rounded(tidemark::size((*trace_)[input]));
  return bytes;
}

// Where errors are bounded: the hulls at prices of errors, and that of exact plans with its
// neighbours.
std::vector<LocalPlan> Planner::of_less_error(const ProposalInput& input) const {
  std::vector<LocalPlan> plans;
  ProposalInput exact = input;
  exact.coded = nullptr;
  const std::vector<Proposal> hull = hull_of(exact);
  for (const Proposal& proposal : hull) plans.push_back(proposal.plan);
  for (const double share : shares_of_errors) {
    const std::vector<std::vector<Coded>> coded = coded_at(price_of_errors(share));
    ProposalInput priced = input;
    priced.coded = &coded;
    for (Proposal& proposal : hull_of(priced)) plans.push_back(std::move(proposal.plan));
  }
  for (Proposal& proposal : neighbours_of(exact, hull)) plans.push_back(std::move(proposal.plan));
  return plans;
}

void Planner::propose_single(const std::vector<PlannedStep>& named, std::uint32_t kind) {
  const Stage& stage = stages_.all[stages_.kinds[kind].front()];
  ProposalInput input{*trace_, needs_, stage, forward_ns_, Held::Free, coded_forms()};
  const bool is_cut = !stage.decided.empty() && can_be_cut(stage);
  undoes_[kind] = std::ranges::any_of(named, [&](const PlannedStep& step) {
    const std::optional<LocalPlan> local = local_plan_of(*trace_, needs_, step.plan, stage);
    return local && reconstructs_inputs(*local);
  });
  if (is_cut) cut(kind, coded_forms());
  for (Mode& mode : modes_) {
    input.held = mode.held;
    MenuBuilder menu(stage, mode.held, mode.menus.front()[kind]);
    menu.add(keep_all(stage));
    for (const PlannedStep& step : named)
      if (std::optional<LocalPlan> local = local_plan_of(*trace_, needs_, step.plan, stage))
        menu.add(std::move(*local));
    if (settings_.form == PlanForm::Policy) menu.add(policy_plans(input));
    if (!is_cut || settings_.form != PlanForm::Tensors) continue;
    const std::vector<Proposal> hull = mode.held == Held::Kept ? keeping_[kind] : hull_of(input);
    menu.add(hull);
    for (const Resource resource : overlapped_resources) {
      if (!settings_.overlaps) break;
      const std::vector<std::int64_t> shared = forward_in(resource);
      menu.add(hull_of({*trace_, needs_, stage, shared, mode.held, coded_forms()}));
    }
    if (bounds_errors()) menu.add(of_less_error(input));
    if (!is_stopped()) menu.add(neighbours_of(input, hull));
    std::erase_if(mode.menus.front()[kind], [&](const Entry& entry) {
      return holds_gathered(*trace_, needs_, stage, entry.plan);
    });
  }
}

// Of the kinds of stages within a joined one: where bytes are so dear that blocks' inputs count.
std::vector<double> Planner::prices_within(const Stage& stage) const {
  std::vector<double> prices;
  for (const Stage& single : stages_.all)
    if (single.begin >= stage.begin && single.end <= stage.end)
      for (const double price : prices_of(free_[single.kind])) prices.push_back(price);
  std::ranges::sort(prices, std::greater<>());
  prices.erase(std::unique(prices.begin(), prices.end()), prices.end());
  if (prices.size() > prices_of_joined) prices.resize(prices_of_joined);
  // Just above one, and far above all.
  for (double& price : prices) price *= 1.001;
  prices.push_back(prices.empty() ? 1 : 1000 * prices.front());
  return prices;
}

// A region that begins in one block and ends in another.
bool Planner::is_joint(const Stage& stage, const LocalPlan& local) const {
  return std::ranges::any_of(local.regions, [&](const LocalRegion& region) {
    const std::size_t first = index(stage.begin) + region.begin;
    const std::size_t last = index(stage.begin) + region.end - 1;
    return trace_->ops[first].block != trace_->ops[last].block;
  });
}

// Only what recovers several blocks as one: the rest is said of single ones. The
// plan that keeps most stands for stages about which nothing else is proposed.
void Planner::propose_joined(Mode& mode, const JoinedStages& joined, const PlannedStep& segmented,
                             std::vector<Menu>& menus) const {
  for (std::size_t kind = 0; kind < joined.chain.kinds.size(); ++kind) {
    const Stage& stage = joined.chain.all[joined.chain.kinds[kind].front()];
    const ProposalInput input{*trace_, needs_, stage, forward_ns_, mode.held, coded_forms()};
    MenuBuilder menu(stage, mode.held, menus[kind]);
    menu.add(stage.decided.empty() ? keep_all(stage) : cheapest_at(input, 0).plan);
    if (stage.block < 0 || stage.decided.empty()) continue;
    if (std::optional<LocalPlan> local = local_plan_of(*trace_, needs_, segmented.plan, stage))
      menu.add(std::move(*local));
    ProposalInput exact = input;
    exact.coded = nullptr;
    const std::vector<double> prices = prices_within(stage);
    std::vector<Proposal> found = cheapest_at(input, prices);
    if (bounds_errors())
      for (Proposal& proposal : cheapest_at(exact, prices)) found.push_back(std::move(proposal));
    for (Proposal& proposal : found)
      if (is_joint(stage, proposal.plan)) menu.add(std::move(proposal.plan));
  }
}

Survey Planner::survey_of(const Stages& stages, const std::vector<const LocalPlan*>& locals) const {
  Survey found = surveyed({*trace_, *measured_, needs_, *costs_}, stages, locals);
  // Who undoes couplings begins with its outputs, which nobody else needs by then.
  for (std::size_t s = 0; s < stages.all.size(); ++s) {
    if (!reconstructs_inputs(*locals[s])) continue;
    const StageCost& kept = reference_.stages[s];
    StageCost& cost = found.stages[s];
    cost.first.backward += cost.first.gradients - kept.first.gradients;
    cost.later.backward += cost.later.gradients - kept.later.gradients;
  }
  return found;
}

Survey Planner::survey_of(const Stages& stages, const Plan& whole) const {
  return survey(*trace_, stages, schedule_of(*measured_, needs_, whole), *costs_, device_, counted_,
                Shared::Held);
}

Survey Planner::surveyed(const StepAtHand& step, const Stages& stages,
                         const std::vector<const LocalPlan*>& locals) const {
  const Plan plan = assembled(step.trace, stages, locals);
  return survey(step.trace, stages, schedule_of(step.passes, step.needs, plan), step.costs, device_,
                counted_, Shared::Held);
}

namespace {

std::size_t divided_up(std::size_t count, std::size_t by) { return (count + by - 1) / by; }

// Stages do not see each other's plans, so one lowering measures as many as there are stages of
// each kind.
std::size_t lowerings_for(const Stages& stages,
                          const std::vector<std::vector<Planner::Entry>>& menus) {
  std::size_t most = 1;
  for (std::size_t kind = 0; kind < menus.size(); ++kind)
    most = std::max(most, divided_up(menus[kind].size(), stages.kinds[kind].size()));
  return most;
}

}  // namespace

// The kind with the most to measure for each of its stages says how often; others need no more
// stages than that leaves them. What ranks exchange follows the whole step's order, couplings are
// measured against it, and recorded steps name what belongs to all of it.
std::optional<ShorterStep> Planner::shorter_step(const Stages& stages,
                                                 const std::vector<Menu>& menus) const {
  const std::size_t lowerings = lowerings_for(stages, menus);
  if (lowerings == 1 || !trace_->step.mesh.is_one() || trace_->update || trace_->calls ||
      std::ranges::find(undoes_, true) != undoes_.end())
    return std::nullopt;
  std::vector<std::size_t> of_each_kind;
  for (const Menu& menu : menus) of_each_kind.push_back(divided_up(menu.size(), lowerings));
  return without_alike(*trace_, needs_, stages, of_each_kind);
}

void Planner::measure(const Stages& stages, std::vector<Menu>& menus) const {
  const std::optional<ShorterStep> shorter = shorter_step(stages, menus);
  if (!shorter)
    return measure(stages, menus, [&](const std::vector<const LocalPlan*>& locals) {
      return survey_of(stages, locals);
    });
  const auto passes = one_after_another(shorter->trace, measured_passes);
  const CostModel costs(*shorter->trace, shorter->needs, device_);
  measure(shorter->chain, menus, [&](const std::vector<const LocalPlan*>& locals) {
    return surveyed({*shorter->trace, *passes, shorter->needs, costs}, shorter->chain, locals);
  });
}

// What is not measured when nobody waits for more is no longer offered.
template <typename Measure>
void Planner::measure(const Stages& stages, std::vector<Menu>& menus, const Measure& survey) const {
  std::size_t done = 0;
  const std::size_t lowerings = lowerings_for(stages, menus);
  for (; done < lowerings && (done == 0 || !is_stopped()); ++done) {
    std::vector<const LocalPlan*> locals(stages.all.size());
    std::vector<std::size_t> entries(stages.all.size());
    for (std::size_t kind = 0; kind < menus.size(); ++kind) {
      const std::vector<std::uint32_t>& members = stages.kinds[kind];
      for (std::size_t m = 0; m < members.size(); ++m) {
        entries[members[m]] = std::min(done * members.size() + m, menus[kind].size() - 1);
        locals[members[m]] = &menus[kind][entries[members[m]]].plan;
      }
    }
    const Survey found = survey(locals);
    for (std::size_t s = 0; s < stages.all.size(); ++s)
      menus[stages.all[s].kind][entries[s]].cost = found.stages[s];
  }
  for (std::size_t kind = 0; kind < menus.size(); ++kind)
    menus[kind].resize(std::min(menus[kind].size(), done * stages.kinds[kind].size()));
}

void Planner::measure_menus() {
  for (Mode& mode : modes_) {
    for (std::size_t c = 0; c < mode.menus.size(); ++c) measure(chain(c), mode.menus[c]);
    measure_behind(mode);
    if (!mode.behind.empty()) thin(stages_, mode.behind);
    for (std::size_t c = 0; c < mode.menus.size(); ++c) thin(chain(c), mode.menus[c]);
  }
}

// Entries that another one beats in all terms would only make the lists longer. Errors are a term
// where they are bounded.
void Planner::thin(const Stages& stages, std::vector<Menu>& menus) const {
  const auto beats = [](const StageCost& a, const StageCost& b) {
    return a.time <= b.time && a.first.kept <= b.first.kept && a.first.forward <= b.first.forward &&
           a.first.backward <= b.first.backward && a.later.forward <= b.later.forward &&
           a.later.backward <= b.later.backward;
  };
  for (std::size_t kind = 0; kind < menus.size(); ++kind) {
    const Stage& stage = stages.all[stages.kinds[kind].front()];
    std::vector<double> errors;
    for (const Entry& entry : menus[kind])
      errors.push_back(bounds_errors() ? stage_error(*noise_, stage, entry.plan).square() : 0);
    const auto is_no_worse = [&](std::size_t a, std::size_t b) {
      return beats(menus[kind][a].cost, menus[kind][b].cost) && errors[a] <= errors[b];
    };
    Menu left;
    for (std::size_t i = 0; i < menus[kind].size(); ++i) {
      bool is_beaten = false;
      for (std::size_t k = 0; k < menus[kind].size() && !is_beaten; ++k)
        is_beaten = k != i && is_no_worse(k, i) && (k < i || !is_no_worse(i, k));
      if (!is_beaten) left.push_back(menus[kind][i]);
    }
    menus[kind] = std::move(left);
  }
}

}  // namespace tidemark
