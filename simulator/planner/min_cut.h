// The cheapest way to divide a directed graph between a source and a sink.
#pragma once

#include <cstdint>
#include <vector>

namespace tidemark {

/// Dinic's algorithm (1970): augments along the edges of shortest paths, all of one length at once.
class MinCut {
 public:
  using Node = std::uint32_t;
  static constexpr std::int64_t infinite = std::int64_t{1} << 60;

  MinCut() : edges_of_(2) {}

  static constexpr Node source = 0, sink = 1;
  Node add_node();
  using Edge = std::uint32_t;
  /// Cut if `from` ends on the source's side and `to` on the sink's. The sum of all finite
  /// capacities must stay below `infinite`.
  Edge add_edge(Node from, Node to, std::int64_t capacity);
  void set_capacity(Edge edge, std::int64_t capacity) { capacities_[edge] = capacity; }

  /// The capacity of the cut; again after capacities have changed. Then is_sink_side() says where a
  /// node ended; of cuts of equal capacity it is the one with the fewest nodes on the source's
  /// side.
  std::int64_t solve();
  /// As solve(), with one capacity so much larger than in the last solve(), whose flow goes on:
  /// most of it is found already. The capacity itself stays.
  std::int64_t solve_raised(Edge edge, std::int64_t by);
  bool is_sink_side(Node node) const { return !is_reached_[node]; }

 private:
  struct HalfEdge {
    Node to;
    std::int64_t left;
  };

  std::int64_t augment();
  bool measure_depths();
  std::int64_t push(Node node, std::int64_t flow);
  void mark_source_side();

  std::vector<std::int64_t> capacities_;  ///< by edge
  std::vector<HalfEdge> edges_;           ///< each beside its reverse, number ^ 1
  std::vector<HalfEdge> solved_;          ///< as the last solve() left them; empty until asked for
  std::int64_t flow_ = 0;                 ///< … and what flows there
  std::vector<std::vector<std::uint32_t>> edges_of_;
  std::vector<std::uint32_t> depth_, next_;
  std::vector<bool> is_reached_;
  std::vector<Node> queue_;
};

}  // namespace tidemark
