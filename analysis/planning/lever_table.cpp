// Strategies are compared, options are tried on all cores, and plans come last: they take longest.
#include "analysis/planning/lever_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analysis/rank_report.h"
#include "base/error.h"
#include "base/parallel.h"

namespace tidemark {
namespace {

// Of the front: rows of a table are read, and these are a budget and its quarters.
constexpr std::size_t plans_listed = 4;

std::string does_of(const StrategySpec& strategy) {
  std::string text;
  for (const auto& component : strategy.components)
    text += (text.empty() ? "" : "; ") + std::string(component.row->summary);
  return strategy.plan ? "a plan file" : text;
}

// What is there first, then all others.
std::vector<StrategySpec> compared_with(const Scenario& scenario, const StrategySpec& now) {
  std::vector<StrategySpec> all = {now};
  for (const StrategySpec& other :
       scenario.strategies.empty() ? default_strategies() : scenario.strategies)
    if (other.text != now.text) all.push_back(other);
  return all;
}

void add_strategies(LeverTable& table) {
  for (std::size_t i = 1; i < table.comparison.rows.size(); ++i) {
    const Report& row = table.comparison.rows[i];
    if (row.applies)
      table.tried.push_back({LeverKind::Strategy, row.strategy,
                             does_of(table.comparison.scenario.strategies[i]), row.caution, row});
  }
}

// Nothing where it does not apply, or where a plan file does not fit the changed step.
std::optional<Report> report_with(const Lever& lever, const StrategySpec& strategy) {
  try {
    const Scenario& changed = lever.changed;
    Report report = evaluate_ranks(traces_of(changed), strategy, changed.device,
                                   memory_budget_of(changed), changed.step.rank)
                        .report;
    return report.applies ? std::optional(std::move(report)) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

using IsStopped = std::function<bool()>;

struct Stopped {};

void stop_if_asked(const IsStopped& is_stopped) {
  if (is_stopped && is_stopped()) throw Stopped();
}

void add_options(const StrategySpec& strategy, const IsStopped& is_stopped, LeverTable& table) {
  const std::vector<Lever> levers = levers_of(table.comparison.scenario);
  std::vector<std::optional<Report>> reports(levers.size());
  parallel_for(levers.size(), [&](std::size_t i) {
    stop_if_asked(is_stopped);
    reports[i] = report_with(levers[i], strategy);
  });
  for (std::size_t i = 0; i < levers.size(); ++i)
    if (reports[i])
      table.tried.push_back({LeverKind::Option, levers[i].option, std::string(levers[i].does),
                             std::string(levers[i].caution), *reports[i]});
}

// The last of the front that keeps to the budget; the front's end if none does.
std::size_t last_within(const PlanFront& front, Bytes budget) {
  std::size_t last = 0;
  while (last + 1 < front.points.size() && front.points[last + 1].budget <= budget) ++last;
  return last;
}

void add_plans(LeverTable& table) {
  const PlanFront& front = table.plans;
  if (front.points.empty()) return;
  // What is there already is no lever; its own point is the last that is looked at.
  const std::size_t end = last_within(front, table.now().allocated_peak);
  std::vector<std::size_t> listed;
  const auto fits = [](const FrontPoint& point) { return point.report.fits; };
  if (const auto last = std::ranges::find_if(front.points.rbegin(), front.points.rend(), fits);
      !table.now().fits && last != front.points.rend())
    listed.push_back(static_cast<std::size_t>(front.points.rend() - last) - 1);
  for (std::size_t i = 0; i < plans_listed; ++i) listed.push_back(i * end / plans_listed);
  std::ranges::sort(listed);
  listed.erase(std::unique(listed.begin(), listed.end()), listed.end());
  for (const std::size_t i : listed) {
    const FrontPoint& point = front.points[i];
    table.tried.push_back({LeverKind::Plan, "plan for " + to_text(point.budget),
                           "recomputes what costs least in this budget", point.report.caution,
                           point.report, point.budget});
  }
}

// In a budget that vanilla keeps to nobody needs advice, which takes long.
PlanFront exact_front(const Scenario& scenario, const Report& vanilla,
                      const IsStopped& is_stopped) {
  const PlanRequest request{.budget = std::max(vanilla.allocated_peak, Bytes{1}),
                            .front_points = points_of_front};
  Planning planning = plan_within(scenario, request, {.is_stopped = is_stopped});
  return planning.fronts.empty() ? PlanFront{} : std::move(planning.fronts.front());
}

// Of many GPUs, of a trace without blocks: no plan is made.
void plan_if_possible(LeverTable& table, const IsStopped& is_stopped) {
  const auto& rows = table.comparison.rows;
  const auto vanilla = std::ranges::find(rows, reference_strategy().name, &Report::strategy);
  if (vanilla == rows.end()) return;
  try {
    table.plans = exact_front(table.comparison.scenario, *vanilla, is_stopped);
  } catch (const InputError&) {
    return;
  }
  add_plans(table);
}

auto rank(const TriedLever& lever, bool fits_already, Measure measure) {
  const bool helps = !fits_already && lever.report.fits;
  const double time = helps ? 1 / std::max(1e-9, lever.report.samples_per_second) : 0;
  return std::tuple(!helps, helps && !lever.caution.empty(), time,
                    measured(lever.report, measure).count, lever.report.step.count());
}

}  // namespace

LeverTable try_levers(const Scenario& scenario, const StrategySpec& strategy,
                      const std::function<void(const LeverTable&)>& progress,
                      const std::function<bool()>& is_stopped) {
  LeverTable table;
  const auto tell_next = [&](std::string_view next) {
    stop_if_asked(is_stopped);
    table.next = next;
    if (progress) progress(table);
  };
  Scenario asked = scenario;
  asked.strategies = compared_with(scenario, strategy);
  try {
    table.comparison = compare(asked, [&](std::size_t) { stop_if_asked(is_stopped); });
    if (!table.now().applies) return table;
    add_strategies(table);
    tell_next("options");
    add_options(strategy, is_stopped, table);
    tell_next("plans");
    plan_if_possible(table, is_stopped);
    tell_next("");
  } catch (const Stopped&) {
    table.next = "nothing: stopped";
  }
  return table;
}

std::vector<const TriedLever*> unbeaten(const LeverTable& table, Measure measure) {
  std::vector<const TriedLever*> all;
  for (const TriedLever& lever : table.tried) all.push_back(&lever);
  std::ranges::stable_sort(all, {}, [&](const TriedLever* lever) {
    return std::tuple(measured(lever->report, measure).count, lever->report.step.count());
  });
  std::vector<const TriedLever*> front;
  for (const TriedLever* lever : all)
    if (front.empty() || lever->report.samples_per_second > front.back()->report.samples_per_second)
      front.push_back(lever);
  return front;
}

double time_ratio(const Report& with, const Report& without) {
  return with.samples_per_second > 0 ? without.samples_per_second / with.samples_per_second : 1;
}

std::vector<const TriedLever*> lowering(const LeverTable& table, Measure measure) {
  const auto before = static_cast<double>(measured(table.now(), measure).count);
  std::vector<const TriedLever*> found;
  for (const TriedLever& lever : table.tried)
    if (static_cast<double>(measured(lever.report, measure).count) < (1 - least_effect) * before ||
        (lever.report.fits && !table.now().fits))
      found.push_back(&lever);
  std::ranges::stable_sort(
      found, {}, [&](const TriedLever* lever) { return rank(*lever, table.now().fits, measure); });
  return found;
}

}  // namespace tidemark
