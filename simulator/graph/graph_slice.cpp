// Marks nodes and instances in a walk over the whole graph, then lists what is marked.
#include "simulator/graph/graph_slice.h"

#include <algorithm>

namespace tidemark {
namespace {

template <typename Id>
std::vector<Id> marked(const std::vector<bool>& marks) {
  std::vector<Id> ids;
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (marks[i]) ids.push_back(static_cast<Id>(i));
  return ids;
}

template <typename Predicate>
std::vector<NodeId> nodes_where(const JointGraph& graph, Predicate predicate) {
  std::vector<NodeId> nodes;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (predicate(graph.nodes[n])) nodes.push_back(static_cast<NodeId>(n));
  return nodes;
}

// Edges are sorted by `from`: on the way back, the next node of each lane is known.
std::vector<Order> orders_of(const JointGraph& graph) {
  std::vector<Order> orders;
  std::array<NodeId, lanes.size()> next;
  next.fill(no_node);
  std::size_t n = graph.nodes.size();
  for (std::size_t e = graph.edges.size(); e-- > 0;) {
    const Edge& edge = graph.edges[e];
    for (; n > index(edge.from); --n)
      next[index(graph.nodes[n - 1].lane)] = static_cast<NodeId>(n - 1);
    if (next[index(edge.lane)] != no_node) orders.push_back({edge.before, next[index(edge.lane)]});
  }
  std::ranges::reverse(orders);
  return orders;
}

class Slicing {
 public:
  Slicing(const JointGraph& graph, std::vector<NodeId> nodes)
      : graph_(graph),
        is_chosen_(graph.nodes.size()),
        is_beside_(graph.nodes.size()),
        is_read_(graph.instances.size()),
        is_written_(graph.instances.size()) {
    slice_.nodes = std::move(nodes);
    for (const NodeId id : slice_.nodes) is_chosen_[index(id)] = true;
  }

  GraphSlice run() && {
    mark_instances();
    mark_neighbours();
    for (const Order& order : orders_of(graph_)) add(order);
    slice_.beside = marked<NodeId>(is_beside_);
    for (std::size_t i = 0; i < is_read_.size(); ++i)
      if (is_read_[i] || is_written_[i]) slice_.instances.push_back(static_cast<InstanceId>(i));
    for (const Hold& hold : graph_.holds)
      if (slice_.contains(hold.instance)) slice_.holds.push_back(hold);
    return std::move(slice_);
  }

 private:
  void mark_instances() {
    for (const NodeId id : slice_.nodes) {
      for (const InstanceId read : graph_.reads(graph_[id])) is_read_[index(read)] = true;
      for (const InstanceId write : graph_.writes(graph_[id])) is_written_[index(write)] = true;
    }
  }

  void mark_neighbours() {
    const auto is_read = [&](InstanceId id) { return is_read_[index(id)]; };
    const auto is_written = [&](InstanceId id) { return is_written_[index(id)]; };
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (is_chosen_[n]) continue;
      const Node& node = graph_.nodes[n];
      is_beside_[n] = std::ranges::any_of(graph_.writes(node), is_read) ||
                      std::ranges::any_of(graph_.reads(node), is_written);
    }
  }

  void add(const Order& order) {
    const std::size_t before = index(order.before), after = index(order.after);
    if (!is_chosen_[before] && !is_chosen_[after]) return;
    slice_.orders.push_back(order);
    for (const std::size_t end : {before, after}) is_beside_[end] = !is_chosen_[end];
  }

  const JointGraph& graph_;
  GraphSlice slice_;
  std::vector<bool> is_chosen_, is_beside_;  // by node
  std::vector<bool> is_read_, is_written_;   // by instance: by chosen nodes
};

}  // namespace

bool GraphSlice::contains(NodeId node) const { return std::ranges::binary_search(nodes, node); }

bool GraphSlice::contains(InstanceId instance) const {
  return std::ranges::binary_search(instances, instance);
}

GraphSlice slice_of(const JointGraph& graph, std::vector<NodeId> nodes) {
  return Slicing(graph, std::move(nodes)).run();
}

GraphSlice slice_of(const JointGraph& graph) {
  return slice_of(graph, nodes_where(graph, [](const Node&) { return true; }));
}

GraphSlice slice_of(const JointGraph& graph, OpId begin, OpId end) {
  return slice_of(graph, nodes_where(graph, [&](const Node& node) {
                    return begin <= node.op && node.op < end;
                  }));
}

GraphSlice slice_of(const JointGraph& graph, TensorId storage) {
  std::vector<bool> is_version(graph.instances.size());
  for (std::size_t i = 0; i < is_version.size(); ++i)
    is_version[i] = graph.instances[i].tensor == storage;
  const auto touches = [&](const Node& node) {
    const auto is_shown = [&](InstanceId id) { return is_version[index(id)]; };
    return std::ranges::any_of(graph.reads(node), is_shown) ||
           std::ranges::any_of(graph.writes(node), is_shown);
  };
  GraphSlice slice{.nodes = nodes_where(graph, touches),
                   .instances = marked<InstanceId>(is_version)};
  for (const Hold& hold : graph.holds)
    if (is_version[index(hold.instance)]) slice.holds.push_back(hold);
  return slice;
}

}  // namespace tidemark
