// The minimum cut against all divisions of small random graphs.
#include "simulator/planner/min_cut.h"

#include <gtest/gtest.h>

#include "tests/simulator/dice.h"

namespace tidemark::min_cut_test {
namespace {

struct CutEdge {
  MinCut::Node from, to;
  std::int64_t capacity;
};

std::int64_t capacity_of(const std::vector<CutEdge>& edges, std::uint32_t sink_side) {
  const auto is_sink_side = [&](MinCut::Node node) { return (sink_side >> node & 1) != 0; };
  std::int64_t sum = 0;
  for (const CutEdge& edge : edges)
    if (!is_sink_side(edge.from) && is_sink_side(edge.to)) sum += edge.capacity;
  return sum;
}

TEST(MinCut, IsTheCheapestOfAllDivisions) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed);
    const std::size_t inner = 1 + dice.below(7);
    MinCut cut;
    for (std::size_t i = 0; i < inner; ++i) cut.add_node();
    std::vector<CutEdge> edges;
    for (std::size_t i = 0; i < 3 * inner; ++i) {
      const auto node = [&] { return static_cast<MinCut::Node>(dice.below(inner + 2)); };
      const CutEdge edge{node(), node(), static_cast<std::int64_t>(dice.below(20))};
      if (edge.to == MinCut::source || edge.from == MinCut::sink || edge.from == edge.to) continue;
      edges.push_back(edge);
      cut.add_edge(edge.from, edge.to, edge.capacity);
    }
    std::int64_t least = MinCut::infinite;
    for (std::uint32_t inside = 0; inside < 1u << inner; ++inside)
      least = std::min(least, capacity_of(edges, inside << 2 | 1u << MinCut::sink));
    ASSERT_EQ(cut.solve(), least) << "seed " << seed;
    std::uint32_t found = 0;
    for (std::uint32_t node = 0; node < inner + 2; ++node)
      found |= (cut.is_sink_side(node) ? 1u : 0u) << node;
    ASSERT_EQ(capacity_of(edges, found), least) << "seed " << seed;
  }
}

// Each edge in turn, against the cut of a graph that had that capacity from the first.
TEST(MinCut, GoesOnWithTheFlowWhereOneCapacityIsRaised) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Dice dice(seed);
    const std::size_t inner = 1 + dice.below(7);
    MinCut cut, other;
    for (std::size_t i = 0; i < inner; ++i) cut.add_node(), other.add_node();
    std::vector<std::int64_t> capacities;
    for (std::size_t i = 0; i < 3 * inner; ++i) {
      const auto from = static_cast<MinCut::Node>(dice.below(inner + 2));
      const auto to = static_cast<MinCut::Node>(dice.below(inner + 2));
      if (to == MinCut::source || from == MinCut::sink || from == to) continue;
      capacities.push_back(static_cast<std::int64_t>(dice.below(20)));
      cut.add_edge(from, to, capacities.back());
      other.add_edge(from, to, capacities.back());
    }
    cut.solve();
    for (MinCut::Edge edge = 0; edge < capacities.size(); ++edge) {
      const auto by = static_cast<std::int64_t>(dice.below(40));
      other.set_capacity(edge, capacities[edge] + by);
      ASSERT_EQ(cut.solve_raised(edge, by), other.solve()) << "seed " << seed;
      for (MinCut::Node node = 0; node < inner + 2; ++node)
        ASSERT_EQ(cut.is_sink_side(node), other.is_sink_side(node)) << "seed " << seed;
      other.set_capacity(edge, capacities[edge]);
    }
  }
}

TEST(MinCut, LeavesWhatTheSourceCannotReachOnTheSinksSide) {
  MinCut cut;
  const auto near = cut.add_node(), far = cut.add_node();
  cut.add_edge(MinCut::source, near, 5);
  cut.add_edge(near, far, 3);
  cut.add_edge(far, MinCut::sink, 4);
  EXPECT_EQ(cut.solve(), 3);
  EXPECT_FALSE(cut.is_sink_side(near));
  EXPECT_TRUE(cut.is_sink_side(far));
}

}  // namespace
}  // namespace tidemark::min_cut_test
