// Who has the same parameters.
#pragma once

#include "traces/mesh.h"

namespace tidemark {

/// Ranks that average gradients, and among which states may be cut: replicas, and the context ranks
/// of each, which have other tokens but the same parameters.
inline std::int64_t replicas_of(const Mesh& mesh) { return mesh[Axis::Data] * mesh[Axis::Context]; }

/// The same of an expert's parameters, which only those have that are as far into their group.
inline std::int64_t expert_replicas_of(const Mesh& mesh) {
  return mesh.expert_ranks() / mesh.experts;
}

}  // namespace tidemark
