// What is decided about one stage, in terms that hold for all stages of its kind.
#pragma once

#include <optional>

#include "simulator/plan.h"
#include "simulator/planner/stages.h"

namespace tidemark {

/// What happens to one of the stage's decided storages.
struct Form {
  Action action = Action::Keep;
  Encoding encoding = {};  ///< of Quantize

  bool operator==(const Form&) const = default;
};

/// Ops [begin, end), counted from the stage's first.
struct LocalRegion {
  std::size_t begin = 0, end = 0;

  bool operator==(const LocalRegion&) const = default;
};

struct LocalPlan {
  std::vector<Form> forms;           ///< by Stage::decided
  std::vector<LocalRegion> regions;  ///< in op order, disjoint

  bool operator==(const LocalPlan&) const = default;
};

LocalPlan keep_all(const Stage& stage);

/// What a plan decides about a stage; nothing where that cannot be said of the stage alone: a
/// region reaches beyond it, something else than its decided storages is let go, or copies run
/// beside the step.
std::optional<LocalPlan> local_plan_of(const Trace& trace, const Plan& plan, const Stage& stage);

/// Every local plan in its stage, one for each.
Plan assembled(const Trace& trace, const Stages& stages,
               const std::vector<const LocalPlan*>& locals);

}  // namespace tidemark
