// What is said of plans for the stages of a pipeline, and of plans that do more than recompute:
// what runs beside the gradients, and networks that are others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/reports/print_planning.h"
#include "tests/cli/small_planning.h"

namespace tidemark::cli::pipeline_words_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace literals;

Planning piped() {
  Planning made = small_planning();
  made.stages = {stage_plan(0, 20), stage_plan(1, 15)};
  return made;
}

TEST(PipelineProof, IsOfAllStagesTogether) {
  Planning made = piped();
  EXPECT_EQ(planning_words(made),
            "Proof: no plans that keep or recompute what blocks of the stages save, each block by "
            "itself, take less than 24.5 ms together in 24.0 MiB on each; these are at most 2.00 % "
            "above that.");
  made.joins_blocks = true;
  EXPECT_THAT(planning_words(made), HasSubstr(", blocks by themselves or up to 8 together, take "));
}

TEST(PipelineProof, LeavesOutWhatReplicasExchange) {
  Planning made = piped();
  const std::string said =
      " What replicas exchange is hidden in the bound, and simulated in the "
      "plans.";
  EXPECT_THAT(planning_words(made), Not(HasSubstr(said)));
  made.comparison.scenario.step.mesh[Axis::Data] = 2;
  EXPECT_THAT(planning_words(made), testing::EndsWith(said));
}

// Those stages alone that do not keep to it, each with what holds so much.
TEST(PipelineRefusal, NamesTheStagesThatNeedMore) {
  Planning made = piped();
  made.feasible = false;
  made.budget = 12_MiB;
  made.stages[1].is_feasible = false;
  EXPECT_EQ(planning_words(made),
            "No plan keeps to 12.0 MiB allocated on every stage: pp1 needs 15.0 MiB at least (the "
            "optimizer step holds 5.00 MiB).");
  made.stages[0].is_feasible = false;
  made.stages[0].binding = "backward of loss";
  EXPECT_EQ(planning_words(made),
            "No plan keeps to 12.0 MiB allocated on every stage: pp0 needs 20.0 MiB at least "
            "(memory is tightest in the backward of loss), pp1 needs 15.0 MiB at least (the "
            "optimizer step holds 5.00 MiB).");
  made.request.measure = Measure::Reserved;  // a fifth more
  EXPECT_THAT(planning_words(made), AllOf(HasSubstr("12.0 MiB reserved on every"),
                                          HasSubstr("pp0 needs 24.0 MiB at least")));
}

TEST(PlanWords, SayWhatRunsOnStreamsOfItsOwn) {
  Planning made = small_planning();
  const std::string said =
      " What runs again does so on streams of its own, beside the gradients of "
      "what follows it.";
  EXPECT_THAT(planning_words(made), Not(HasSubstr(said)));
  made.planned.plan.overlap = true;
  EXPECT_THAT(planning_words(made), HasSubstr(said));
  EXPECT_THAT(planning_words(made), Not(HasSubstr("on one stream or several")));
  made.request.allowed = {Allowed::Exact, Allowed::Overlap};
  EXPECT_THAT(planning_words(made),
              HasSubstr("each block by itself, on one stream or several, takes"));
}

TEST(PlanWords, SayThatCoupledBlocksAreAnotherNetwork) {
  Planning made = small_planning();
  made.request.allowed = {Allowed::Exact, Allowed::Coupled};
  EXPECT_THAT(planning_words(made), HasSubstr("no plan that keeps, reconstructs or recomputes"));
  made.planned.rewrites = parse_strategy("reversible").components;
  const std::string text = operators_text(made.planned);
  EXPECT_THAT(text, StartsWith(" The network is another one, with coupled blocks ("));
  EXPECT_THAT(text, Not(HasSubstr("Operators are")));
  EXPECT_THAT(planning_words(made), HasSubstr(text));
}

// Codes or operators alone need no sum.
TEST(PlanWords, SplitAnErrorOnlyWhereItHasTwoParts) {
  Planning made = small_planning();
  made.error = {.codes = 0, .operators = 0.0016};
  EXPECT_THAT(planning_words(made), HasSubstr(" about 4 % from exact ones, going by"));
}

}  // namespace
}  // namespace tidemark::cli::pipeline_words_test
