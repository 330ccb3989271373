// Looks a budget up in a planner's front, and corrects for what sums do not know.
#pragma once

#include "analysis/planning/planning.h"
#include "simulator/planner/planner.h"

namespace tidemark {

/// What a planner has to count for budgets in this measure.
Counted counted_for(Measure measure, const Trace& trace, const Device& device);

/// One part in so many of what sums say is more than the allocator adds to them: up to 1 MiB for
/// each block that it does not split, between 3 and 4 % of Swin-T's memory at worst
/// (tests/analysis/planning/planning_test.cpp).
inline constexpr std::int64_t most_beyond_sums = 24;

class PlanSearch {
 public:
  /// Plans for the step's trace; its own plan is among those that are looked at.
  PlanSearch(const PlannedStep& step, const Device& device, const MemoryBudget& memory,
             Measure measure, PlannerSettings settings = {});
  /// The same where what stays may wait in the host's memory, in all at most so many bytes. What
  /// the planner is to count of the link's time: see there.
  PlanSearch with_offload(double share_beyond, std::optional<Bytes> host_budget) const;

  /// The same points, but what their plans keep waits in the host's memory, in all at most so many
  /// bytes, as far as that takes no time (filled_link.h). Sums know nothing of it: what leaves
  /// counts in them as kept.
  PlanSearch with_filled_link(std::optional<Bytes> host_budget) const;

  /// The same, but what is recovered is recovered beside gradients, with so many lanes
  /// (meetings.h). Points are those that are best in what counts; without `joins`, of plans that
  /// recover each block by itself.
  PlanSearch with_overlap(Resource resource, std::uint8_t lanes, bool joins = true) const;
  /// The same points with another number of lanes.
  PlanSearch with_lanes(std::uint8_t lanes) const;

  /// The same where each block may have the operators of one of the others, which have them in all
  /// blocks; nothing if none of them can be told from block to block.
  std::optional<PlanSearch> with_operators(const std::vector<const PlanSearch*>& others) const;

  const Planner& planner() const { return *planner_; }
  bool may_offload() const { return may_offload_; }
  bool fills_link() const { return fills_link_; }
  /// Of what sums count, at most so much has left when memory is tightest.
  std::int64_t most_gone() const { return most_gone_; }
  bool overlaps() const { return lanes_ > 0; }
  /// That recovery takes in turn; 0 on one stream.
  std::uint8_t lanes() const { return lanes_; }
  bool is_another_network() const;
  /// Nobody waits for anything better.
  bool is_stopped() const { return is_stopped_ && is_stopped_(); }

  /// The fastest point whose true bytes stay within the budget. Above host-live bytes come blocks
  /// that are not split, alignment and fragmentation: where they exceed the budget, a smaller one
  /// is looked up; where they leave room, further points are tried, unless it is stopped.
  std::optional<std::size_t> within(Bytes budget, bool must_fit) const;
  /// The fastest of the plans of strategies that takes less time than `enough`, if any does.
  std::optional<std::size_t> named_within(Bytes budget, bool must_fit, Nanoseconds enough) const;
  /// The first point whose true step is not longer; a faster one if none of the two needs more.
  std::optional<std::size_t> not_longer(Nanoseconds step) const;

  /// Of strategies that local plans cannot say, the smallest whose step is not longer.
  std::optional<std::size_t> smallest_whole(Nanoseconds step) const;

  PlannedStep step_at(std::size_t point) const;
  /// What the point's plan is made of. They are there as long as the search is.
  std::vector<Planner::Part> parts_at(std::size_t point) const;
  /// A point whose sum is within so many bytes and whose copies the host has memory for: the
  /// fastest by its sum, or one near it that is faster.
  std::optional<std::size_t> within_sums(std::int64_t bytes) const;
  /// Of the step, simulated.
  Nanoseconds time_of(std::size_t point) const;
  /// True bytes of the point in the measure.
  Bytes bytes_of(std::size_t point) const;

 private:
  std::optional<std::size_t> last_within_sums(std::int64_t bytes) const;
  std::int64_t sum_of(std::size_t point) const;
  std::size_t last_near(std::size_t found, Bytes budget, bool must_fit) const;
  template <typename Accepts>
  std::size_t fastest_near(std::size_t found, Accepts accepts) const;
  std::optional<std::size_t> any_up_to(std::optional<std::size_t> last, Bytes budget,
                                       bool must_fit) const;
  bool is_time_a_sum() const;
  std::size_t points_as_fast() const;
  bool may_take_less(std::size_t point, Nanoseconds time) const;
  bool accepts(std::size_t point, Bytes budget, bool must_fit) const;
  bool keeps_host_budget(std::size_t point) const;
  Bytes simulated_bytes(std::size_t point) const;

  struct Simulated;
  PlannedStep step_of_sums_at(std::size_t point) const;
  Plan changed_plan_at(std::size_t point) const;

  std::shared_ptr<const Trace> trace_;
  std::vector<StrategySpec::Component> rewrites_;
  Device device_;
  MemoryBudget memory_;
  Measure measure_;
  std::function<bool()> is_stopped_;
  std::shared_ptr<const Planner> planner_;
  bool may_offload_ = false, fills_link_ = false;
  std::uint8_t lanes_ = 0;
  std::optional<Bytes> host_budget_ = {};
  std::int64_t most_gone_ = 0;
  std::shared_ptr<Simulated> simulated_;  ///< of this planner's points, on these streams
};

}  // namespace tidemark
