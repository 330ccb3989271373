// What joins the GPUs of a cluster, in numbers.
#pragma once

#include <string>
#include <vector>

namespace tidemark {

/// Of an all-reduce among all GPUs of one node: bytes, and the bus bandwidth in bytes per second.
struct BusPoint {
  double bytes = 0, bus_bytes_per_second = 0;

  bool operator==(const BusPoint&) const = default;
};

struct Interconnect {
  std::string cluster;  ///< "dgx-h100"

  double gpus_per_node = 1;           ///< that reach each other without a network
  double link_bytes_per_second = 0;   ///< bus bandwidth of rings on a node, large messages
  double latency_protocol_limit = 0;  ///< of NCCL's LL protocol; 0: none is known
  // Of all-gathers and reduce-scatters on one node beside their bytes, and of each of their steps;
  // 0: not measured, and taken from NCCL's own tables.
  double gather_base_seconds = 0, gather_step_seconds = 0;
  double link_is_pcie = 0;              ///< 1: latencies of PCIe, else those of NVLink
  double network_cards = 0;             ///< per node; 0: one node is all
  double network_bytes_per_second = 0;  ///< of one card
  double channels = 0;                  ///< thread blocks that a collective takes
  double multicast_channels = 0;        ///< … where the switch itself adds up; 0: it cannot
  // Of all-reduces in which switches add up and nodes form trees, beside the network: what the
  // links of a GPU reach, and what one GPU's part of two nodes and of more reaches; 0: unknown.
  double multicast_bytes_per_second = 0;
  double multicast_two_nodes = 0, multicast_more_nodes = 0;
  std::vector<BusPoint> all_reduce;  ///< measured, rising; may be empty

  bool operator==(const Interconnect&) const = default;
};

}  // namespace tidemark
