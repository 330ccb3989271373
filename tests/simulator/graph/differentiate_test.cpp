// The joint graph of small steps, node by node, and how the judge notices what is wrong with one.
#include "simulator/graph/differentiate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/chain.h"

namespace tidemark::differentiate_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string text_of(const Trace& trace, const JointGraph& graph, InstanceId id) {
  const Instance& instance = graph[id];
  const std::string name = instance.tensor == no_tensor ? "" : trace[instance.tensor].name;
  const std::string_view role = roles[static_cast<std::size_t>(instance.role)].name;
  const std::string prefix = instance.role == Role::Value ? "" : fmt::format("{} of ", role);
  return fmt::format("{}{}#{}{}", prefix, name, instance.version,
                     instance.on_host ? " on the host" : "");
}

// "recompute x1: x0#0 → x1#1"
std::vector<std::string> nodes_of(const Trace& trace, const JointGraph& graph) {
  std::vector<std::string> lines;
  for (const Node& node : graph.nodes) {
    std::vector<std::string> reads, writes;
    for (const InstanceId id : graph.reads(node)) reads.push_back(text_of(trace, graph, id));
    for (const InstanceId id : graph.writes(node)) writes.push_back(text_of(trace, graph, id));
    lines.push_back(fmt::format("{} {}: {} → {}", node.task ? to_string(*node.task) : "copy",
                                node.op == no_op ? "" : trace[node.op].name, fmt::join(reads, ", "),
                                fmt::join(writes, ", ")));
  }
  return lines;
}

JointGraph graph_of(const Trace& trace, const Plan& plan) {
  EXPECT_THAT(check(trace, plan), IsEmpty());
  JointGraph graph = differentiate(trace, plan);
  EXPECT_THAT(validate(graph), IsEmpty());
  return graph;
}

TEST(Differentiate, ReadsTheSecondVersionOfWhatIsRecomputed) {
  const Trace trace = chain(2);
  Plan plan = keep_everything(trace);
  plan.regions = {{OpId{0}, OpId{0}, OpId{2}, 0}};
  decide(plan, TensorId{1}, Action::Recompute, "to test");
  EXPECT_THAT(nodes_of(trace, graph_of(trace, plan)),
              ElementsAre("forward x1: x0#0 → x1#0", "forward x2: x1#0 → x2#0",
                          "seed x2:  → gradient of x2#0", "recompute x1: x0#0 → x1#1",
                          "backward x2: gradient of x2#0, x1#1 → gradient of x1#0",
                          "backward x1: gradient of x1#0, x0#0 → gradient of x0#0"));
}

TEST(Differentiate, CopiesOutAndInWhatIsOffloaded) {
  const Trace trace = chain(2);
  Plan plan = keep_everything(trace);
  decide(plan, TensorId{1}, Action::Offload, "to test");
  EXPECT_THAT(nodes_of(trace, graph_of(trace, plan)),
              ElementsAre("forward x1: x0#0 → x1#0", "forward x2: x1#0 → x2#0",
                          "copy x1: x1#0 → x1#1 on the host", "seed x2:  → gradient of x2#0",
                          "copy x1: x1#1 on the host → x1#2",
                          "backward x2: gradient of x2#0, x1#2 → gradient of x1#0",
                          "backward x1: gradient of x1#0, x0#0 → gradient of x0#0"));
}

// x1 leaves beside f3, and is fetched while b3 runs.
TEST(Differentiate, CopiesBesideTheStepWhereThePlanSaysWhen) {
  const Trace trace = chain(4);
  Plan plan = keep_everything(trace);
  decide(plan, TensorId{1}, Action::Offload, "to test");
  plan.left_by.assign(trace.tensors.size(), no_op);
  plan.fetched_at.assign(trace.tensors.size(), no_op);
  plan.left_by[1] = OpId{3}, plan.fetched_at[1] = OpId{2};
  const JointGraph graph = graph_of(trace, plan);
  EXPECT_THAT(nodes_of(trace, graph),
              ElementsAre("forward x1: x0#0 → x1#0", "forward x2: x1#0 → x2#0",
                          "copy x1: x1#0 → x1#1 on the host", "forward x3: x2#0 → x3#0",
                          "forward x4: x3#0 → x4#0", "seed x4:  → gradient of x4#0",
                          "backward x4: gradient of x4#0, x3#0 → gradient of x3#0",
                          "copy x1: x1#1 on the host → x1#2",
                          "backward x3: gradient of x3#0, x2#0 → gradient of x2#0",
                          "backward x2: gradient of x2#0, x1#2 → gradient of x1#0",
                          "backward x1: gradient of x1#0, x0#0 → gradient of x0#0"));
  EXPECT_EQ(graph[NodeId{2}].lane, Lane::CopyOut);
  EXPECT_EQ(graph[NodeId{7}].lane, Lane::CopyIn);
  ASSERT_FALSE(graph.edges.empty());
  EXPECT_EQ(graph.edges.front(), (Edge{NodeId{2}, Lane::Compute, NodeId{4}}));
}

std::vector<Lane> lanes_of(const JointGraph& graph, Task task) {
  std::vector<Lane> lanes;
  for (const Node& node : graph.nodes)
    if (node.task == task) lanes.push_back(node.lane);
  return lanes;
}

TEST(Differentiate, LetsRegionsOfAnOverlappedChainTakeLanesInTurn) {
  const Trace trace = chain(8, 2);
  PlannedStep step =
      plan_step(std::make_shared<const Trace>(trace), parse_strategy("checkpoint+overlap"));
  ASSERT_EQ(step.refusal, "");
  EXPECT_THAT(lanes_of(graph_of(*step.trace, step.plan), Task::Recompute),
              ElementsAre(Lane::FirstRegions, Lane::SecondRegions, Lane::FirstRegions,
                          Lane::SecondRegions));
  step.plan.lanes = 3;
  const JointGraph of_three = graph_of(*step.trace, step.plan);
  EXPECT_THAT(
      lanes_of(of_three, Task::Recompute),
      ElementsAre(Lane::FirstRegions, Lane::SecondRegions, Lane::ThirdRegions, Lane::FirstRegions));
  // Each region's gradients are where it was recovered.
  EXPECT_THAT(
      lanes_of(of_three, Task::Backward),
      ElementsAre(Lane::FirstRegions, Lane::FirstRegions, Lane::SecondRegions, Lane::SecondRegions,
                  Lane::ThirdRegions, Lane::ThirdRegions, Lane::FirstRegions, Lane::FirstRegions));
}

// Ops 4 and 5 are a region: what runs again in that of ops 2 and 3 may wait for their gradients.
TEST(Differentiate, LetsARerunWaitForGradientsBehindItsRegion) {
  const Trace trace = chain(6, 2);
  PlannedStep step =
      plan_step(std::make_shared<const Trace>(trace), parse_strategy("checkpoint+overlap"));
  step.plan.rerun_after.assign(trace.ops.size(), no_op);
  step.plan.rerun_after[2] = OpId{5};
  ASSERT_THAT(check(trace, step.plan), IsEmpty());
  const JointGraph graph = graph_of(*step.trace, step.plan);
  const auto node_of = [&](Task task, std::size_t op) {
    const auto found = std::ranges::find_if(graph.nodes, [&](const Node& node) {
      return node.task == task && node.op == static_cast<OpId>(op);
    });
    return static_cast<NodeId>(found - graph.nodes.begin());
  };
  EXPECT_THAT(graph.edges, Contains(Edge{node_of(Task::Backward, 5), Lane::SecondRegions,
                                         node_of(Task::Recompute, 2)}));
}

// The second micro-batch makes values anew, and adds to the gradient that the first has left.
TEST(Differentiate, RepeatsForwardAndBackwardForEachMicroBatchAndUpdatesOnce) {
  StepOptions options{.batch = 1, .precision = Precision::Fp32};
  options.accumulate = {2};
  TraceBuilder b("batches", "toy", options);
  const TensorId y = b.linear("fc", b.input("x", {1, 4}, DType::Float32), 4, false);
  const TensorId targets = b.input("targets", {1}, DType::Int64);
  const Trace trace = b.finish(b.cross_entropy("loss", y, targets));
  const JointGraph graph = graph_of(trace, keep_everything(trace));
  std::vector<std::string> of_fc;
  for (const std::string& node : nodes_of(trace, graph))
    if (node.find(" fc:") != std::string::npos || node.starts_with("optimizer"))
      of_fc.push_back(node);
  EXPECT_THAT(of_fc,
              ElementsAre("forward fc: x#0, fc.weight#0 → fc#0",
                          "backward fc: gradient of fc#0, x#0 → gradient of fc.weight#0",
                          "forward fc: x#0, fc.weight#0 → fc#1",
                          "backward fc: gradient of fc#1, x#0 → gradient of fc.weight#1",
                          "accumulate fc: gradient of fc.weight#1, gradient of fc.weight#0 → "
                          "gradient of fc.weight#2",
                          "optimizer : gradient of fc.weight#2 → fc.weight#1, optimizer state of "
                          "fc.weight#1, temporary of fc.weight#0"));
}

// --- the judge of graphs ------------------------------------------------------------------------

struct DamagedGraph : testing::Test {
  DamagedGraph() : graph(differentiate(trace, keep_everything(trace))) {}
  InstanceId& read_of(std::size_t node, std::size_t k) {
    return graph.operands[graph.nodes[node].first_operand + k];
  }
  InstanceId& write_of(std::size_t node) {
    return graph.operands[graph.nodes[node].first_operand + graph.nodes[node].reads];
  }
  const Trace trace = chain(3);
  JointGraph graph;
};

TEST_F(DamagedGraph, ReadsWhatIsNotWrittenYet) {
  read_of(0, 0) = write_of(2);
  EXPECT_THAT(validate(graph), Contains(HasSubstr("not written yet")));
}

TEST_F(DamagedGraph, WritesTwice) {
  write_of(1) = write_of(0);
  EXPECT_THAT(validate(graph), Contains(HasSubstr("again")));
  EXPECT_THAT(validate(graph), Contains(HasSubstr("never written")));
}

TEST_F(DamagedGraph, ReadsWhatIsOverwritten) {
  graph.instances.push_back(graph[write_of(0)]);
  graph.instances.back().over = write_of(0);
  const auto added = static_cast<InstanceId>(graph.instances.size() - 1);
  graph.operands.push_back(added);
  graph.nodes.insert(graph.nodes.begin() + 1,
                     Node{.task = Task::Recompute,
                          .op = OpId{0},
                          .first_operand = static_cast<std::uint32_t>(graph.operands.size() - 1),
                          .writes = 1});
  EXPECT_THAT(validate(graph), Contains(HasSubstr("overwritten")));
}

TEST_F(DamagedGraph, OrdersAfterWhatComesLater) {
  graph.edges.push_back({NodeId{2}, Lane::Compute, NodeId{1}});
  EXPECT_THAT(validate(graph), ElementsAre("an edge orders nothing"));
}

}  // namespace
}  // namespace tidemark::differentiate_test
