// How long ranks take to exchange bytes: NCCL's own model of its rings and trees, and measured
// curves where a cluster has them.
#pragma once

#include "base/units.h"
#include "simulator/parallel/interconnect.h"
#include "traces/mesh.h"

namespace tidemark {

/// What ranks do with each other.
enum class Pattern : std::uint8_t { AllReduce, AllGather, ReduceScatter, AllToAll, Send };

/// Ranks that exchange something; so many of them on one node.
struct RankGroup {
  std::int64_t ranks = 1, per_node = 1;

  std::int64_t nodes() const { return ceil_div(ranks, per_node); }
};

/// Of ranks that lie so far from each other; those next to each other lie side by side on a node.
RankGroup group_of(std::int64_t ranks, std::int64_t stride, const Interconnect& interconnect);

/// The ranks along one axis.
RankGroup group_of(const Mesh& mesh, Axis axis, const Interconnect& interconnect);

/// Two neighbours of which one sends: of different nodes if any two of the axis are.
RankGroup neighbours_on(const Mesh& mesh, Axis axis, const Interconnect& interconnect);

struct Collective {
  double ns = 0;          ///< alone on its link
  double blocks = 0;      ///< thread blocks that it holds
  double moved = 0;       ///< bytes from and to the rank's own memory
  double link_share = 0;  ///< of the link's bandwidth, averaged over its time
};

/// `bytes` is the whole buffer: of an all-gather what comes out, of a reduce-scatter what goes in,
/// of an all-to-all what a rank has, of which it keeps its own part.
/// Who sends needs a group of two.
/// InputError if the group spans nodes that no network joins.
Collective collective_of(const Interconnect& interconnect, const RankGroup& group, Pattern pattern,
                         double bytes);

/// NCCL's own memory for the group's communicator, outside of PyTorch's: buffers of a ring per
/// channel, and of the switch's multicast.
Bytes communicator_bytes(const Interconnect& interconnect, const RankGroup& group);

/// The same of ranks that send to all others at once: buffers of each channel for each of them.
Bytes all_to_all_bytes(const Interconnect& interconnect, const RankGroup& group);

}  // namespace tidemark
