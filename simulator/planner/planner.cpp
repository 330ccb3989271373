// Cuts propose, one lowering after the other measures what is proposed, sums are optimized exactly.
#include "simulator/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/graph/differentiate.h"
#include "simulator/place/place.h"
#include "simulator/planner/policy_form.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {
namespace {

// A trace without blocks is one stage: beyond this its cuts take longer than they are worth.
constexpr std::size_t most_ops_of_a_stage = 4000;
constexpr std::size_t longest_menu = 64;
// Blocks are joined where memory is dear: the dearest prices are enough.
constexpr std::size_t prices_of_joined = 4;

Schedule schedule_of(const Trace& trace, const Needs& needs, const Plan& plan) {
  Derived derived{needs, derive_recovery(trace, plan, needs)};
  CHECK(derived.recovery.defects.empty());
  return place(differentiate(trace, plan, derived), placement_of(plan));
}

// Of each op its forward runs, one in each pass, from the schedule that runs nothing twice.
std::vector<std::int64_t> forward_times(const Trace& trace, const Schedule& schedule,
                                        const CostModel& costs) {
  std::vector<std::int64_t> times(trace.ops.size());
  for (const Step& step : schedule.steps)
    if (const Run* run = std::get_if<Run>(&step); run && run->task == Task::Forward)
      times[index(run->op)] += costs.of(schedule, *run).time.count();
  return times;
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

// Entries that another one beats in all terms would only make the lists longer.
void thin(std::vector<Planner::Entry>& menu) {
  const auto beats = [](const StageCost& a, const StageCost& b) {
    return a.time <= b.time && a.first.kept <= b.first.kept && a.first.forward <= b.first.forward &&
           a.first.backward <= b.first.backward && a.later.forward <= b.later.forward &&
           a.later.backward <= b.later.backward;
  };
  std::vector<Planner::Entry> left;
  for (std::size_t i = 0; i < menu.size(); ++i) {
    bool is_beaten = false;
    for (std::size_t k = 0; k < menu.size() && !is_beaten; ++k)
      is_beaten = k != i && beats(menu[k].cost, menu[i].cost) &&
                  (k < i || !beats(menu[i].cost, menu[k].cost));
    if (!is_beaten) left.push_back(menu[i]);
  }
  menu = std::move(left);
}

std::size_t count_ops(const Stage& stage) { return index(stage.end) - index(stage.begin); }

bool can_be_cut(const Stage& stage) { return count_ops(stage) <= most_ops_of_a_stage; }

bool can_drop_held(const Stages& stages) {
  bool holds_any = false;
  for (const Stage& stage : stages.all) {
    if (std::ranges::find(stage.held, true) == stage.held.end()) continue;
    if (!can_be_cut(stage)) return false;
    holds_any = true;
  }
  return holds_any;
}

}  // namespace

Planner::Planner(std::shared_ptr<const Trace> trace, const Device& device, const Counted& counted,
                 PlanForm form, const std::vector<int>& bits)
    : trace_(std::move(trace)),
      device_(device),
      counted_(counted),
      needs_(derive_needs(*trace_)),
      stages_(stages_of(*trace_, needs_)),
      costs_(std::make_unique<CostModel>(*trace_, needs_, device_)),
      keeping_(stages_.kinds.size()),
      free_(stages_.kinds.size()) {
  const bool has_modes = can_drop_held(stages_);
  const bool is_mixed = has_modes && form != PlanForm::Tensors;
  modes_.push_back({is_mixed ? Held::Free : Held::Kept});
  if (has_modes && !is_mixed) modes_.push_back({Held::Dropped});
  if (!bits.empty()) measure_codes(bits);
  propose(form);
  for (Mode& mode : modes_) {
    for (std::size_t c = 0; c < mode.menus.size(); ++c) measure(chain(c), mode.menus[c]);
    for (std::vector<Menu>& menus : mode.menus)
      for (Menu& menu : menus) thin(menu);
  }
  count_ranges();
  solve_all();
}

Planner::Planner(const Planner& exact, double share_beyond)
    : trace_(exact.trace_),
      device_(exact.device_),
      counted_(exact.counted_),
      needs_(exact.needs_),
      stages_(exact.stages_),
      joined_(exact.joined_),
      share_beyond_(share_beyond),
      coded_(exact.coded_),
      steady_(exact.steady_),
      forward_ns_(exact.forward_ns_),
      reference_(exact.reference_),
      least_backward_(exact.least_backward_),
      keeping_(exact.keeping_),
      free_(exact.free_) {
  for (const Mode& mode : exact.modes_) modes_.push_back({mode.held, mode.menus});
  for (Mode& mode : modes_) offer_offload(mode);
  solve_all();
}

// Ranges stay from step to step, and so they are there for every stage: those of all that may be
// coded, whatever is.
void Planner::count_ranges() {
  for (std::size_t t = 0; t < coded_.size(); ++t) {
    std::int64_t most = 0;
    for (const Coded& coded : coded_[t])
      most = std::max(most, rounded(size_of_ranges(coded.encoding, trace_->tensors[t].shape)));
    steady_ += most;
  }
}

void Planner::solve_all() {
  for (Mode& mode : modes_) solve(mode);
  merge_fronts();
}

// Each form by itself, everything else being kept: the codes' own passes, less what gradients read
// less. Together with others a form costs no less: reruns may have to decode, too, and a gradient
// that reads several operands in codes saves no more than with each of them alone.
void Planner::measure_codes(const std::vector<int>& bits) {
  coded_.resize(trace_->tensors.size());
  const std::vector<bool> quantizable = quantizable_storages(*trace_, needs_);
  std::vector<Menu> menus;
  for (const std::vector<std::uint32_t>& members : stages_.kinds) {
    const Stage& stage = stages_.all[members.front()];
    Menu& menu = menus.emplace_back();
    menu.push_back({keep_all(stage), {}});
    for (std::size_t d = 0; d < stage.decided.size(); ++d)
      for (const int each : bits) {
        if (!quantizable[index(stage.decided[d])] || stage.held[d]) continue;
        menu.push_back({keep_all(stage), {}});
        const Shape& shape = (*trace_)[stage.decided[d]].shape;
        menu.back().plan.forms[d] = {Action::Quantize, mesa_encoding(shape, each)};
      }
  }
  measure(stages_, menus);
  for (const Stage& stage : stages_.all)
    for (const Entry& entry : menus[stage.kind])
      for (std::size_t d = 0; d < stage.decided.size(); ++d) {
        const Form& form = entry.plan.forms[d];
        if (form.action != Action::Quantize) continue;
        const TensorId storage = stage.decided[d];
        coded_[index(storage)].push_back(
            {form.encoding, rounded(size_of_codes(form.encoding, (*trace_)[storage].shape)),
             entry.cost.time - menus[stage.kind].front().cost.time});
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

void Planner::propose(PlanForm form) {
  const Schedule kept = schedule_of(*trace_, needs_, keep_everything(*trace_));
  reference_ = survey(*trace_, stages_, kept, *costs_, device_, counted_);
  least_backward_ =
      least_backward(*trace_, stages_, kept, reference_, device_, counted_, least_bytes());
  forward_ns_ = forward_times(*trace_, kept, *costs_);
  for (Mode& mode : modes_) mode.menus.emplace_back(stages_.kinds.size());
  std::vector<PlannedStep> named = {plan_step(trace_, parse_strategy("checkpoint:blocks"))};
  if (form == PlanForm::Tensors)
    named.push_back(plan_step(trace_, parse_strategy("checkpoint:selective")));
  for (const PlannedStep& step : named) add_named(stages_, 1, step);
  for (std::uint32_t kind = 0; kind < stages_.kinds.size(); ++kind)
    propose_single(form, named, kind);
  if (form != PlanForm::Tensors) return;
  joined_.reserve(joined_lengths.size());  // parts point into it
  for (const std::size_t length : joined_lengths) {
    JoinedStages joined = join(*trace_, needs_, stages_, length);
    if (joined.chain.all.size() == stages_.all.size() ||
        !std::ranges::all_of(joined.chain.all, can_be_cut))
      break;
    const PlannedStep segmented =
        plan_step(trace_, parse_strategy(fmt::format("checkpoint:every={}", length)));
    for (Mode& mode : modes_)
      propose_joined(mode, joined, segmented, mode.menus.emplace_back(joined.chain.kinds.size()));
    joined_.push_back(std::move(joined));
    add_named(joined_.back().chain, length, segmented);
  }
}

// Not if it decides about anything that no stage of the chain decides about by itself.
void Planner::add_named(const Stages& stages, std::size_t length, const PlannedStep& step) {
  if (!step.refusal.empty()) return;
  NamedPlan named;
  for (const Stage& stage : stages.all) {
    std::optional<LocalPlan> local = local_plan_of(*trace_, step.plan, stage);
    if (!local) return;
    named.entries.push_back({std::move(*local), {}});
  }
  std::vector<const LocalPlan*> locals;
  for (const Entry& entry : named.entries) locals.push_back(&entry.plan);
  const Survey found = survey_of(stages, locals);
  std::uint32_t first = 0;
  for (std::size_t s = 0; s < stages.all.size(); ++s) {
    named.entries[s].cost = found.stages[s];
    const bool is_joined = stages.all[s].end != stages_.all[first].end;
    const auto count = static_cast<std::uint32_t>(is_joined ? length : 1);
    named.parts.push_back({&stages.all[s], first, count, &named.entries[s]});
    first += count;
  }
  named_.push_back(std::move(named));
}

void Planner::propose_single(PlanForm form, const std::vector<PlannedStep>& named,
                             std::uint32_t kind) {
  const Stage& stage = stages_.all[stages_.kinds[kind].front()];
  ProposalInput input{*trace_, needs_, stage, forward_ns_, Held::Free, coded_forms()};
  const bool is_cut = !stage.decided.empty() && can_be_cut(stage);
  if (is_cut) {
    input.held = Held::Kept;
    keeping_[kind] = hull_of(input);
    input.held = Held::Free;
    free_[kind] = can_drop_held(stages_) ? hull_of(input) : keeping_[kind];
  }
  for (Mode& mode : modes_) {
    input.held = mode.held;
    MenuBuilder menu(stage, mode.held, mode.menus.front()[kind]);
    menu.add(keep_all(stage));
    for (const PlannedStep& step : named)
      if (std::optional<LocalPlan> local = local_plan_of(*trace_, step.plan, stage))
        menu.add(std::move(*local));
    if (form == PlanForm::Policy) menu.add(policy_plans(input));
    if (!is_cut || form != PlanForm::Tensors) continue;
    const std::vector<Proposal> hull = mode.held == Held::Kept ? keeping_[kind] : hull_of(input);
    menu.add(hull);
    menu.add(neighbours_of(input, hull));
  }
}

// Of the kinds of stages within a joined one: where bytes are so dear that blocks' inputs count.
std::vector<double> Planner::prices_within(const Stage& stage) const {
  std::vector<double> prices;
  for (const Stage& single : stages_.all)
    if (single.begin >= stage.begin && single.end <= stage.end)
      for (const double price : prices_of(free_[single.kind])) prices.push_back(price);
  std::ranges::sort(prices, std::greater<>());
  prices.erase(std::ranges::unique(prices).begin(), prices.end());
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
    if (std::optional<LocalPlan> local = local_plan_of(*trace_, segmented.plan, stage))
      menu.add(std::move(*local));
    for (const double price : prices_within(stage))
      if (LocalPlan local = cheapest_at(input, price).plan; is_joint(stage, local))
        menu.add(std::move(local));
  }
}

Survey Planner::survey_of(const Stages& stages, const std::vector<const LocalPlan*>& locals) const {
  const Plan plan = assembled(*trace_, stages, locals);
  return survey(*trace_, stages, schedule_of(*trace_, needs_, plan), *costs_, device_, counted_);
}

// Stages do not see each other's plans, so one lowering measures as many as there are stages.
void Planner::measure(const Stages& stages, std::vector<Menu>& menus) const {
  for (std::size_t done = 0, left = 1; left > 0; ++done) {
    std::vector<const LocalPlan*> locals(stages.all.size());
    std::vector<std::size_t> entries(stages.all.size());
    left = 0;
    for (std::size_t kind = 0; kind < menus.size(); ++kind) {
      const std::vector<std::uint32_t>& members = stages.kinds[kind];
      for (std::size_t m = 0; m < members.size(); ++m) {
        entries[members[m]] = std::min(done * members.size() + m, menus[kind].size() - 1);
        locals[members[m]] = &menus[kind][entries[members[m]]].plan;
      }
      const std::size_t measured = (done + 1) * members.size();
      left = std::max(left, menus[kind].size() - std::min(measured, menus[kind].size()));
    }
    const Survey found = survey_of(stages, locals);
    for (std::size_t s = 0; s < stages.all.size(); ++s)
      menus[stages.all[s].kind][entries[s]].cost = found.stages[s];
  }
}

// What a stage's neighbours leave before its backward does not depend on anybody's plan.
std::int64_t Planner::need_of(std::size_t stage, const StageCost& cost, std::int64_t late) const {
  const StageCost& kept = reference_.stages[stage];
  const std::int64_t first =
      std::max(late + cost.first.forward, cost.first.backward + kept.first.gradients);
  if (!reference_.has_later) return first;
  const std::int64_t later =
      std::max(late + cost.later.forward, cost.later.backward + kept.later.gradients);
  return std::max(first, later + reference_.before_later);
}

void Planner::solve(Mode& mode) {
  std::vector<std::vector<Choice>> choices(stages_.all.size());
  mode.parts.resize(choices.size());
  std::int64_t late = 0, passing = 0;
  for (std::uint32_t s = 0; s < choices.size(); ++s) {
    const auto offer = [&](const Stage& stage, std::uint32_t count, const Entry& entry) {
      const auto stall =
          static_cast<std::int64_t>(share_beyond_ * static_cast<double>(entry.stall));
      choices[s].push_back({entry.cost.first.kept,
                            need_of(s + count - 1, entry.cost, late) + passing,
                            entry.cost.time + stall, count});
      mode.parts[s].push_back({&stage, s, count, &entry});
    };
    std::int64_t most_late = 0, most_passing = 0;
    for (const Entry& entry : mode.menus.front()[stages_.all[s].kind]) {
      if (entry.offloaded > 0 && stages_.all[s].left_by == no_op) continue;
      offer(stages_.all[s], 1, entry);
      most_late = std::max(most_late, entry.cost.first.late);
      most_passing = std::max(most_passing, entry.offloaded);
    }
    for (std::size_t c = 0; c < joined_.size(); ++c)
      if (const Stage& stage = joined_[c].beginning[s]; stage.begin != stage.end)
        for (const Entry& entry : mode.menus[c + 1][stage.kind])
          if (is_joint(stage, entry.plan))
            offer(stage, static_cast<std::uint32_t>(joined_[c].length), entry);
    late += most_late;
    passing = most_passing;  // what the stage before may have under way: leaving, and coming back
  }
  mode.front.emplace(choices);
}

void Planner::merge_fronts() {
  std::vector<Step> all;
  for (std::uint32_t mode = 0; mode < modes_.size(); ++mode)
    for (std::uint32_t point = 0; point < modes_[mode].front->size(); ++point) {
      const Front::Point found = (*modes_[mode].front)[point];
      all.push_back({found.room + reference_.before + steady_, found.time + reference_.rest_time,
                     mode, point});
    }
  std::ranges::stable_sort(all, [](const Step& a, const Step& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.time < b.time;
  });
  for (const Step& step : all)
    if (points_.empty() || step.time < points_.back().time) points_.push_back(step);
}

std::optional<std::size_t> Planner::within(std::int64_t bytes) const {
  const auto after = std::ranges::upper_bound(points_, bytes, {}, &Step::bytes);
  if (bytes < rest() || after == points_.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - points_.begin()) - 1;
}

std::vector<Planner::Part> Planner::parts_at(std::size_t point) const {
  if (point >= points_.size()) return named_[point - points_.size()].parts;
  const Mode& mode = modes_[points_[point].mode];
  std::vector<Part> parts;
  for (const Front::Picked& picked : mode.front->choices_at(points_[point].point))
    parts.push_back(mode.parts[picked.stage][picked.choice]);
  return parts;
}

Planner::Tightest Planner::tightest(std::size_t point) const {
  Tightest found;
  std::int64_t most = reference_.rest, before = reference_.before, late = 0;
  for (const Part& part : parts_at(point)) {
    const StagePass& cost = part.entry->cost.first;
    const std::size_t last = part.first + part.count - 1;
    if (const std::int64_t there = before + late + cost.forward; there > most)
      most = there, found = {part.first, false};
    const std::int64_t there = before + cost.backward + reference_.stages[last].first.gradients;
    if (there > most) most = there, found = {part.first, true};
    before += cost.kept;
    late += cost.late;
  }
  return found;
}

Plan Planner::plan_at(std::size_t point) const {
  Plan plan = keep_everything(*trace_);
  for (const Part& part : parts_at(point)) apply(*trace_, *part.stage, part.entry->plan, plan);
  return plan;
}

}  // namespace tidemark
