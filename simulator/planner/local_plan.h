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
  bool runs_all = false;       ///< but for what stays, up to the last thing that gradients need
  std::size_t first_half = 0;  ///< ops of a coupling's half that is recovered after the rest

  bool operator==(const LocalRegion&) const = default;
};

/// An output of an op, counted from the stage's first.
struct LocalValue {
  std::size_t op = 0, output = 0;

  auto operator<=>(const LocalValue&) const = default;
};

struct LocalPlan {
  std::vector<Form> forms;           ///< by Stage::decided
  std::vector<LocalRegion> regions;  ///< in op order, disjoint
  /// In op order: what no gradient needs, and stays because reruns read it.
  std::vector<LocalValue> kept_for_recovery = {};
  /// What nobody needs, and is made again all the same.
  std::vector<LocalValue> made_again = {};
  std::vector<Form> inputs = {};     ///< by Stage::inputs
  bool offloads_read_again = false;  ///< Stage::read_again wait in the host's memory, too

  bool operator==(const LocalPlan&) const = default;
};

LocalPlan keep_all(const Stage& stage);

/// Do the stage's inputs follow from its outputs?
bool reconstructs_inputs(const LocalPlan& local);

/// What a plan decides about a stage; nothing where that cannot be said of the stage alone: a
/// region reaches beyond it, something else than its decided storages and inputs is let go, or
/// copies run beside the step.
std::optional<LocalPlan> local_plan_of(const Trace& trace, const Needs& needs, const Plan& plan,
                                       const Stage& stage);

/// As much of that as can be said of the stage, whatever the plan decides: regions end where the
/// stage does.
LocalPlan described(const Trace& trace, const Plan& plan, const Stage& stage);

/// What other stages made, and the plan offloads.
std::vector<TensorId> offloaded_inputs(const Stage& stage, const LocalPlan& local);

/// Of what is offloaded; storages rounded as the allocator does.
std::int64_t offloaded_bytes(const Trace& trace, const Stage& stage, const LocalPlan& local);

/// Of all that can be decided about, kept as it is, rounded likewise.
std::int64_t decided_bytes(const Trace& trace, const Stage& stage);

/// What the local plan keeps, and could wait in the host's memory instead.
std::vector<TensorId> that_may_leave(const Trace& trace, const Stage& stage,
                                     const LocalPlan& local);

/// The local plan with what `plan` offloads of that.
LocalPlan as_offloaded_by(const Plan& plan, const Stage& stage, LocalPlan local);

/// The storage is copied beside the step: it has left before the forward of the first op, and its
/// copy back begins before the gradients of the second.
void offload(TensorId storage, OpId left_by, OpId fetched_at, Plan& plan);

/// Adds what the local plan says about the stage.
void apply(const Trace& trace, const Stage& stage, const LocalPlan& local, Plan& plan);

/// What the plan recovers is recovered on a second stream.
void recover_beside_gradients(Plan& plan);

/// Every local plan in its stage, one for each.
Plan assembled(const Trace& trace, const Stages& stages,
               const std::vector<const LocalPlan*>& locals);

}  // namespace tidemark
