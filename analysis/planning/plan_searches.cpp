// Of what each planner finds, the best; of equals the first, which offloads nothing.
#include "analysis/planning/plan_searches.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace tidemark {
namespace {

/// Of the time on the link that does not fit beside a stage's forward, so much is counted.
constexpr std::array shares_beyond = {1.0, 0.5, 0.25, 0.0};

template <typename Find, typename Worth>
std::optional<FoundPlan> best_of(const std::vector<const PlanSearch*>& searches, Find find,
                                 Worth worth) {
  std::optional<FoundPlan> best;
  decltype(worth(*searches.front(), 0)) least{};
  for (const PlanSearch* search : searches) {
    const std::optional<std::size_t> point = find(*search);
    if (!point) continue;
    const auto found = worth(*search, *point);
    if (!best || found < least) best = FoundPlan{search, *point}, least = found;
  }
  return best;
}

std::optional<FoundPlan> smaller(std::optional<FoundPlan> one, std::optional<FoundPlan> other) {
  if (!one || !other) return one ? one : other;
  return other->search->bytes_of(other->point) < one->search->bytes_of(one->point) ? other : one;
}

// What sums promise in as much more memory as the allocator may add to them, so that nothing better
// is left out.
std::int64_t promised_time(const PlanSearch& search, Bytes budget) {
  const Planner& planner = search.planner();
  if (search.overlaps() && planner.resource() == Resource::Time) return 0;  // two streams take less
  const std::optional<std::size_t> point =
      planner.within(budget.count + budget.count / most_beyond_sums + search.most_gone());
  return planner[point.value_or(0)].time;
}

// The step as it is, and in classes that may change operators with each strategy's; where blocks
// may be coupled, all of these once more for the network that has them. PyTorch's checkpoints
// change nothing.
std::vector<PlannedStep> steps_to_plan(const std::shared_ptr<const Trace>& trace,
                                       const PlanRequest& request) {
  std::vector<PlannedStep> steps = {plan_step(trace, parse_strategy(reference_strategy().name))};
  if (request.form != PlanForm::Tensors) return steps;
  const auto add = [&](const std::string& strategy) {
    PlannedStep step = plan_step(trace, parse_strategy(strategy));
    const auto is_same = [&](const PlannedStep& other) { return *other.trace == *step.trace; };
    if (!step.refusal.empty() || std::ranges::any_of(steps, is_same)) return;
    // How far operators that are opaque take gradients from exact ones is not known.
    if (step.trace->opaque_rows.size() > trace->opaque_rows.size()) return;
    step.plan.overlap = false;  // whether it does is for others to say
    steps.push_back(std::move(step));
  };
  std::vector<std::string> others;
  if (may_change_operators(request))
    for (const StrategyRow& row : strategies())
      if (row.rewrite && !row.is_another_network) others.emplace_back(row.name);
  for (const std::string& other : others) add(other);
  if (!may_couple(request)) return steps;
  for (const StrategyRow& row : strategies()) {
    if (!row.is_another_network) continue;
    add(std::string(row.name));
    for (const std::string& other : others) add(fmt::format("{}+{}", row.name, other));
  }
  return steps;
}

PlannerSettings settings_for(const PlanRequest& request, const PlanWatch& watch) {
  PlannerSettings settings{.form = request.form, .bits = code_bits_of(request)};
  settings.overlaps = may_overlap(request);
  settings.undoes_couplings = may_reconstruct(request);
  settings.is_stopped = watch.is_stopped;
  if (request.max_gradient_error)
    settings.most_error = *request.max_gradient_error * *request.max_gradient_error;
  return settings;
}

// Of these, where the plan that may join blocks joins none, one that may not is the same.
using CountedAlike = std::tuple<const Trace*, Resource, std::uint8_t>;
CountedAlike counted_alike(const PlanSearch& search) {
  return {&search.planner().trace(), search.planner().resource(), search.lanes()};
}

}  // namespace

PlanSearches::PlanSearches(const std::shared_ptr<const Trace>& trace, const Device& device,
                           const MemoryBudget& memory, const PlanRequest& request,
                           const PlanWatch& watch)
    : trace_(trace), device_(device), memory_(memory) {
  for (const PlannedStep& step : steps_to_plan(trace, request))
    if (sets_.empty() || !is_stopped(watch)) add(step, request, watch);
  if (!is_stopped(watch)) add_mixed();
  std::erase_if(sets_, [](const std::vector<PlanSearch>& ways) {
    return ways.front().planner().size() == 0;
  });
}

PlanSearches::PlanSearches(const std::shared_ptr<const Trace>& trace, const Device& device,
                           const MemoryBudget& memory, const PlanRequest& request,
                           const PlanWatch& watch, const std::string& operators)
    : trace_(trace), device_(device), memory_(memory) {
  add(plan_step(trace, parse_strategy(operators)), request, watch);
  if (exact().size() > 0) return;
  sets_.clear();
  add(plan_step(trace, parse_strategy(reference_strategy().name)), request, watch);
}

void PlanSearches::add(const PlannedStep& step, const PlanRequest& request,
                       const PlanWatch& watch) {
  std::vector<PlanSearch>& ways = sets_.emplace_back();
  ways.emplace_back(step, device_, memory_, request.measure, settings_for(request, watch));
  if (may_offload(request)) {
    for (const double share : shares_beyond)
      if (!is_stopped(watch)) ways.push_back(ways.back().with_offload(share, request.host_budget));
    if (!is_stopped(watch)) ways.push_back(ways.front().with_filled_link(request.host_budget));
  }
  if (may_overlap(request)) add_overlapping(ways, request, watch);
}

// Each lane has memory of its own: fewer of them hold less where what is reserved counts.
// Strategies have two, and more would allocate more than theirs.
void PlanSearches::add_overlapping(std::vector<PlanSearch>& ways, const PlanRequest& request,
                                   const PlanWatch& watch) const {
  const std::vector<PlanSearch> alone = ways;
  const bool takes_fewer = request.measure != Measure::Allocated || !request.budget;
  const auto add = [&](const PlanSearch& way, Resource resource, bool joins) {
    if (is_stopped(watch)) return;
    const bool is_first = ways.size() == alone.size();
    ways.push_back(way.with_overlap(resource, most_lanes, joins));
    if (takes_fewer || is_first) ways.push_back(ways.back().with_lanes(least_lanes));
  };
  for (const Resource resource : overlapped_resources) {
    add(alone.front(), resource, true);
    if (request.form == PlanForm::Tensors) add(alone.front(), resource, false);
  }
  for (std::size_t way = 1; way < alone.size(); ++way) add(alone[way], Resource::Time, true);
}

// Of each way to count time, the step as it is with the operators of all others.
void PlanSearches::add_mixed() {
  std::vector<PlanSearch> made;
  for (std::size_t way = 0; way < sets_.front().size(); ++way) {
    if (sets_.front()[way].fills_link()) continue;
    std::vector<const PlanSearch*> others;
    for (std::size_t set = 1; set < sets_.size(); ++set)
      if (!sets_[set][way].is_another_network()) others.push_back(&sets_[set][way]);
    if (std::optional<PlanSearch> mixed = sets_.front()[way].with_operators(others))
      made.push_back(std::move(*mixed));
  }
  if (!made.empty()) sets_.push_back(std::move(made));
}

std::vector<const PlanSearch*> PlanSearches::all() const {
  std::vector<const PlanSearch*> searches;
  for (const std::vector<PlanSearch>& ways : sets_)
    for (const PlanSearch& search : ways) searches.push_back(&search);
  return searches;
}

// Ways that may do the same have the same plans of strategies, however they count time.
std::vector<const PlanSearch*> PlanSearches::with_named_plans() const {
  std::vector<const PlanSearch*> searches;
  for (const std::vector<PlanSearch>& ways : sets_) {
    std::set<std::pair<bool, std::uint8_t>> seen;
    for (const PlanSearch& search : ways)
      if (seen.emplace(search.may_offload(), search.lanes()).second) searches.push_back(&search);
  }
  return searches;
}

std::int64_t PlanSearches::least_bytes() const {
  std::int64_t least = exact()[0].bytes;
  for (const PlanSearch* search : all()) least = std::min(least, search->planner()[0].bytes);
  return least;
}

std::optional<FoundPlan> PlanSearches::within(Bytes budget, bool must_fit) const {
  // Those that fill the link come last: sums of the others count time of copies that may cost none,
  // so that they would be left out for less than they are worth.
  std::vector<const PlanSearch*> order = all();
  std::ranges::stable_sort(order, {}, [&](const PlanSearch* search) {
    return std::pair(search->fills_link(), promised_time(*search, budget));
  });
  std::optional<FoundPlan> best;
  Nanoseconds least{};
  std::set<CountedAlike> joins_nothing;
  for (const PlanSearch* search : order) {
    if (best && promised_time(*search, budget) > least.count()) continue;
    if (!search->planner().joins() && joins_nothing.contains(counted_alike(*search))) continue;
    const std::optional<std::size_t> point = search->within(budget, must_fit);
    if (!point) continue;
    if (std::ranges::all_of(search->parts_at(*point),
                            [](const Planner::Part& part) { return part.count == 1; }))
      joins_nothing.insert(counted_alike(*search));
    const Nanoseconds time = search->time_of(*point);
    if (!best || time < least) best = FoundPlan{search, *point}, least = time;
  }
  for (const PlanSearch* search : with_named_plans()) {
    if (best && search->is_stopped()) break;
    const Nanoseconds enough = best ? least : Nanoseconds::max();
    if (const std::optional<std::size_t> point = search->named_within(budget, must_fit, enough))
      best = FoundPlan{search, *point}, least = search->time_of(*point);
  }
  return best;
}

std::optional<FoundPlan> PlanSearches::within_sums(std::int64_t bytes) const {
  return best_of(
      all(), [&](const PlanSearch& search) { return search.within_sums(bytes); },
      [](const PlanSearch& search, std::size_t point) { return search.time_of(point); });
}

std::optional<FoundPlan> PlanSearches::not_longer(Nanoseconds step) const {
  const auto bytes_of = [](const PlanSearch& search, std::size_t point) {
    return search.bytes_of(point);
  };
  const auto of_sums = [&](const PlanSearch& search) { return search.not_longer(step); };
  const auto whole = [&](const PlanSearch& search) { return search.smallest_whole(step); };
  return smaller(best_of(all(), of_sums, bytes_of), best_of(with_named_plans(), whole, bytes_of));
}

FoundPlan PlanSearches::smallest() const {
  const auto bytes_of = [](const PlanSearch& search, std::size_t point) {
    return search.bytes_of(point);
  };
  const auto first = [](const PlanSearch&) { return std::optional<std::size_t>(0); };
  const auto whole = [](const PlanSearch& search) {
    return search.smallest_whole(Nanoseconds::max());
  };
  return *smaller(best_of(all(), first, bytes_of), best_of(with_named_plans(), whole, bytes_of));
}

Nanoseconds PlanSearches::lower_bound(std::int64_t bytes, double link, bool are_joined) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::vector<PlanSearch>& ways : sets_) {
    // Bounds are those of the planner that the other ways were made of.
    const Planner& planner = ways.front().planner();
    const bool may_overlap = std::ranges::any_of(ways, &PlanSearch::overlaps);
    // One that is above another's does not count.
    const std::int64_t bound = may_overlap
                                   ? planner.lower_bound_of_streams(bytes, link, are_joined, least)
                               : are_joined ? planner.lower_bound_of_joined(bytes, link, least)
                                            : planner.lower_bound(bytes, link, least);
    least = std::min(least, bound);
  }
  return Nanoseconds(least);
}

Report PlanSearches::report_of(const FoundPlan& found) const {
  return evaluate(*trace_, found.search->step_at(found.point), device_, memory_).report;
}

std::optional<FoundPlan> plan_for(const PlanSearches& searches, const Planning& planning) {
  const PlanRequest& request = planning.request;
  if (!request.max_slowdown) return searches.within(planning.budget, !request.budget);
  const double vanilla = static_cast<double>(planning.comparison.rows.front().step.count());
  return searches.not_longer(
      Nanoseconds(static_cast<std::int64_t>(vanilla * (1 + *request.max_slowdown))));
}

}  // namespace tidemark
