// Maximum flow by blocking flows; the cut is what the source still reaches in the residual graph.
#include "simulator/planner/min_cut.h"

#include <algorithm>

namespace tidemark {

MinCut::Node MinCut::add_node() {
  edges_of_.emplace_back();
  return static_cast<Node>(edges_of_.size() - 1);
}

MinCut::Edge MinCut::add_edge(Node from, Node to, std::int64_t capacity) {
  edges_of_[from].push_back(static_cast<std::uint32_t>(edges_.size()));
  edges_.push_back({to, 0});
  edges_of_[to].push_back(static_cast<std::uint32_t>(edges_.size()));
  edges_.push_back({from, 0});
  capacities_.push_back(capacity);
  return static_cast<Edge>(capacities_.size() - 1);
}

std::int64_t MinCut::solve() {
  for (std::size_t e = 0; e < capacities_.size(); ++e)
    edges_[2 * e].left = capacities_[e], edges_[2 * e + 1].left = 0;
  solved_.clear();
  return flow_ = augment();
}

// Of the cuts of equal capacity the same one is found, whichever way the flow takes.
std::int64_t MinCut::solve_raised(Edge edge, std::int64_t by) {
  if (solved_.empty())
    solved_ = edges_;
  else
    edges_ = solved_;
  edges_[2 * edge].left += by;
  return flow_ + augment();
}

std::int64_t MinCut::augment() {
  std::int64_t total = 0;
  while (measure_depths()) {
    next_.assign(edges_of_.size(), 0);
    while (const std::int64_t flow = push(source, infinite)) total += flow;
  }
  mark_source_side();
  return total;
}

// Breadth first along edges that can carry more, as far as the sink.
bool MinCut::measure_depths() {
  depth_.assign(edges_of_.size(), 0);
  depth_[source] = 1;
  queue_ = {source};
  for (std::size_t i = 0; i < queue_.size() && depth_[sink] == 0; ++i) {
    for (const std::uint32_t e : edges_of_[queue_[i]]) {
      if (edges_[e].left == 0 || depth_[edges_[e].to] != 0) continue;
      depth_[edges_[e].to] = depth_[queue_[i]] + 1;
      queue_.push_back(edges_[e].to);
    }
  }
  return depth_[sink] != 0;
}

// Recursion is as deep as the shortest path is long: the ops of one stage at most.
std::int64_t MinCut::push(Node node, std::int64_t flow) {
  if (node == sink) return flow;
  for (std::uint32_t& i = next_[node]; i < edges_of_[node].size(); ++i) {
    const std::uint32_t e = edges_of_[node][i];
    if (edges_[e].left == 0 || depth_[edges_[e].to] != depth_[node] + 1) continue;
    const std::int64_t pushed = push(edges_[e].to, std::min(flow, edges_[e].left));
    if (pushed == 0) continue;
    edges_[e].left -= pushed;
    edges_[e ^ 1].left += pushed;
    return pushed;
  }
  return 0;
}

void MinCut::mark_source_side() {
  is_reached_.assign(edges_of_.size(), false);
  is_reached_[source] = true;
  queue_ = {source};
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    for (const std::uint32_t e : edges_of_[queue_[i]]) {
      if (edges_[e].left == 0 || is_reached_[edges_[e].to]) continue;
      is_reached_[edges_[e].to] = true;
      queue_.push_back(edges_[e].to);
    }
  }
}

}  // namespace tidemark
