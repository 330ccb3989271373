// The repair loop: sums propose a point of the front, the arena or the allocator's replay disposes.
#include "analysis/planning/plan_search.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "simulator/allocator/allocator_replay.h"
#include "simulator/allocator/recorded_step.h"
#include "simulator/arena.h"
#include "simulator/lower.h"
#include "simulator/planner/filled_link.h"
#include "simulator/planner/meetings.h"
#include "simulator/simulate.h"
#include "simulator/timeline.h"
#include "traces/framework.h"

namespace tidemark {
namespace {

constexpr Bytes unlimited{std::int64_t{1} << 59};
/// Fragmentation is not monotone: so many neighbours of a point that fits are tried, too.
constexpr std::size_t neighbours = 8;
/// Where time is no sum, so many points of a little more and of a little less memory are tried,
/// too; fewer on several streams, where each takes longer and twice as many gained nothing.
constexpr std::size_t as_fast = 32, as_fast_beside = 16;
constexpr std::size_t samples = 64;

// Strategies that are two at once: blocks may have one of them and not the other.
constexpr std::pair<std::string_view, std::string_view> both = {"lowmemorybp", "approx-bp+ms-bp"};

std::vector<StrategySpec::Component> parts_of(std::vector<StrategySpec::Component> components) {
  if (components.size() == 1 && components.front().row->name == both.first)
    return parse_strategy(both.second).components;
  return components;
}

}  // namespace

Counted counted_for(Measure measure, const Trace& trace, const Device& device) {
  if (measure == Measure::Planned || measure == Measure::Live) return {};
  const Framework& framework = find_framework(trace.step.framework);
  return {.scratch = framework.op_scratch,
          .besides = allocator::workspaces_of_one_stream(framework, device)};
}

/// Neighbours are asked about again by each budget near them, from any thread.
struct PlanSearch::Simulated {
  std::mutex mutex;
  std::unordered_map<std::size_t, Nanoseconds> time;
  std::unordered_map<std::size_t, Bytes> bytes;
  // Where plans do what sums do not know of:
  std::unordered_map<std::size_t, std::shared_ptr<const Plan>> plans;
  // Where they fill the link:
  std::unordered_map<std::size_t, std::shared_ptr<const std::vector<Planner::Entry>>> entries;

  /// `made` by nobody twice, but for those who ask at the same time.
  template <typename Value, typename Make>
  Value get(std::unordered_map<std::size_t, Value>& known, std::size_t point, Make make) {
    {
      const std::lock_guard lock(mutex);
      if (const auto found = known.find(point); found != known.end()) return found->second;
    }
    const Value value = make();
    const std::lock_guard lock(mutex);
    return known.emplace(point, value).first->second;
  }
};

PlanSearch::PlanSearch(const PlannedStep& step, const Device& device, const MemoryBudget& memory,
                       Measure measure, PlannerSettings settings)
    : trace_(step.trace),
      rewrites_(step.rewrites),
      device_(device),
      memory_(memory),
      measure_(measure),
      is_stopped_(settings.is_stopped),
      simulated_(std::make_shared<Simulated>()) {
  settings.known = step.plan;
  planner_ = std::make_shared<const Planner>(trace_, device, counted_for(measure, *trace_, device),
                                             std::move(settings));
}

PlanSearch PlanSearch::with_offload(double share_beyond, std::optional<Bytes> host_budget) const {
  PlanSearch search = *this;
  search.planner_ = std::make_shared<const Planner>(*planner_, share_beyond);
  search.simulated_ = std::make_shared<Simulated>();
  search.may_offload_ = true;
  search.host_budget_ = host_budget;
  return search;
}

PlanSearch PlanSearch::with_filled_link(std::optional<Bytes> host_budget) const {
  PlanSearch search = *this;
  search.simulated_ = std::make_shared<Simulated>();
  search.may_offload_ = search.fills_link_ = true;
  search.host_budget_ = host_budget;
  std::int64_t forward = 0;
  for (std::size_t s = 0; s < planner_->stages().all.size(); ++s)
    forward += planner_->kept_cost(s).forward_ns;
  const auto carried = static_cast<std::int64_t>(static_cast<double>(forward) * 1e-9 *
                                                 device_.host_link_bytes_per_second);
  search.most_gone_ = std::min(carried, host_budget.value_or(unlimited).count);
  return search;
}

PlanSearch PlanSearch::with_overlap(Resource resource, std::uint8_t lanes, bool joins) const {
  PlanSearch search = *this;
  if (resource != planner_->resource() || joins != planner_->joins())
    search.planner_ = std::make_shared<const Planner>(*planner_, resource, joins);
  return search.with_lanes(lanes);
}

PlanSearch PlanSearch::with_lanes(std::uint8_t lanes) const {
  PlanSearch search = *this;
  search.lanes_ = lanes;
  search.simulated_ = std::make_shared<Simulated>();
  return search;
}

std::optional<PlanSearch> PlanSearch::with_operators(
    const std::vector<const PlanSearch*>& others) const {
  std::vector<BlockOperators> operators;
  for (const PlanSearch* other : others) {
    BlockOperators each{parts_of(other->rewrites_), other->planner_};
    if (planner_->takes_in_blocks(each)) operators.push_back(std::move(each));
  }
  if (operators.empty()) return std::nullopt;
  PlanSearch search = *this;
  search.planner_ = std::make_shared<const Planner>(*planner_, std::move(operators));
  search.simulated_ = std::make_shared<Simulated>();
  return search;
}

bool PlanSearch::is_another_network() const {
  return std::ranges::any_of(
      rewrites_, [](const auto& component) { return component.row->is_another_network; });
}

PlannedStep PlanSearch::step_at(std::size_t point) const {
  PlannedStep step = step_of_sums_at(point);
  if (fills_link_ || overlaps())
    step.plan = *simulated_->get(simulated_->plans, point, [&] {
      return std::make_shared<const Plan>(changed_plan_at(point));
    });
  return step;
}

PlannedStep PlanSearch::step_of_sums_at(std::size_t point) const {
  PlannedStep step = planner_->step_at(point);
  if (step.rewrites.empty()) step.rewrites = rewrites_;
  return step;
}

Plan PlanSearch::changed_plan_at(std::size_t point) const {
  PlannedStep step = step_of_sums_at(point);
  if (overlaps()) {
    recover_beside_gradients(step.plan);
    // A wait may hold memory until it is over. With as few lanes as strategies have, theirs wait
    // for nothing, as they say: then a plan in their bytes is at least as fast.
    const bool is_strategy = point >= planner_->size();
    if (lanes_ > least_lanes || !is_strategy)
      step.plan =
          meet_gradients(step, CostModel(*step.trace, step.derived->needs, device_), lanes_);
  }
  if (!fills_link_) return std::move(step.plan);
  std::vector<TensorId> may_leave;
  for (const Planner::Part& part : planner_->parts_at(point)) {
    const auto its = that_may_leave(planner_->trace(), *part.stage, part.entry->plan);
    may_leave.insert(may_leave.end(), its.begin(), its.end());
  }
  return fill_link(step, may_leave, device_, host_budget_.value_or(unlimited));
}

std::vector<Planner::Part> PlanSearch::parts_at(std::size_t point) const {
  std::vector<Planner::Part> parts = planner_->parts_at(point);
  if (!fills_link_) return parts;
  const auto entries = simulated_->get(simulated_->entries, point, [&] {
    const Plan plan = step_at(point).plan;
    std::vector<Planner::Entry> made;
    for (const Planner::Part& part : parts) {
      Planner::Entry& entry = made.emplace_back(*part.entry);
      entry.plan = as_offloaded_by(plan, *part.stage, std::move(entry.plan));
      entry.offloaded = offloaded_bytes(planner_->trace(), *part.stage, entry.plan);
      entry.cost.first.kept -= entry.offloaded;
    }
    return std::make_shared<const std::vector<Planner::Entry>>(std::move(made));
  });
  for (std::size_t p = 0; p < parts.size(); ++p) parts[p].entry = &(*entries)[p];
  return parts;
}

Bytes PlanSearch::bytes_of(std::size_t point) const {
  return simulated_->get(simulated_->bytes, point, [&] { return simulated_bytes(point); });
}

Bytes PlanSearch::simulated_bytes(std::size_t point) const {
  const PlannedStep step = step_at(point);
  const Schedule schedule = lower(step);
  if (measure_ == Measure::Planned) return plan_arena(schedule).size;
  if (measure_ == Measure::Live)
    return peak(schedule, simulate(*step.trace, step.derived->needs, schedule, device_)).bytes;
  const allocator::AllocatorResult result = allocator::replay_allocator(
      allocator::calls_of(step, schedule, device_), memory_.allocator, unlimited);
  return measure_ == Measure::Reserved ? result.reserved_peak : result.allocated_peak;
}

bool PlanSearch::is_time_a_sum() const {
  return !overlaps() && (!may_offload_ || fills_link_) && trace_->step.mesh.is_one();
}

// Sums say the least that a plan takes on one stream: what takes no less by them is not simulated.
bool PlanSearch::may_take_less(std::size_t point, Nanoseconds time) const {
  return overlaps() || planner_->least_time(point) < time.count();
}

std::size_t PlanSearch::points_as_fast() const { return overlaps() ? as_fast_beside : as_fast; }

// What copies, collectives or a second stream do beside a run is in no sum: of points that differ
// by little in sums, one before may be the faster one.
template <typename Accepts>
std::size_t PlanSearch::fastest_near(std::size_t found, Accepts accepts) const {
  if (is_time_a_sum()) return found;
  Nanoseconds least = time_of(found);
  for (std::size_t k = 1, last = found; k <= std::min(points_as_fast(), last) && !is_stopped();
       ++k) {
    if (!may_take_less(last - k, least)) continue;
    const Nanoseconds time = time_of(last - k);
    if (time < least && accepts(last - k)) found = last - k, least = time;
  }
  return found;
}

// Of the point's plan, less what of it waits in the host's memory.
std::int64_t PlanSearch::sum_of(std::size_t point) const {
  std::int64_t bytes = (*planner_)[point].bytes;
  for (const Planner::Part& part : parts_at(point)) bytes -= part.entry->offloaded;
  return std::max(bytes, planner_->rest());
}

std::optional<std::size_t> PlanSearch::last_within_sums(std::int64_t bytes) const {
  const std::optional<std::size_t> kept = planner_->within(bytes);
  if (!fills_link_ || bytes < planner_->rest()) return kept;
  std::size_t low = kept ? *kept + 1 : 0, high = planner_->size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (sum_of(middle) <= bytes)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 ? std::optional(low - 1) : std::nullopt;
}

std::optional<std::size_t> PlanSearch::within_sums(std::int64_t bytes) const {
  std::optional<std::size_t> point = last_within_sums(bytes);
  while (point && !keeps_host_budget(*point))
    point = *point > 0 ? std::optional(*point - 1) : std::nullopt;
  if (!point) return std::nullopt;
  return fastest_near(*point, [&](std::size_t other) { return keeps_host_budget(other); });
}

Nanoseconds PlanSearch::time_of(std::size_t point) const {
  return simulated_->get(simulated_->time, point, [&] {
    const PlannedStep step = step_at(point);
    return simulate(*step.trace, step.derived->needs, lower(step), device_).duration;
  });
}

bool PlanSearch::keeps_host_budget(std::size_t point) const {
  std::int64_t offloaded = 0;
  for (const Planner::Part& part : planner_->parts_at(point)) offloaded += part.entry->offloaded;
  return !host_budget_ || offloaded <= host_budget_->count;
}

bool PlanSearch::accepts(std::size_t point, Bytes budget, bool must_fit) const {
  if (!keeps_host_budget(point)) return false;
  if (bytes_of(point) > budget) return false;
  return !must_fit || fits(step_at(point), device_, memory_);
}

// Where the optimizer's step holds the peak, sums are equal and only fragmentation differs: some of
// those points, the fastest first, and then some between the one that fits and the one before it.
std::optional<std::size_t> PlanSearch::any_up_to(std::optional<std::size_t> last, Bytes budget,
                                                 bool must_fit) const {
  if (!last) return std::nullopt;
  for (std::size_t i = 0, before = *last; i <= samples; ++i) {
    const std::size_t point = *last - *last * i / samples;
    if (!accepts(point, budget, must_fit)) {
      before = point;
      continue;
    }
    for (std::size_t k = 1; k < neighbours && !is_stopped(); ++k)
      if (const std::size_t between = before - (before - point) * k / neighbours;
          between < before && accepts(between, budget, must_fit))
        return between;
    return point;
  }
  return std::nullopt;
}

std::optional<std::size_t> PlanSearch::named_within(Bytes budget, bool must_fit,
                                                    Nanoseconds enough) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < planner_->named() && !(best && is_stopped()); ++i) {
    const std::size_t point = planner_->size() + i;
    if (!may_take_less(point, enough)) continue;
    const Nanoseconds time = time_of(point);
    if (time < enough && accepts(point, budget, must_fit)) best = point, enough = time;
  }
  return best;
}

std::optional<std::size_t> PlanSearch::smallest_whole(Nanoseconds step) const {
  std::optional<std::size_t> best;
  Bytes least = unlimited;
  for (std::size_t point = planner_->size(); point < planner_->size() + planner_->named();
       ++point) {
    if (planner_->is_of_stages(point) || !keeps_host_budget(point) || time_of(point) > step)
      continue;
    if (const Bytes bytes = bytes_of(point); bytes < least) best = point, least = bytes;
  }
  return best;
}

// Goes on from each point that is found.
std::size_t PlanSearch::last_near(std::size_t found, Bytes budget, bool must_fit) const {
  const std::size_t last = planner_->size() - 1,
                    reach = is_time_a_sum() ? neighbours : points_as_fast();
  for (std::size_t i = std::min(found + reach, last); i > found && !is_stopped();)
    if (accepts(i, budget, must_fit))
      found = i, i = std::min(found + reach, last);
    else
      --i;
  return found;
}

std::optional<std::size_t> PlanSearch::within(Bytes budget, bool must_fit) const {
  std::size_t rejected = planner_->size();
  const std::int64_t most = budget.count + most_gone_;
  std::size_t found = planner_->within(most).value_or(0);
  while (!accepts(found, budget, must_fit)) {
    if (found == 0) return any_up_to(planner_->within(most), budget, must_fit);
    rejected = found;
    const std::int64_t bytes = (*planner_)[found].bytes;
    const std::int64_t above = bytes_of(found).count - budget.count;
    found = planner_->within(bytes - std::max(above, bytes / 128)).value_or(0);
  }
  for (std::size_t step = 1; found + step < rejected && !is_stopped(); step *= 2)
    (accepts(found + step, budget, must_fit) ? found : rejected) = found + step;
  while (rejected - found > 1 && !is_stopped()) {
    const std::size_t middle = (found + rejected) / 2;
    (accepts(middle, budget, must_fit) ? found : rejected) = middle;
  }
  found = last_near(found, budget, must_fit);
  if (is_stopped()) return found;
  if ((*planner_)[found].bytes - most_gone_ > planner_->rest())
    return fastest_near(found, [&](std::size_t point) { return accepts(point, budget, must_fit); });
  // Sums may be a little above what the optimizer's step holds: the slowest plan keeps the budget,
  // and so may any other of as many bytes.
  const std::int64_t bytes = std::max(budget.count, planner_->rest()) + most_gone_;
  return std::max(found, any_up_to(planner_->within(bytes), budget, must_fit).value_or(0));
}

std::optional<std::size_t> PlanSearch::not_longer(Nanoseconds step) const {
  std::size_t low = 0, high = planner_->size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (time_of(middle) <= step)
      high = middle;
    else
      low = middle + 1;
  }
  while (low < planner_->size() && !keeps_host_budget(low)) ++low;
  if (low == planner_->size()) return std::nullopt;
  if ((*planner_)[low].bytes - most_gone_ > planner_->rest()) return low;
  // The optimizer's step holds the peak: of plans that need no more, the fastest.
  return any_up_to(planner_->within(planner_->rest() + most_gone_), bytes_of(low), false)
      .value_or(low);
}

}  // namespace tidemark
