// The joint graph: the whole training step as one value. Forward, recovery, backward and optimizer
// are nodes in issue order that read and write instances of tensors. There are no buffers, streams,
// events or frees in it: place() decides about those.
//
//   trace   x0 ─f1─► x1 ─f2─► x2            plan: x1 is recomputed
//   nodes   forward f1   reads x0     writes x1
//           forward f2   reads x1     writes x2
//           recompute f1 reads x0     writes x1, version 1
//           backward f2  reads x1, version 1, and the gradient of x2   writes the gradient of x1
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "simulator/schedule.h"
#include "traces/tensor.h"

namespace tidemark {

enum class NodeId : std::uint32_t {};
constexpr std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }
inline constexpr NodeId no_node{0xffffffff};

enum class InstanceId : std::uint32_t {};
constexpr std::size_t index(InstanceId id) { return static_cast<std::size_t>(id); }
inline constexpr InstanceId no_instance{0xffffffff};

/// Nodes of one lane happen in issue order; lanes are ordered only by what their nodes read and
/// write, and by explicit edges.
enum class Lane : std::uint8_t {
  Compute,
  // Regions of an overlapped chain take lanes in turn, so that what a region recovers is freed
  // where it was made: the recovery of one runs beside the gradients of those on the other lanes.
  FirstRegions,
  SecondRegions,
  ThirdRegions,
  FourthRegions,
  CopyOut,  ///< to the host's memory, beside whatever computes
  CopyIn,
  Gather,  ///< what collects parameters from other ranks
  Reduce,  ///< what averages gradients over ranks
};

inline constexpr std::array lanes = {Named{Lane::Compute, std::string_view("compute")},
                                     Named{Lane::FirstRegions, std::string_view("first regions")},
                                     Named{Lane::SecondRegions, std::string_view("second regions")},
                                     Named{Lane::ThirdRegions, std::string_view("third regions")},
                                     Named{Lane::FourthRegions, std::string_view("fourth regions")},
                                     Named{Lane::CopyOut, std::string_view("copy out")},
                                     Named{Lane::CopyIn, std::string_view("copy in")},
                                     Named{Lane::Gather, std::string_view("gather")},
                                     Named{Lane::Reduce, std::string_view("reduce")}};
static_assert(is_in_order(lanes));
constexpr std::size_t index(Lane lane) { return static_cast<std::size_t>(lane); }
/// In the order in which regions take them.
inline constexpr std::array region_lanes = {Lane::FirstRegions, Lane::SecondRegions,
                                            Lane::ThirdRegions, Lane::FourthRegions};
constexpr bool is_of_regions(Lane lane) {
  return lane >= region_lanes.front() && lane <= region_lanes.back();
}
constexpr bool is_copy(Lane lane) { return lane == Lane::CopyOut || lane == Lane::CopyIn; }

/// One version of what a tensor's memory holds: written by one node, and read by those after it.
struct Instance {
  Bytes size;
  TensorId tensor = no_tensor;
  Role role = Role::Value;
  Category category = Category::Activation;
  bool persistent = false;        ///< there before the step, and after it
  bool on_host = false;           ///< a copy in the host's memory
  std::uint16_t version = 0;      ///< counts what was made of this tensor in this role
  std::uint16_t encoding = 0;     ///< of codes and ranges: into JointGraph::encodings
  InstanceId over = no_instance;  ///< the version that it is written over, if it gets no new memory

  bool operator==(const Instance&) const = default;
};

/// A piece of work. Without a task: a copy between device and host, as its operands say.
struct Node {
  std::optional<Task> task;
  Lane lane = Lane::Compute;
  std::uint8_t input = 0;  ///< of Accumulate: the op's input whose gradient it adds to
  OpId op = no_op;         ///< of the trace; no_op for optimizer nodes
  std::uint32_t first_operand = 0;
  std::uint32_t reads = 0, writes = 0;  ///< operands: read instances, then written ones

  bool operator==(const Node&) const = default;
};

/// Nodes of `lane` from `from` on happen after `before`, though they may read nothing of it.
struct Edge {
  NodeId before;
  Lane lane;
  NodeId from;
  bool operator==(const Edge&) const = default;
};

/// The memory of an instance is not freed before this node is done, though nothing reads it any
/// more: a variable of the framework, or of published code, still names it.
struct Hold {
  InstanceId instance;
  NodeId until;
  bool operator==(const Hold&) const = default;
};

/// The gradient of an op's input that no node writes: it lies in the memory that holds the gradient
/// of the op's first output, where the op's row says.
struct HandedOn {
  InstanceId gradient;
  OpId op;
  std::uint8_t input;
  bool operator==(const HandedOn&) const = default;
};

struct JointGraph {
  std::vector<Instance> instances;
  std::vector<Node> nodes;
  std::vector<InstanceId> operands;
  std::vector<Edge> edges;  ///< by `from`
  std::vector<Hold> holds;
  std::vector<HandedOn> handed_on;            ///< in the order of the backward
  std::vector<Lane> lanes = {Lane::Compute};  ///< in use
  std::vector<Encoding> encodings;            ///< the plan's

  const Instance& operator[](InstanceId id) const { return instances[index(id)]; }
  const Node& operator[](NodeId id) const { return nodes[index(id)]; }
  std::span<const InstanceId> reads(const Node& node) const {
    return {operands.data() + node.first_operand, node.reads};
  }
  std::span<const InstanceId> writes(const Node& node) const {
    return {operands.data() + node.first_operand + node.reads, node.writes};
  }
  bool uses(Lane lane) const { return std::ranges::find(lanes, lane) != lanes.end(); }
  bool operator==(const JointGraph&) const = default;
};

}  // namespace tidemark
