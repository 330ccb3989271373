// NCCL takes the least of latency + bytes / bandwidth over its algorithms and protocols
// (src/graph/tuning.cc of NVIDIA/nccl 5067397c; times there are in microseconds):
//   ring   S bytes go around in 2(n−1) steps, or n−1 of an all-gather or reduce-scatter
//   tree   up and down, an all-reduce only
//   multicast tree   the same among nodes, on each of which the switch adds up
// A measured curve of all-reduces of a whole node, or line of others on one, takes their place.
#include "simulator/parallel/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace tidemark {
namespace {

enum Joint { Nvlink, Pcie, Network };

/// Microseconds, and fractions of the bandwidth.
struct Protocol {
  double base_tree, base_ring;
  std::array<double, 3> hop_tree, hop_ring;  ///< by joint
  double ring_share, tree_share_one_node, tree_share_more;
  bool is_limited;  ///< by Interconnect::latency_protocol_limit
};

constexpr std::array protocols = {
    Protocol{6.8, 6.6, {0.6, 1.0, 5.0}, {0.6, 1.0, 2.7}, 0.5, 1 / 3.8, 1 / 3.8, true},     // LL
    Protocol{14, 14, {1.25, 1.9, 8.5}, {1.9, 2.5, 4.0}, 0.92, 7.0 / 9, 15.0 / 16, false},  // LL128
    Protocol{8.4, 8.4, {4.0, 4.0, 14}, {3.4, 5.7, 14}, 1, 0.92, 0.92, false}};             // Simple

/// Rings of the Simple protocol over several nodes, from compute capability 8.0 on.
constexpr double slow_network_ring = 1.4;

/// Of the tree among nodes whose switches add up, in microseconds: on a node, and between two.
constexpr double multicast_hop = 25, multicast_network_hop = 20.9;

struct Steps {
  double all, between_nodes;
};

Steps ring_steps(const RankGroup& group, bool is_all_reduce) {
  const double times = is_all_reduce ? 2 : 1;
  return {times * static_cast<double>(group.ranks - 1),
          times * static_cast<double>(group.nodes() - 1)};
}

// Of groups that fill no whole nodes the last has less.
std::int64_t least_per_node(const RankGroup& group) {
  return group.ranks - (group.nodes() - 1) * group.per_node;
}

// Bytes per second of all cards of a node that the group's ranks send through, of the node with
// the fewest: NCCL takes the least of what the nodes have found (src/init.cc).
double network_bandwidth(const Interconnect& joined, const RankGroup& group) {
  const double cards =
      joined.network_cards * std::min(1.0, static_cast<double>(least_per_node(group)) /
                                               std::max(1.0, joined.gpus_per_node));
  return std::max(1.0, cards) * joined.network_bytes_per_second;
}

// Bytes per second of a ring: each node's cards carry what its ranks send to the next node.
double ring_bandwidth(const Interconnect& joined, const RankGroup& group) {
  if (group.nodes() == 1) return joined.link_bytes_per_second;
  if (joined.network_cards <= 0)
    throw InputError(
        fmt::format("{}: no network joins its nodes of {:.0f} GPUs (a group of {} ranks spans {})",
                    joined.cluster, joined.gpus_per_node, group.ranks, group.nodes()));
  return std::min(joined.link_bytes_per_second, network_bandwidth(joined, group));
}

double with_limit(const Interconnect& joined, const Protocol& protocol, double bandwidth) {
  const bool is_limited = protocol.is_limited && joined.latency_protocol_limit > 0;
  return is_limited ? std::min(bandwidth, joined.latency_protocol_limit) : bandwidth;
}

double ring_ns(const Interconnect& joined, const RankGroup& group, const Protocol& protocol,
               bool is_all_reduce, double sent) {
  const Joint joint = joined.link_is_pcie > 0 ? Pcie : Nvlink;
  const Steps steps = ring_steps(group, is_all_reduce);
  double micros = protocol.base_ring +
                  (steps.all - steps.between_nodes) * protocol.hop_ring[joint] +
                  steps.between_nodes * protocol.hop_ring[Network];
  const bool is_simple = &protocol == &protocols.back();
  if (is_simple && is_all_reduce && group.nodes() > 1) micros *= slow_network_ring;
  const double bandwidth =
      with_limit(joined, protocol, protocol.ring_share * ring_bandwidth(joined, group));
  return 1e3 * micros + 1e9 * sent / bandwidth;
}

double tree_ns(const Interconnect& joined, const RankGroup& group, const Protocol& protocol,
               double sent) {
  const Joint joint = joined.link_is_pcie > 0 ? Pcie : Nvlink;
  const auto nodes = static_cast<double>(group.nodes());
  const double micros =
      protocol.base_tree + 2 * (static_cast<double>(group.per_node - 1) * protocol.hop_tree[joint] +
                                std::log2(nodes) * protocol.hop_tree[Network]);
  const double share = nodes == 1 ? protocol.tree_share_one_node : protocol.tree_share_more;
  const double bandwidth = with_limit(joined, protocol, share * ring_bandwidth(joined, group));
  return 1e3 * micros + 1e9 * sent / bandwidth;
}

// Each GPU of a node is the head of one channel, on which all send it their parts: its own twice,
// there and back. What the switch adds up crosses the network through the head's own cards, between
// two nodes in both directions at once.
double multicast_tree_ns(const Interconnect& joined, const RankGroup& group, double sent) {
  const auto nodes = static_cast<double>(group.nodes());
  const auto heads = static_cast<double>(least_per_node(group));
  const bool are_two = group.nodes() == 2;
  const double on_node = joined.multicast_bytes_per_second / (heads + 1) * 2 * (heads - 1) / heads;
  const double crossing = network_bandwidth(joined, group) / heads * (are_two ? 2 : 1);
  const double most = are_two ? joined.multicast_two_nodes : joined.multicast_more_nodes;
  const double micros = multicast_hop + 2 * std::log2(nodes) * multicast_network_hop;
  return 1e3 * micros + 1e9 * sent / (heads * std::min({on_node, crossing, most}));
}

bool has_multicast_trees(const Interconnect& joined, const RankGroup& group) {
  return group.nodes() > 1 && least_per_node(group) > 1 && joined.multicast_bytes_per_second > 0;
}

// Between the points along straight lines of the logarithms. What is less than the first takes no
// more than its time; what is more than the last has its bandwidth.
double bus_bandwidth(const std::vector<BusPoint>& curve, double bytes) {
  const auto next = std::ranges::lower_bound(curve, bytes, {}, &BusPoint::bytes);
  if (next == curve.begin())
    return curve.front().bus_bytes_per_second * bytes / curve.front().bytes;
  if (next == curve.end()) return curve.back().bus_bytes_per_second;
  const BusPoint &low = *(next - 1), &high = *next;
  const double share = std::log(bytes / low.bytes) / std::log(high.bytes / low.bytes);
  return low.bus_bytes_per_second *
         std::pow(high.bus_bytes_per_second / low.bus_bytes_per_second, share);
}

bool is_whole_node(const Interconnect& joined, const RankGroup& group) {
  return group.nodes() == 1 && static_cast<double>(group.ranks) == joined.gpus_per_node;
}

double least_ns(const Interconnect& joined, const RankGroup& group, bool is_all_reduce,
                double sent) {
  double least = ring_ns(joined, group, protocols[0], is_all_reduce, sent);
  for (const Protocol& protocol : protocols) {
    least = std::min(least, ring_ns(joined, group, protocol, is_all_reduce, sent));
    if (is_all_reduce) least = std::min(least, tree_ns(joined, group, protocol, sent));
  }
  if (is_all_reduce && has_multicast_trees(joined, group))
    least = std::min(least, multicast_tree_ns(joined, group, sent));
  return least;
}

// Of an all-reduce of a whole node.
double curve_ns(const Interconnect& joined, const RankGroup& group, double bytes, double sent) {
  const double measured = 1e9 * sent / bus_bandwidth(joined.all_reduce, bytes);
  const bool is_below = bytes < joined.all_reduce.front().bytes;
  return is_below ? std::min(measured, least_ns(joined, group, true, sent)) : measured;
}

// Of an all-gather or reduce-scatter on one node.
double gather_ns(const Interconnect& joined, const RankGroup& group, double sent) {
  return 1e9 * (joined.gather_base_seconds +
                static_cast<double>(group.ranks - 1) * joined.gather_step_seconds +
                sent / joined.link_bytes_per_second);
}

/// NCCL has no model of it (src/graph/tuning.cc): each rank sends to all others at once, to those
/// of its node over the links, to all others through its part of the node's cards; one step is
/// waited for.
double all_to_all_ns(const Interconnect& joined, const RankGroup& group, double bytes) {
  const Joint joint = joined.link_is_pcie > 0 ? Pcie : Nvlink;
  const bool is_on_node = group.nodes() == 1;
  const auto ranks = static_cast<double>(group.ranks), near = static_cast<double>(group.per_node);
  const double over_links = bytes * (near - 1) / ranks / joined.link_bytes_per_second;
  const double card = is_on_node ? 1
                                 : joined.network_cards * joined.network_bytes_per_second /
                                       std::max(1.0, joined.gpus_per_node);
  const double over_network = is_on_node ? 0 : bytes * (ranks - near) / ranks / card;
  const Protocol& simple = protocols.back();
  return 1e3 * (simple.base_ring + simple.hop_ring[is_on_node ? joint : Network]) +
         1e9 * std::max(over_links, over_network);
}

}  // namespace

RankGroup group_of(std::int64_t ranks, std::int64_t stride, const Interconnect& interconnect) {
  const auto on_node = static_cast<std::int64_t>(interconnect.gpus_per_node);
  const std::int64_t side_by_side = std::max<std::int64_t>(1, on_node / stride);
  return {ranks, std::min(ranks, side_by_side)};
}

RankGroup group_of(const Mesh& mesh, Axis axis, const Interconnect& interconnect) {
  return group_of(mesh[axis], mesh.stride(axis), interconnect);
}

RankGroup neighbours_on(const Mesh& mesh, Axis axis, const Interconnect& interconnect) {
  const bool is_on_node =
      static_cast<double>(mesh[axis] * mesh.stride(axis)) <= interconnect.gpus_per_node;
  return {2, is_on_node ? 2 : 1};
}

Collective collective_of(const Interconnect& joined, const RankGroup& group, Pattern pattern,
                         double bytes) {
  CHECK(group.ranks > 1);
  const bool is_all_reduce = pattern == Pattern::AllReduce;
  const double passes = is_all_reduce ? 2 : 1;
  const auto ranks = static_cast<double>(group.ranks);
  const bool sends_all = pattern == Pattern::Send;
  const double sent = sends_all ? bytes : bytes * passes * (ranks - 1) / ranks;
  const bool is_on_curve =
      is_all_reduce && is_whole_node(joined, group) && !joined.all_reduce.empty();
  const bool gathers = pattern == Pattern::AllGather || pattern == Pattern::ReduceScatter;
  const bool is_on_line = gathers && group.nodes() == 1 && joined.gather_step_seconds > 0;
  Collective made;
  const double ring = ring_bandwidth(joined, group);
  const double ns = pattern == Pattern::AllToAll ? all_to_all_ns(joined, group, bytes)
                    : is_on_curve                ? curve_ns(joined, group, bytes, sent)
                    : is_on_line                 ? gather_ns(joined, group, sent)
                                                 : least_ns(joined, group, is_all_reduce, sent);
  made.ns = std::max(1.0, ns);
  made.blocks = joined.channels;
  made.moved =
      sends_all ? bytes : (passes + 1) * bytes;  // what comes is written, and what goes on read
  made.link_share = std::min(1.0, 1e9 * sent / ring / made.ns);
  return made;
}

// src/transport/{p2p,nvls}.cc: a ring has per channel one connection that receives (all protocols'
// buffers, 10 MiB with rounding) and one that sends (2 MiB); multicast has 8 steps of 128 KiB,
// there and back, per channel and rank of the node.
Bytes communicator_bytes(const Interconnect& joined, const RankGroup& group) {
  using namespace literals;
  if (group.ranks == 1) return {};
  const auto channels = static_cast<std::int64_t>(joined.channels);
  const auto multicast = static_cast<std::int64_t>(joined.multicast_channels);
  return {channels * (12_MiB).count + 2 * 8 * multicast * group.per_node * (128_KiB).count};
}

// Channels of sends are rounded up to a power of two (ncclTopoComputeP2pChannels()). Those between
// nodes share a pool of 16 chunks of 128 KiB per channel and direction (src/transport/net.cc).
Bytes all_to_all_bytes(const Interconnect& joined, const RankGroup& group) {
  using namespace literals;
  if (group.ranks == 1) return {};
  const auto channels =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(joined.channels)));
  const std::int64_t pools = group.nodes() > 1 ? 2 : 0;
  return {channels * ((group.per_node - 1) * (12_MiB).count + pools * 16 * (128_KiB).count)};
}

}  // namespace tidemark
