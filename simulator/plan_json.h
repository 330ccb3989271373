// Plan files, *.plan.json: docs/plan_format.md says what every field means. Tensors and ops stand
// there by name, so the plan of one batch is that of any other, and people can edit it.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/strategies/strategy.h"

namespace tidemark {

inline constexpr std::string_view plan_format = "tidemark-plan";
/// Counts up when an older program could not read, or would misread, a newer file.
/// 2: an encoding beside the action; without, as in version 1, Mesa's 8 bits and groups.
/// 3: kept_for_recovery; files without it are written as version 2.
/// 4: stages; files without them are written as before.
/// 5: encodings that are delayed; files without one are written as before.
/// 6: encodings of another format than integers; others are written as before.
inline constexpr int plan_version = 7;
inline constexpr int oldest_plan_version = 1;

struct QuirkRow {
  std::string_view name;
  bool ReferenceQuirks::*member;
};
inline constexpr std::array quirk_rows = {
    QuirkRow{"codes_per_use", &ReferenceQuirks::codes_per_use},
    QuirkRow{"copies_by_group", &ReferenceQuirks::copies_by_group},
    QuirkRow{"batched_weight_gradient", &ReferenceQuirks::batched_weight_gradient},
    QuirkRow{"synchronizes_host", &ReferenceQuirks::synchronizes_host},
    QuirkRow{"holds_unread", &ReferenceQuirks::holds_unread},
    QuirkRow{"two_new_streams", &ReferenceQuirks::two_new_streams}};

/// A list of Plan that names an op by tensor: when it is copied, or when a variable lets go of it.
struct OpByTensorRow {
  std::string_view key;
  std::vector<OpId> Plan::*member;
};
inline constexpr std::array op_by_tensor_rows = {
    OpByTensorRow{"left_by", &Plan::left_by}, OpByTensorRow{"fetched_at", &Plan::fetched_at},
    OpByTensorRow{"value_release_after", &Plan::value_release_after},
    OpByTensorRow{"gradient_release_after", &Plan::gradient_release_after}};

inline constexpr std::string_view kept_for_recovery_key = "kept_for_recovery";
inline constexpr std::string_view rerun_after_key = "rerun_after";
inline constexpr std::string_view stages_key = "stages";

/// The text of a file: the step's plan, and what rewrote its trace.
std::string write_plan(const PlannedStep& step);
/// The same of all stages of a pipeline, whose traces nothing rewrote.
std::string write_plan(std::span<const PlannedStep> stages);

/// "plan:tuned" of "runs/tuned.plan.json".
std::string plan_title(std::string_view file);

/// What stands for the file where strategies stand, called by its title. InputError for what is
/// wrong with it whatever the trace.
StrategySpec read_plan(std::string_view json, std::string_view file);
/// The same with a file; its name may end in ".zst".
StrategySpec load_plan(const std::string& path);

/// The file's plan for a trace that its components have rewritten. InputError with the place of a
/// tensor or op that the trace lacks, or with all that check() finds.
Plan plan_for(const Trace& trace, const JsonDocument& file);
/// The same, given the trace's needs; adds the plan's recovery.
Plan plan_for(const Trace& trace, const JsonDocument& file, Derived& derived);

/// Which model the plan was made for, if it is not this one; or "".
std::string other_model_of(const StrategySpec& spec, std::string_view model);

}  // namespace tidemark
