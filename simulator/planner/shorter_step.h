// A step without most of its stages that are alike: what a local plan costs is measured there.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "simulator/planner/stages.h"

namespace tidemark {

/// What is left of a chain of stages, each of which costs what it costs in the whole step,
/// whichever local plans it and its neighbours have.
struct ShorterStep {
  std::shared_ptr<const Trace> trace;
  Needs needs;
  Stages chain;  ///< in kinds of the whole chain's numbers; inputs and transfers are left out
};

/// With so many stages of each kind, or more: blocks are left out that hand on one tensor like the
/// one that they are fed, and add to no gradient that others add to. Nothing where none can be, or
/// where others would be other stages then.
std::optional<ShorterStep> without_alike(const Trace& trace, const Needs& needs,
                                         const Stages& chain,
                                         const std::vector<std::size_t>& of_each_kind);

}  // namespace tidemark
