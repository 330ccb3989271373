// A new pass is one file and one line. This is such a file: the pass runs each recomputed op once
// more and lets later readers read the second result; the line is in imagined(). The judges accept
// what comes of it, and it costs exactly the added runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/graph/differentiate.h"
#include "simulator/graph/graph_rewriter.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/place/place.h"
#include "simulator/simulate.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/chain.h"
#include "tests/simulator/cost/toy_device.h"
#include "tests/simulator/naive_player.h"
#include "tests/simulator/planned.h"
#include "tests/simulator/random_step.h"
#include "traces/presets.h"

namespace tidemark::imaginary_pass_test {
namespace {

using testing::IsEmpty;

enum class Second { Over, Beside };

// Twice in place is not the same as once.
bool works_in_place(const JointGraph& graph, const Node& node) {
  return std::ranges::any_of(graph.writes(node), [&](InstanceId write) {
    return std::ranges::count(graph.reads(node), graph[write].over) > 0;
  });
}

// The second result is written over the first, or into memory of its own.
template <Second second>
JointGraph recompute_twice(const JointGraph& graph) {
  GraphRewriter rewriter(graph);
  for (const Node& node : graph.nodes) {
    rewriter.copy_next();
    if (node.task != Task::Recompute || works_in_place(graph, node)) continue;
    Operation again = rewriter.reads_of(node);
    for (const InstanceId first : graph.writes(node)) {
      if (second == Second::Beside) {
        Instance own = graph[first];
        own.over = no_instance;
        rewriter.replace(first, rewriter.add(own));
      } else {
        rewriter.write_over(first);
      }
      again.write(rewriter.now(first));
    }
    rewriter.append(node.task, node.lane, node.op, again);
  }
  return std::move(rewriter).finish();
}

using Pass = JointGraph (*)(const JointGraph& graph);

Schedule imagined(const Trace& trace, const Plan& plan, Pass pass) {
  const JointGraph graph = pass(differentiate(trace, plan));
  EXPECT_THAT(validate(graph), IsEmpty());
  Schedule schedule = place(graph, placement_of(trace, plan));
  EXPECT_THAT(validate(trace, schedule), IsEmpty());
  return schedule;
}

class ImaginaryPass : public testing::TestWithParam<Pass> {};

INSTANTIATE_TEST_SUITE_P(All, ImaginaryPass,
                         testing::Values(recompute_twice<Second::Over>,
                                         recompute_twice<Second::Beside>),
                         [](const auto& pass) { return pass.index == 0 ? "Over" : "Beside"; });

// Three blocks of four layers, of which the first three run again: 9 runs. A layer of one float
// reads 4 B and writes 4 B, which takes the toy device 8 ns.
TEST_P(ImaginaryPass, TakesTheTimeOfTheAddedRuns) {
  const auto [trace, plan, refusal, derived, rewrites] = planned(chain(12, 4), "checkpoint");
  const Schedule once = lower(*trace, plan), twice = imagined(*trace, plan, GetParam());
  EXPECT_EQ(count_runs(once, Task::Recompute), 9);
  EXPECT_EQ(count_runs(twice, Task::Recompute), 18);
  EXPECT_EQ(std::ssize(runs_of(twice)), std::ssize(runs_of(once)) + 9);
  const Device device = toy_device();
  EXPECT_EQ(simulate(*trace, twice, device).duration,
            simulate(*trace, once, device).duration + Nanoseconds(9 * 8));
}

// The first result has no reader: its memory holds the second, or goes before that is allocated.
TEST_P(ImaginaryPass, NeedsNoMoreMemory) {
  const auto [trace, plan, refusal, derived, rewrites] = planned(chain(12, 4), "checkpoint");
  const Schedule once = lower(*trace, plan), twice = imagined(*trace, plan, GetParam());
  EXPECT_EQ(live_peak(twice), live_peak(once));
  const bool is_over = GetParam() == Pass(recompute_twice<Second::Over>);
  EXPECT_EQ(twice.buffers.size(), once.buffers.size() + (is_over ? 0 : 9));
}

TEST_P(ImaginaryPass, LetsTheBackwardReadTheSecondResult) {
  const auto [trace, plan, refusal, derived, rewrites] = planned(chain(4, 4), "checkpoint");
  const JointGraph graph = GetParam()(differentiate(*trace, plan));
  for (const Node& node : graph.nodes) {
    if (node.task != Task::Backward || node.op == OpId{0}) continue;
    EXPECT_EQ(graph[graph.reads(node)[1]].version, 2) << (*trace)[node.op].name;
  }
}

// Two lanes, couplings, codes, variables that hold memory, dropout: all that strategies make.
TEST_P(ImaginaryPass, WorksOnWholeNetworks) {
  const Model model = find_model("swin-t");
  for (const char* strategy : {"checkpoint", "checkpoint+overlap", "pareprop", "mesa+checkpoint",
                               "reversible", "pareprop:released"}) {
    SCOPED_TRACE(strategy);
    const auto [trace, plan, refusal, derived, rewrites] =
        planned(build_trace(model, {.batch = 8, .dropout = 0.1}), strategy);
    const Schedule once = lower(*trace, plan), twice = imagined(*trace, plan, GetParam());
    EXPECT_EQ(count_runs(twice, Task::Recompute), 2 * count_runs(once, Task::Recompute));
    const Device device = find_device("a100-80gb");
    EXPECT_GT(simulate(*trace, twice, device).duration, simulate(*trace, once, device).duration);
  }
}

// The player computes with numbers: the second results are those of the first.
TEST_P(ImaginaryPass, ChangesNoNumberOfRandomSteps) {
  for_random_steps(200, Concats::None, [&](const RandomStep& step) {
    const Schedule once = lower(step.trace, step.plan);
    const Schedule twice = imagined(step.trace, step.plan, GetParam());
    const Played expected = play(step.trace, once);
    ASSERT_EQ(expected.fault, "");
    ASSERT_TRUE(plays_as(step.trace, twice, expected));
  });
}

}  // namespace
}  // namespace tidemark::imaginary_pass_test
