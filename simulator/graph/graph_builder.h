// Appends nodes and instances to a joint graph.
#pragma once

#include <utility>
#include <vector>

#include "simulator/graph/joint_graph.h"

namespace tidemark {

/// The operands of a node while they are put together.
class Operation {
 public:
  void clear() { reads_.clear(), writes_.clear(); }
  void read(InstanceId instance);
  /// As read(), though it may be named already.
  void read_again(InstanceId instance) { reads_.push_back(instance); }
  void write(InstanceId instance) { writes_.push_back(instance); }

  const std::vector<InstanceId>& reads() const { return reads_; }
  const std::vector<InstanceId>& writes() const { return writes_; }

 private:
  std::vector<InstanceId> reads_, writes_;
};

class GraphBuilder {
 public:
  GraphBuilder(std::size_t tensors, std::size_t ops, std::size_t operands);

  const JointGraph& graph() const { return graph_; }
  const Instance& operator[](InstanceId id) const { return graph_[id]; }
  /// Nodes will be appended to this lane.
  void use(Lane lane) { graph_.lanes.push_back(lane); }
  /// What instances name by number.
  void use(std::vector<Encoding> encodings) { graph_.encodings = std::move(encodings); }
  JointGraph finish() && { return std::move(graph_); }

  /// A version with memory of its own.
  InstanceId add(Instance instance) {
    if (instance.tensor != no_tensor) instance.version = next_version(instance);
    const auto id = static_cast<InstanceId>(graph_.instances.size());
    graph_.instances.push_back(instance);
    memory_.push_back({instance.over == no_instance ? id : memory_of(instance.over), no_node});
    return id;
  }
  /// A version that is written over `old`.
  InstanceId add_over(InstanceId old);

  NodeId append(std::optional<Task> task, Lane lane, OpId op, const Operation& operation);
  /// The node that was appended last adds to the gradient of this input of its op.
  void adds_to(std::uint8_t input) { graph_.nodes.back().input = input; }
  void hand_on(const HandedOn& gradient) { graph_.handed_on.push_back(gradient); }

  /// The instance's memory is free to go after what has been appended, not earlier.
  void release(InstanceId instance) { hold(instance, last_); }
  NodeId last_node() const { return last_; }
  /// The last node of the lane, or no_node.
  NodeId last_node(Lane lane) const { return last_of_lane_[index(lane)]; }
  /// What is appended to the lane from now on happens after this node, which may be no_node.
  void order(NodeId before, Lane lane);

 private:
  struct Memory {
    InstanceId first;  ///< the version that got it
    NodeId last_use;   ///< of that and of what is written over it; kept with the first
  };

  std::uint16_t next_version(const Instance& instance) {
    std::vector<std::uint16_t>& versions = versions_[static_cast<std::size_t>(instance.role)];
    if (versions.empty()) versions.resize(tensors_);
    return versions[index(instance.tensor)]++;
  }
  void hold(InstanceId instance, NodeId until);
  InstanceId memory_of(InstanceId instance) const { return memory_[index(instance)].first; }

  JointGraph graph_;
  NodeId last_ = no_node;
  std::array<NodeId, lanes.size()> last_of_lane_;
  std::vector<Memory> memory_;  ///< by instance
  std::size_t tensors_;
  std::array<std::vector<std::uint16_t>, roles.size()> versions_;  ///< by role in use, and tensor
};

}  // namespace tidemark
