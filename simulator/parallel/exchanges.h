// What ranks exchange in a run: a collective of its own, or an op between tensor-parallel ranks.
#pragma once

#include <optional>

#include "simulator/parallel/collectives.h"
#include "simulator/schedule.h"
#include "traces/trace.h"

namespace tidemark {

/// Who takes part.
enum class Peers : std::uint8_t {
  OfAxis,          ///< all ranks along an axis of the mesh
  SameExperts,     ///< of replicas, those with the same experts
  SharingExperts,  ///< those with other experts of a layer each
  CuttingExpert,   ///< those with parts of the same expert
};

struct Exchange {
  Pattern pattern;
  Axis axis;   ///< of the mesh: among whom
  Bytes size;  ///< the whole buffer
  Peers peers = Peers::OfAxis;
};

/// Nothing if the run exchanges nothing, or little beside what it computes.
std::optional<Exchange> exchange_of(const Trace& trace, const Schedule& schedule, const Run& run);

/// Who takes part in it. Of hybrid sharding, ranks side by side gather and scatter, and those with
/// the same shards reduce.
RankGroup group_of(const StepOptions& step, const Exchange& exchange,
                   const Interconnect& interconnect);

}  // namespace tidemark
