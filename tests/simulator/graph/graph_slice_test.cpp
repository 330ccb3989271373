// A slice has the nodes asked for, who is joined to them and by what, and nothing else.
#include "simulator/graph/graph_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/graph/differentiate.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/chain.h"

namespace tidemark::graph_slice_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// forward x1 0, x2 1, x3 2; seed x3 3; backward x3 4, x2 5, x1 6
struct SliceOfAChain : testing::Test {
  const Trace trace = chain(3);
  const JointGraph graph = differentiate(trace, keep_everything(trace));

  std::vector<std::string> instances(const GraphSlice& slice) const {
    std::vector<std::string> names;
    for (const InstanceId id : slice.instances)
      names.push_back((graph[id].role == Role::Gradient ? "d " : "") +
                      std::string(trace[graph[id].tensor].name));
    return names;
  }
};

TEST_F(SliceOfAChain, HasTheOpsNodesAndWhoIsBesideThem) {
  const GraphSlice slice = slice_of(graph, OpId{1}, OpId{2});
  EXPECT_THAT(slice.nodes, ElementsAre(NodeId{1}, NodeId{5}));
  EXPECT_THAT(slice.beside, ElementsAre(NodeId{0},    // writes the x1 that both read
                                        NodeId{2},    // reads x2
                                        NodeId{4},    // writes x2's gradient
                                        NodeId{6}));  // reads x1's
  EXPECT_THAT(instances(slice), ElementsAre("x1", "x2", "d x2", "d x1"));
}

TEST_F(SliceOfAChain, LeavesOutWhoOnlyReadsTheSame) {
  const GraphSlice slice = slice_of(graph, OpId{0}, OpId{1});  // x0 has no writer
  EXPECT_THAT(slice.nodes, ElementsAre(NodeId{0}, NodeId{6}));
  EXPECT_THAT(slice.beside, ElementsAre(NodeId{1}, NodeId{5}));
  EXPECT_FALSE(slice.contains(NodeId{1}));
  EXPECT_TRUE(slice.contains(NodeId{6}));
}

TEST_F(SliceOfAChain, OfAllHasNobodyBeside) {
  const GraphSlice slice = slice_of(graph);
  EXPECT_THAT(slice.nodes, SizeIs(graph.nodes.size()));
  EXPECT_THAT(slice.instances, SizeIs(graph.instances.size()));
  EXPECT_THAT(slice.beside, IsEmpty());
}

TEST_F(SliceOfAChain, OfATensorHasItsVersionsAndTheirReadersAndWriters) {
  const GraphSlice slice = slice_of(graph, TensorId{1});
  EXPECT_THAT(slice.nodes, ElementsAre(NodeId{0}, NodeId{1}, NodeId{5}, NodeId{6}));
  EXPECT_THAT(instances(slice), ElementsAre("x1", "d x1"));
  EXPECT_THAT(slice.beside, IsEmpty());
}

TEST_F(SliceOfAChain, HasTheHoldsOfItsInstances) {
  JointGraph held = graph;
  const InstanceId x1 = held.writes(held.nodes[0])[0], x3 = held.writes(held.nodes[2])[0];
  held.holds = {{x1, NodeId{6}}, {x3, NodeId{6}}};
  EXPECT_THAT(slice_of(held, OpId{1}, OpId{2}).holds, ElementsAre(Hold{x1, NodeId{6}}));
  EXPECT_THAT(slice_of(held, TensorId{3}).holds, ElementsAre(Hold{x3, NodeId{6}}));
}

// An edge holds back the next node of its lane, not whatever node comes next.
TEST_F(SliceOfAChain, NamesTheFirstNodeThatAnEdgeHoldsBack) {
  JointGraph two_lanes = graph;
  two_lanes.lanes = {Lane::Compute, Lane::FirstRegions};
  two_lanes.nodes[6].lane = Lane::FirstRegions;
  two_lanes.edges = {{NodeId{0}, Lane::FirstRegions, NodeId{3}},
                     {NodeId{2}, Lane::Compute, NodeId{5}},
                     {NodeId{6}, Lane::Compute, NodeId{7}}};  // holds back nothing
  EXPECT_THAT(slice_of(two_lanes).orders,
              ElementsAre(Order{NodeId{0}, NodeId{6}}, Order{NodeId{2}, NodeId{5}}));
}

TEST_F(SliceOfAChain, HasBesideItWhatIsOnlyOrdered) {
  JointGraph ordered = graph;
  ordered.edges = {{NodeId{3}, Lane::Compute, NodeId{6}}};
  const GraphSlice slice = slice_of(ordered, OpId{0}, OpId{1});
  EXPECT_THAT(slice.orders, ElementsAre(Order{NodeId{3}, NodeId{6}}));
  EXPECT_THAT(slice.beside, ElementsAre(NodeId{1}, NodeId{3}, NodeId{5}));
  EXPECT_THAT(slice_of(ordered, OpId{1}, OpId{2}).orders, IsEmpty());
}

TEST(SliceOfABlock, OfAnOverlappedChainIsJoinedToBothNeighbours) {
  const PlannedStep step =
      plan_step(std::make_shared<const Trace>(chain(6, 2)), parse_strategy("checkpoint+overlap"));
  const Block& middle = step.trace->blocks.at(1);
  const GraphSlice slice =
      slice_of(differentiate(*step.trace, step.plan), middle.begin, middle.end);
  EXPECT_THAT(slice.nodes, SizeIs(5));  // two forward, one of them again, two gradients
  EXPECT_THAT(slice.orders, testing::Not(IsEmpty()));
  for (const Order& order : slice.orders)
    EXPECT_NE(slice.contains(order.before) ? 1 : 0, slice.contains(order.after) ? 1 : 0);
}

}  // namespace
}  // namespace tidemark::graph_slice_test
