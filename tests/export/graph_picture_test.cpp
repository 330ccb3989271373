// The joint graph as text for graphviz and as JSON: what stands in them, and that both can be read.
#include "analysis/export/graph_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "simulator/graph/differentiate.h"
#include "simulator/strategies/strategy.h"
#include "tests/export/tools.h"
#include "tests/simulator/chain.h"
#include "traces/presets.h"

namespace tidemark::exports::graph_picture_test {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// x1 of two layers is recomputed.
struct RecomputedChain : testing::Test {
  RecomputedChain() : trace(chain(2)), plan(keep_everything(trace)) {
    plan.regions = {{OpId{0}, OpId{0}, OpId{2}, 0}};
    decide(plan, TensorId{1}, Action::Recompute, "to test");
    graph = differentiate(trace, plan);
  }
  ShownGraph shown() const { return {trace, graph, slice_of(graph), "by hand", "all"}; }
  ShownGraph second_op() const {
    return {trace, graph, slice_of(graph, OpId{1}, OpId{2}), "by hand", "op x2"};
  }

  Trace trace;
  Plan plan;
  JointGraph graph;
};

// Without the comments at its head and the looks that all graphs share.
std::string body_of(const std::string& dot) { return dot.substr(dot.find("  subgraph")); }

TEST_F(RecomputedChain, IsDrawnByLaneWithBytesAndVersions) {
  EXPECT_EQ(body_of(graph_dot(shown())), R"dot(  subgraph cluster_0 {
    label="lane: compute"; color="#a0a0a0";
    n0 [label="#0 forward x1\nreads x0 (4 B)", fillcolor="#a2ceee", fontcolor="#000000"];
    n1 [label="#1 forward x2\nwrites x2 (4 B)", fillcolor="#a2ceee", fontcolor="#000000"];
    n2 [label="#2 seed x2", fillcolor="#6e7584", fontcolor="#ffffff"];
    n3 [label="#3 recompute x1\nreads x0 (4 B)", fillcolor="#e07ea0", fontcolor="#000000"];
    n4 [label="#4 backward x2", fillcolor="#febd43", fontcolor="#000000"];
    n5 [label="#5 backward x1\nreads x0 (4 B)\nwrites d x0 (4 B)")dot"
                                         R"dot(, fillcolor="#febd43", fontcolor="#000000"];
  }
  n0 -> n1 [label="x1 (4 B)"];
  n2 -> n4 [label="d x2 (4 B)"];
  n3 -> n4 [label="x1 v1 (4 B)"];
  n5 -> n4 [dir=back, label="d x1 (4 B)"];
  {rank=same; n0; n3; n5; n0 -> n3 [style=invis]; n3 -> n5 [style=invis];}
  {rank=same; n1; n2; n4; n1 -> n2 [style=invis];}
}
)dot");
}

TEST_F(RecomputedChain, DrawsWhatIsBesideSmallAndSaysWhatIsLeftOut) {
  const std::string dot = graph_dot(second_op());
  EXPECT_THAT(dot, HasSubstr("// Shown: 3 of 6 nodes, and 3 beside them; 0 are left out.\n"));
  EXPECT_THAT(dot, HasSubstr("label=\"chain · by hand · op x2\\n3 of 6 nodes, and"));
  EXPECT_THAT(dot, HasSubstr("n0 [label=\"#0 forward x1\", style=\"filled,dashed\", "
                             "fillcolor=\"#a2ceee40\", fontsize=8, height=0.2];"));
  EXPECT_THAT(dot, Not(HasSubstr("d x0")));  // backward x1 writes it, which is only beside
}

TEST_F(RecomputedChain, LeavesOutThePrefixThatItNames) {
  ShownGraph graph_of_x = shown();
  graph_of_x.prefix = "x";
  const std::string dot = graph_dot(graph_of_x);
  EXPECT_THAT(dot, HasSubstr("// Names of tensors leave out 'x'.\n"));
  EXPECT_THAT(dot, HasSubstr("label=\"1 v1 (4 B)\""));
  EXPECT_THAT(dot, HasSubstr("#4 backward x2"));
}

TEST_F(RecomputedChain, DrawsOrderDashedAndHoldsDotted) {
  graph.edges = {{NodeId{1}, Lane::Compute, NodeId{3}}};
  graph.holds = {{graph.writes(graph.nodes[0])[0], NodeId{4}}};
  const std::string dot = graph_dot(shown());
  EXPECT_THAT(dot, HasSubstr("n3 -> n1 [dir=back, style=dashed];"));
  EXPECT_THAT(dot, HasSubstr("n0 -> n4 [style=dotted, label=\"held: x1 (4 B)\"];"));
}

TEST_F(RecomputedChain, TakesNamesThatAreNoWords) {
  trace.ops[0].name = "a\"b\\c\n";
  trace.tensors[1].name = "<{|\"";
  trace.model = "two\nlines";
  const std::string dot = graph_dot(shown());
  EXPECT_THAT(dot, HasSubstr("#0 forward a\\\"b\\\\c"));
  EXPECT_THAT(dot, HasSubstr("label=\"<{|\\\" v1 (4 B)\""));
  EXPECT_THAT(dot, Not(HasSubstr("two\nlines")));
  if (!is_installed("dot")) GTEST_SKIP() << "dot is not installed";
  const Outcome drawn = run_command({"dot", "-Tsvg"}, {.input = dot});
  EXPECT_EQ(drawn.errors, "");
  EXPECT_TRUE(is_xml(drawn.output));
}

TEST_F(RecomputedChain, IsTheSameAsData) {
  const Json json = Json::parse(graph_json(second_op()));
  EXPECT_EQ(json.at("format"), "tidemark-graph");
  EXPECT_EQ(json.at("version"), 1);
  EXPECT_EQ(json.at("strategy"), "by hand");
  EXPECT_EQ(json.at("counts"), Json::parse(R"({"all":6,"shown":3,"beside":3,"left_out":0})"));
  EXPECT_THAT(json.at("lanes"), ElementsAre("compute"));
  const Json& recompute = json.at("nodes").at(3);
  EXPECT_EQ(recompute.at("id"), 3);
  EXPECT_EQ(recompute.at("task"), "recompute");
  EXPECT_EQ(recompute.at("op"), "x1");
  EXPECT_EQ(recompute.at("kind"), "gelu");
  EXPECT_EQ(recompute.at("beside"), true);
  EXPECT_TRUE(recompute.at("reads").empty());  // x0 joins it to nothing that is shown
  const Json written = recompute.at("writes").at(0);
  for (const Json& instance : json.at("instances")) {
    if (instance.at("id") != written) continue;
    EXPECT_EQ(instance.at("tensor"), "x1");
    EXPECT_EQ(instance.at("version"), 1);
    EXPECT_EQ(instance.at("role"), "value");
    EXPECT_EQ(instance.at("bytes"), 4);
    EXPECT_EQ(instance.at("over"), nullptr);
  }
}

TEST_F(RecomputedChain, AsDataHasOrderAndHolds) {
  graph.edges = {{NodeId{1}, Lane::Compute, NodeId{3}}};
  graph.holds = {{graph.writes(graph.nodes[0])[0], NodeId{4}}};
  const Json json = Json::parse(graph_json(shown()));
  EXPECT_EQ(json.at("edges"), Json::parse(R"([{"before":1,"after":3}])"));
  EXPECT_EQ(json.at("holds").at(0).at("until"), 4);
}

class GraphOfABlock : public testing::TestWithParam<const char*> {
 protected:
  GraphOfABlock()
      : step(plan_step(
            std::make_shared<const Trace>(build_trace(find_model("vit-ti-16"), {.batch = 2})),
            parse_strategy(GetParam()))),
        graph(differentiate(*step.trace, step.plan)) {}
  ShownGraph shown() const {
    const Block& block = step.trace->blocks.at(6);
    return {*step.trace, graph, slice_of(graph, block.begin, block.end), GetParam(), block.name};
  }
  const PlannedStep step;
  const JointGraph graph;
};

// Whatever is read in the JSON and written by somebody is written by a node that stands there, too.
TEST_P(GraphOfABlock, IsWholeAsData) {
  const Json json = Json::parse(graph_json(shown()));
  std::map<int, const Json*> instances;
  for (const Json& instance : json.at("instances")) instances[instance.at("id")] = &instance;
  std::set<int> written;
  for (const Json& node : json.at("nodes")) {
    for (const int read : node.at("reads"))
      EXPECT_TRUE(written.contains(read) || instances.at(read)->at("persistent")) << node;
    for (const int write : node.at("writes")) written.insert(write);
  }
  const Json& counts = json.at("counts");
  EXPECT_EQ(counts.at("shown").get<int>() + counts.at("beside").get<int>(),
            static_cast<int>(json.at("nodes").size()));
  EXPECT_EQ(counts.at("left_out").get<std::size_t>() + json.at("nodes").size(),
            counts.at("all").get<std::size_t>());
}

TEST_P(GraphOfABlock, IsDrawnByGraphviz) {
  const std::string dot = graph_dot(shown());
  EXPECT_THAT(dot, Not(HasSubstr("optimizer\"")));  // beside every block, and so beside none
  EXPECT_THAT(dot, HasSubstr("for the optimizer: d blocks.6."));
  if (!is_installed("dot")) GTEST_SKIP() << "dot is not installed";
  const Outcome drawn = run_command({"dot", "-Tsvg"}, {.input = dot});
  EXPECT_EQ(drawn.exit_code, 0);
  EXPECT_EQ(drawn.errors, "");
}

INSTANTIATE_TEST_SUITE_P(Strategies, GraphOfABlock,
                         testing::Values("vanilla", "checkpoint", "pareprop", "mesa",
                                         "mesa:released", "pareprop:released"));

}  // namespace
}  // namespace tidemark::exports::graph_picture_test
