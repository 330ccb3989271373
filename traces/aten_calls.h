// What PyTorch's dispatcher calls the kernels of an op: the names by which a selective-checkpoint
// policy says which outputs stay.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "traces/trace.h"

namespace tidemark {

/// One call in the forward, under whichever of these names. Calls of one group are counted
/// together.
struct AtenCall {
  std::string_view group;
  std::span<const std::string_view> overloads;  ///< "aten.mm.default"
};

/// Where the op makes exactly one call that a policy can name.
std::optional<AtenCall> named_call(const Trace& trace, const Op& op);

/// Is it known which calls of the groups above the op makes? Of opaque ops and of operators that
/// PyTorch does not have, it is not.
bool has_known_calls(const Trace& trace, const Op& op);

/// May a policy keep what the call returns? Not where it is written over.
bool may_be_saved(const Trace& trace, const Op& op);

}  // namespace tidemark
