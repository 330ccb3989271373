// A rewriter that changes nothing gives the graph back; what a pass adds or leaves out renumbers
// nodes, versions, edges and holds around it.
#include "simulator/graph/graph_rewriter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/graph/differentiate.h"
#include "simulator/judge/validate.h"
#include "simulator/place/place.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/chain.h"
#include "tests/simulator/random_step.h"
#include "traces/presets.h"

namespace tidemark::graph_rewriter_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

JointGraph copied(const JointGraph& graph) {
  GraphRewriter rewriter(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    EXPECT_EQ(rewriter.copy_next(), static_cast<NodeId>(n));
  return std::move(rewriter).finish();
}

TEST(GraphRewriter, GivesBackTheGraphsOfAllStrategies) {
  const auto trace = std::make_shared<const Trace>(
      build_trace(find_model("vit-ti-16"), {.batch = 2, .dropout = 0.1}));
  for (const StrategyRow& row : strategies()) {
    const PlannedStep step = plan_step(trace, parse_strategy(row.name));
    if (!step.refusal.empty()) continue;
    const JointGraph graph = differentiate(*step.trace, step.plan);
    EXPECT_EQ(copied(graph), graph) << row.name;
  }
}

TEST(GraphRewriter, GivesBackTheGraphsOfRandomSteps) {
  for_random_steps(500, Concats::Some, [](const RandomStep& step) {
    const JointGraph graph = differentiate(step.trace, step.plan);
    ASSERT_EQ(copied(graph), graph);
  });
}

TEST(GraphRewriter, GivesBackAnEmptyGraph) { EXPECT_EQ(copied({}), JointGraph()); }

// forward x1 0, x2 1; seed 2; recompute x1 3; backward x2 4, x1 5
struct RecomputedChain : testing::Test {
  RecomputedChain() : trace(chain(2)), plan(keep_everything(trace)) {
    plan.regions = {{OpId{0}, OpId{0}, OpId{2}, 0}};
    decide(plan, TensorId{1}, Action::Recompute, "to test");
    graph = differentiate(trace, plan);
  }
  void copy(GraphRewriter& rewriter, int nodes) const {
    while (nodes-- > 0) rewriter.copy_next();
  }
  InstanceId written_by(std::size_t node) const { return graph.writes(graph.nodes[node])[0]; }

  Trace trace;
  Plan plan;
  JointGraph graph;
};

// A pass that thinks better of it: the first x1 stays, and nothing runs again.
TEST_F(RecomputedChain, WithoutTheRecomputationIsThatOfVanilla) {
  GraphRewriter rewriter(graph);
  copy(rewriter, 3);
  rewriter.skip_next();
  rewriter.replace(written_by(3), rewriter.now(written_by(0)));
  copy(rewriter, 2);
  EXPECT_EQ(std::move(rewriter).finish(), differentiate(trace, keep_everything(trace)));
}

TEST_F(RecomputedChain, CountsVersionsAnew) {
  GraphRewriter rewriter(graph);
  copy(rewriter, 1);
  EXPECT_EQ(rewriter.now(written_by(3)), no_instance);
  Operation again = rewriter.reads_of(graph.nodes[0]);
  again.write(rewriter.write_over(written_by(0)));
  rewriter.append(Task::Recompute, Lane::Compute, OpId{0}, again);
  copy(rewriter, 5);
  const JointGraph edited = std::move(rewriter).finish();
  EXPECT_THAT(validate(edited), IsEmpty());
  EXPECT_EQ(edited[edited.writes(edited.nodes[1])[0]].version, 1);
  EXPECT_EQ(edited[edited.writes(edited.nodes[4])[0]].version, 2);
  EXPECT_EQ(edited.reads(edited.nodes[2])[0], edited.writes(edited.nodes[1])[0]);
}

// What is appended after node 1 belongs to it: the edge and the hold that wait for it wait longer.
TEST_F(RecomputedChain, MovesEdgesAndHoldsBehindWhatBelongsToTheirNode) {
  graph.edges = {{NodeId{1}, Lane::Compute, NodeId{2}}, {NodeId{0}, Lane::Compute, NodeId{3}}};
  graph.holds = {{written_by(0), NodeId{2}}};
  GraphRewriter rewriter(graph);
  copy(rewriter, 2);
  Operation nothing;
  EXPECT_EQ(rewriter.append(Task::Seed, Lane::Compute, OpId{1}, nothing), NodeId{2});
  copy(rewriter, 4);
  const JointGraph edited = std::move(rewriter).finish();
  EXPECT_THAT(edited.edges, ElementsAre(Edge{NodeId{2}, Lane::Compute, NodeId{3}},
                                        Edge{NodeId{0}, Lane::Compute, NodeId{4}}));
  EXPECT_THAT(edited.holds, ElementsAre(Hold{InstanceId{1}, NodeId{3}}));
}

// Whoever named the first x1 names what stands for it.
TEST_F(RecomputedChain, HoldsWhatStandsForAnInstance) {
  graph.holds = {{written_by(0), NodeId{4}}};
  GraphRewriter rewriter(graph);
  copy(rewriter, 4);
  rewriter.replace(written_by(0), rewriter.now(written_by(3)));
  copy(rewriter, 2);
  EXPECT_THAT(std::move(rewriter).finish().holds, IsEmpty());  // node 4 reads it, and is the last
}

}  // namespace
}  // namespace tidemark::graph_rewriter_test
