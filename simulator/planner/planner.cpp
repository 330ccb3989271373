// Cuts propose, one lowering after the other measures what is proposed, sums are optimized exactly.
#include "simulator/planner/planner.h"

#include <algorithm>

#include "simulator/graph/differentiate.h"
#include "simulator/place/place.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {
namespace {

// A trace without blocks is one stage: beyond this its cuts take longer than they are worth.
constexpr std::size_t most_ops_of_a_stage = 4000;
constexpr std::size_t longest_menu = 64;

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

bool holds_any(const Stages& stages) {
  return std::ranges::any_of(stages.all, [](const Stage& stage) {
    return std::ranges::find(stage.held, true) != stage.held.end();
  });
}

}  // namespace

Planner::Planner(std::shared_ptr<const Trace> trace, const Device& device, const Counted& counted,
                 PlanForm form)
    : trace_(std::move(trace)),
      device_(device),
      counted_(counted),
      needs_(derive_needs(*trace_)),
      stages_(stages_of(*trace_, needs_)),
      costs_(*trace_, needs_, device_),
      keeping_(stages_.kinds.size()),
      free_(stages_.kinds.size()) {
  modes_.push_back({Held::Kept, std::vector<std::vector<Entry>>(stages_.kinds.size())});
  if (holds_any(stages_)) modes_.push_back({Held::Dropped, modes_.front().menus});
  costs_.tabulate();
  propose(form);
  for (Mode& mode : modes_) {
    measure(mode);
    for (std::vector<Entry>& menu : mode.menus) thin(menu);
    solve(mode);
  }
  merge_fronts();
}

void Planner::propose(PlanForm form) {
  const Schedule kept = schedule_of(*trace_, needs_, keep_everything(*trace_));
  reference_ = survey(*trace_, stages_, kept, costs_, device_, counted_);
  least_backward_ = least_backward(*trace_, stages_, kept, reference_, device_, counted_);
  const std::vector<std::int64_t> forward_ns = forward_times(*trace_, kept, costs_);
  std::vector<PlannedStep> named;
  named.push_back(plan_step(trace_, parse_strategy("checkpoint:blocks")));
  if (form == PlanForm::Tensors)
    named.push_back(plan_step(trace_, parse_strategy("checkpoint:selective")));
  for (std::size_t kind = 0; kind < stages_.kinds.size(); ++kind) {
    const Stage& stage = stages_.all[stages_.kinds[kind].front()];
    ProposalInput input{*trace_, needs_, stage, forward_ns};
    const bool is_cut = index(stage.end) - index(stage.begin) <= most_ops_of_a_stage;
    for (Mode& mode : modes_) {
      input.held = mode.held;
      MenuBuilder menu(stage, mode.held, mode.menus[kind]);
      menu.add(keep_all(stage));
      for (const PlannedStep& step : named)
        if (std::optional<LocalPlan> local = local_plan_of(*trace_, step.plan, stage))
          menu.add(std::move(*local));
      if (stage.decided.empty() || !is_cut) continue;
      const std::vector<Proposal> hull = hull_of(input);
      if (form == PlanForm::Tensors) menu.add(hull), menu.add(neighbours_of(input, hull));
      if (mode.held == Held::Kept) keeping_[kind] = hull;
    }
    input.held = Held::Free;
    if (!stage.decided.empty() && is_cut)
      free_[kind] = modes_.size() > 1 ? hull_of(input) : keeping_[kind];
  }
}

Survey Planner::survey_of(const std::vector<const LocalPlan*>& locals) const {
  const Plan plan = assembled(*trace_, stages_, locals);
  return survey(*trace_, stages_, schedule_of(*trace_, needs_, plan), costs_, device_, counted_);
}

// Stages do not see each other's plans, so one lowering measures as many as there are stages.
void Planner::measure(Mode& mode) {
  for (std::size_t done = 0, left = 1; left > 0; ++done) {
    std::vector<const LocalPlan*> locals(stages_.all.size());
    std::vector<std::size_t> entries(stages_.all.size());
    left = 0;
    for (std::size_t kind = 0; kind < mode.menus.size(); ++kind) {
      const std::vector<std::uint32_t>& members = stages_.kinds[kind];
      for (std::size_t m = 0; m < members.size(); ++m) {
        entries[members[m]] = std::min(done * members.size() + m, mode.menus[kind].size() - 1);
        locals[members[m]] = &mode.menus[kind][entries[members[m]]].plan;
      }
      const std::size_t measured = (done + 1) * members.size();
      left = std::max(left, mode.menus[kind].size() - std::min(measured, mode.menus[kind].size()));
    }
    const Survey found = survey_of(locals);
    for (std::size_t s = 0; s < stages_.all.size(); ++s)
      mode.menus[stages_.all[s].kind][entries[s]].cost = found.stages[s];
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
  std::int64_t late = 0;
  for (std::size_t s = 0; s < choices.size(); ++s) {
    std::int64_t most_late = 0;
    for (const Entry& entry : mode.menus[stages_.all[s].kind]) {
      choices[s].push_back({entry.cost.first.kept, need_of(s, entry.cost, late), entry.cost.time});
      most_late = std::max(most_late, entry.cost.first.late);
    }
    late += most_late;
  }
  mode.front.emplace(choices);
}

void Planner::merge_fronts() {
  std::vector<Step> all;
  for (std::uint32_t mode = 0; mode < modes_.size(); ++mode)
    for (std::uint32_t point = 0; point < modes_[mode].front->size(); ++point) {
      const Front::Point found = (*modes_[mode].front)[point];
      all.push_back(
          {found.room + reference_.before, found.time + reference_.rest_time, mode, point});
    }
  std::ranges::stable_sort(all, [](const Step& a, const Step& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.time < b.time;
  });
  for (const Step& step : all)
    if (points_.empty() || step.time < points_.back().time) points_.push_back(step);
}

std::optional<std::size_t> Planner::within(std::int64_t bytes) const {
  const auto after = std::ranges::upper_bound(points_, bytes, {}, &Step::bytes);
  if (bytes < reference_.rest || after == points_.begin()) return std::nullopt;
  return static_cast<std::size_t>(after - points_.begin()) - 1;
}

std::vector<const Planner::Entry*> Planner::entries_at(std::size_t point) const {
  const Mode& mode = modes_[points_[point].mode];
  const std::vector<std::uint32_t> numbers = mode.front->choices_at(points_[point].point);
  std::vector<const Entry*> entries;
  for (std::size_t s = 0; s < numbers.size(); ++s)
    entries.push_back(&mode.menus[stages_.all[s].kind][numbers[s]]);
  return entries;
}

Planner::Tightest Planner::tightest(std::size_t point) const {
  Tightest found;
  std::int64_t most = reference_.rest, before = reference_.before, late = 0;
  const std::vector<const Entry*> entries = entries_at(point);
  for (std::size_t s = 0; s < entries.size(); ++s) {
    const StagePass& cost = entries[s]->cost.first;
    if (const std::int64_t there = before + late + cost.forward; there > most)
      most = there, found = {s, false};
    const std::int64_t there = before + cost.backward + reference_.stages[s].first.gradients;
    if (there > most) most = there, found = {s, true};
    before += cost.kept;
    late += cost.late;
  }
  return found;
}

Plan Planner::plan_at(std::size_t point) const {
  std::vector<const LocalPlan*> locals;
  for (const Entry* entry : entries_at(point)) locals.push_back(&entry->plan);
  return assembled(*trace_, stages_, locals);
}

}  // namespace tidemark
