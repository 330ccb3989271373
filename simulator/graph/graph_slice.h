// A part of a joint graph for a person to look at: some of its nodes, and what joins them to the
// rest. Example, of   f1 ─x1─► f2 ─x2─► f3   the slice of f2:
//   nodes f2     beside f1 (writes what f2 reads), f3 (reads what f2 writes)     instances x1, x2
#pragma once

#include "simulator/graph/joint_graph.h"
#include "traces/trace.h"

namespace tidemark {

/// An explicit edge, with the first node that it holds back.
struct Order {
  NodeId before, after;
  bool operator==(const Order&) const = default;
};

/// Nodes and instances are in ascending order.
struct GraphSlice {
  std::vector<NodeId> nodes = {};
  std::vector<NodeId> beside = {};  ///< write what the nodes read, read what they write, or are
                                    ///< ordered before or after them
  std::vector<InstanceId> instances = {};  ///< that the nodes read or write
  std::vector<Order> orders = {};          ///< with a node at one end
  std::vector<Hold> holds = {};            ///< of these instances

  bool contains(NodeId node) const;
  bool contains(InstanceId instance) const;
};

/// `nodes` are in issue order.
GraphSlice slice_of(const JointGraph& graph, std::vector<NodeId> nodes);

/// All of the graph.
GraphSlice slice_of(const JointGraph& graph);

/// Forward, recovery and gradients of ops [begin, end).
GraphSlice slice_of(const JointGraph& graph, OpId begin, OpId end);

/// Who reads and writes the versions of one memory, and of all that these nodes read and write
/// nothing but these.
GraphSlice slice_of(const JointGraph& graph, TensorId storage);

}  // namespace tidemark
