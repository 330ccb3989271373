// The front of plans of the inputs: what each budget would cost, made beside the drawing.
#pragma once

#include "analysis/planning/planning.h"
#include "gui/newest.h"

namespace tidemark::gui {

/// Instead of a strategy: a plan along the front.
struct PlanChoice {
  Bytes budget;  ///< of allocated memory
  Allowed allowed = Allowed::Exact;

  bool operator==(const PlanChoice&) const = default;
};

/// The point's plan, called after its budget.
StrategySpec strategy_of(const FrontPoint& point);

struct PlannedPoint {
  FrontPoint point;
  StrategySpec plan;    ///< called after its budget
  double slowdown = 1;  ///< its step's time as a share of vanilla's
};

struct PlannedFront {
  std::vector<PlannedPoint> points;  ///< not empty; budgets rise

  /// The fastest within the budget, or the smallest of all.
  std::size_t within(Bytes budget) const;
};

struct PlanQuestion {
  Scenario scenario;
  Allowed allowed = Allowed::Exact;
};

class Planned : public Newest<PlanQuestion, PlannedFront> {
 public:
  Planned();
};

}  // namespace tidemark::gui
