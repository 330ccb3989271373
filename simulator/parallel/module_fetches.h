// Which parameters DeepSpeed's ZeRO 3 gathers and frees before and behind each module.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace tidemark {

/// A module's turn in the forward or the backward, or again in a recomputation.
struct ModuleFetch {
  std::vector<TensorId> parameters;  ///< its own, which it needs as a whole
  std::vector<TensorId> now = {};    ///< of them: gathered together before it runs
  std::vector<TensorId> ahead = {};  ///< of modules behind it: gathered together meanwhile
  std::vector<TensorId> freed = {};  ///< behind it
};

/// A parameter of few elements is never freed.
bool is_persistent(const Trace& trace, TensorId parameter, const Sharding& sharing);

/// Fills in what is fetched and freed, as PartitionedParameterCoordinator does it once it has seen
/// the modules' order: as much ahead as `prefetch` and `max_live` allow, and nothing is freed that
/// is used again within `reuse_distance` elements or has been passed by what fetches ahead.
void plan_fetches(const Trace& trace, const Sharding& sharing, std::vector<ModuleFetch>& modules);

}  // namespace tidemark
