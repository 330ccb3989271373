// A plan is data: what happens to each saved tensor between its last forward use and its backward,
// which ops are recovered together, and whether recovery overlaps with gradients.
#pragma once

#include <string>
#include <vector>

#include "simulator/encoding.h"
#include "traces/trace.h"

namespace tidemark {

enum class Action : std::uint8_t {
  Keep,         ///< stays in place until its last use
  Recompute,    ///< freed after forward; its producer runs again in its region's recovery
  Quantize,     ///< replaced by codes of a few bits (Mesa, arXiv 2111.11124)
  Reconstruct,  ///< freed after forward; recovered by inverting the coupling that read it
  Offload,      ///< copied to the host, and back before it is needed
};

inline constexpr std::array actions = {Named{Action::Keep, std::string_view("keep")},
                                       Named{Action::Recompute, std::string_view("recompute")},
                                       Named{Action::Quantize, std::string_view("quantize")},
                                       Named{Action::Reconstruct, std::string_view("reconstruct")},
                                       Named{Action::Offload, std::string_view("offload")}};
static_assert(is_in_order(actions));
constexpr std::string_view to_string(Action action) {
  return actions[static_cast<std::size_t>(action)].name;
}

/// Ops [begin, end) whose absent tensors are recovered together, before their gradients run.
/// A coupling is undone from its end: ops [split, end) are recovered first, then [begin, split).
struct Region {
  OpId begin{}, split{}, end{};
  std::int32_t chain = 0;  ///< neighbours of one chain may overlap

  bool operator==(const Region&) const = default;
};

/// Of a plan with overlap.
inline constexpr std::uint8_t least_lanes = 2, most_lanes = 4;

/// What published implementations waste, so that their numbers can be reproduced. The default, all
/// off, is the clean schedule.
struct ReferenceQuirks {
  bool codes_per_use = false;    ///< Mesa: each op quantizes its own copy of a shared tensor
  bool copies_by_group = false;  ///< Mesa: values lie group by group beside their codes
  bool batched_weight_gradient = false;  ///< Mesa: dW per sample, [batch, out, in], then summed
  bool synchronizes_host = false;        ///< PaReprop: the host waits for events
  bool two_new_streams = false;  ///< PaReprop: both streams are new, with pools of their own
  /// PyTorch's selective checkpoints: what is kept for recovery stays until its region's graph is
  /// gone, also where nobody reads it.
  bool holds_unread = false;

  bool operator==(const ReferenceQuirks&) const = default;
};

/// What happens to one tensor, why, and how it is coded if it is.
struct Decision {
  Action action = Action::Keep;
  std::uint16_t reason = 0;    ///< index into the plan's reasons
  std::uint16_t encoding = 0;  ///< index into the plan's encodings; of quantized ones

  auto operator<=>(const Decision&) const = default;
};

struct Plan {
  std::string strategy;
  std::vector<Decision> decisions;   ///< by tensor; a storage follows the tensor that owns it
  std::vector<std::string> reasons;  ///< none is empty
  std::vector<Encoding> encodings;   ///< each once
  std::vector<Region> regions;       ///< in op order, disjoint
  bool overlap = false;  ///< recovery of a region runs on a second stream beside earlier gradients
  /// With overlap: lanes that the regions of a chain take in turn. Recovery is ahead of gradients
  /// by at most one region less.
  std::uint8_t lanes = least_lanes;
  /// By op, or empty: what runs it again waits for the gradients of that op, which stands behind
  /// its region; no_op: for nothing but what it reads.
  std::vector<OpId> rerun_after = {};
  ReferenceQuirks quirks = {};
  /// By tensor, or empty: when the copies of an offloaded tensor run beside the step, on lanes of
  /// their own: its memory is free before the forward of the first op; the copy back begins before
  /// the gradients of the second. Without such an op (no_op) the step stands still for the copy,
  /// out after the last forward use, in before the first need.
  std::vector<OpId> left_by = {};
  std::vector<OpId> fetched_at = {};
  /// By tensor, or empty: its recovered value, or its gradient, is not freed before the gradients
  /// of this op are done (a variable of the published code still names it).
  std::vector<OpId> value_release_after = {};
  std::vector<OpId> gradient_release_after = {};

  /// By tensor, or empty: a value that no gradient needs stays after the forward all the same,
  /// because recovery reads it. Otherwise a region makes such values again with the rest.
  std::vector<bool> kept_for_recovery = {};

  bool operator==(const Plan&) const = default;
};

/// Of a tensor about which nobody decided anything.
inline constexpr std::string_view usual_reason = "kept: nothing cheaper was asked for";

/// The plan that keeps everything the backward needs.
Plan keep_everything(const Trace& trace);

/// Gives a tensor an action with its reason.
void decide(Plan& plan, TensorId tensor, Action action, std::string_view reason);
/// The tensor is kept in codes.
void quantize(Plan& plan, TensorId tensor, const Encoding& encoding, std::string_view reason);

/// The value stays for recovery, whether or not a gradient needs it.
void keep_for_recovery(Plan& plan, TensorId tensor);
inline bool is_kept_for_recovery(const Plan& plan, TensorId tensor) {
  return !plan.kept_for_recovery.empty() && plan.kept_for_recovery[index(tensor)];
}

/// How the plan codes the tensor if it does.
inline const Encoding& encoding_of(const Plan& plan, TensorId tensor) {
  return plan.encodings[plan.decisions[index(tensor)].encoding];
}

/// Of the codes of its coarsest encoding, or 0 if it quantizes nothing.
int fewest_bits(const Plan& plan);

/// What is wrong with the plan for this trace, one line each with the tensor's name: an action that
/// cannot be carried out (a tensor that recovery needs but nothing provides, Reconstruct without
/// an invertible op, regions out of order). Empty: lower() will make a valid schedule.
std::vector<std::string> check(const Trace& trace, const Plan& plan);

/// The region that holds the op, or its place behind them all.
std::size_t region_of(const Plan& plan, OpId op);

}  // namespace tidemark
