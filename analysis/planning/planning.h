// The fastest plan within a budget, what it is made of, and how far from the best it can be.
#pragma once

#include "analysis/comparison.h"
#include "simulator/planner/planner.h"
#include "simulator/strategies/strategy.h"

namespace tidemark {

/// What a budget limits.
enum class Measure : std::uint8_t {
  Allocated,  ///< what PyTorch's caching allocator hands out
  Reserved,   ///< what it holds from the device
  Planned,    ///< one arena
  Live,       ///< present tensors
};

inline constexpr std::array measures = {Named{Measure::Allocated, std::string_view("allocated")},
                                        Named{Measure::Reserved, std::string_view("reserved")},
                                        Named{Measure::Planned, std::string_view("planned")},
                                        Named{Measure::Live, std::string_view("live")}};
static_assert(is_in_order(measures));
constexpr std::string_view to_string(Measure measure) {
  return measures[static_cast<std::size_t>(measure)].name;
}

inline constexpr std::array plan_forms = {Named{PlanForm::Tensors, std::string_view("tensors")},
                                          Named{PlanForm::Blocks, std::string_view("blocks")}};
static_assert(is_in_order(plan_forms));

/// Of a report, in the measure.
Bytes measured(const Report& report, Measure measure);

struct PlanRequest {
  std::optional<Bytes> budget = {};  ///< without: the device, and the step must fit on it
  Measure measure = Measure::Allocated;
  std::optional<double> max_slowdown = {};  ///< 0.1 = least memory for at most 10 % more time
  PlanForm form = PlanForm::Tensors;
  std::size_t front_points = 0;  ///< of the front, to be evaluated and shown
};

/// Neighbouring blocks about which the same is decided.
struct PlanGroup {
  struct Decided {
    Action action{};
    std::vector<std::string> tensors;  ///< within the block: "mlp.gelu"
    Bytes bytes;                       ///< of these, of all blocks of the group
  };
  std::string first, last;  ///< names of blocks, or of ops where it stands outside of blocks
  bool is_block = true;
  std::size_t stages = 0;
  std::vector<Decided> decided;  ///< what is not kept; empty if all is
  Bytes saved;                   ///< less than if all were kept, when all forwards are done
  Nanoseconds extra{};           ///< more than if all were kept
};

struct FrontPoint {
  Bytes budget;  ///< in the request's measure
  Report report;
};

struct Planning {
  PlanRequest request;
  Bytes budget;           ///< what was asked for, or the most that this device has
  bool feasible = false;  ///< a plan within the budget was found
  Comparison
      comparison;  ///< vanilla, then the plan; if nothing is feasible, the one that needs least
  PlannedStep planned;
  std::vector<PlanGroup> groups;

  /// No plan that keeps or recomputes what stages save, each stage by itself on one stream, is
  /// faster in this budget.
  Nanoseconds lower_bound{};
  double gap = 0;              ///< the plan's time above the bound, as a share of the bound
  std::string binding;         ///< where memory is tightest
  Bytes rest;                  ///< what no decision about blocks changes: the optimizer step
  std::size_t front_size = 0;  ///< points of the whole front
  std::vector<FrontPoint> front;
  std::vector<Remedy> advice;  ///< what lowers a peak that no plan lowers
  Nanoseconds solve{};         ///< that planning took here
};

/// `progress` is told how many points of the front are evaluated.
Planning plan_within(const Scenario& scenario, const PlanRequest& request,
                     const std::function<void(std::size_t done)>& progress = {});

}  // namespace tidemark
