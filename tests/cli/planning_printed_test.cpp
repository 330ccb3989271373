// A plan as a table, from a planning made by hand: decisions by blocks, stages of a pipeline,
// fronts of budgets and other forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/reports/print_comparison.h"
#include "cli/reports/print_planning.h"
#include "tests/cli/small_planning.h"

namespace tidemark::cli::planning_printed_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using namespace literals;
using std::chrono::microseconds;

const Style wide = {.width = 200};

std::string table_of(const Planning& made) { return planning_table(made, wide); }

TEST(PlanningTable, HasALineForEachDecisionAndTheSumsOnce) {
  const std::string text = table_of(small_planning());
  EXPECT_THAT(text, HasSubstr(R"(
blocks                    saves  costs  decision          tensors
                            MiB     µs
blocks.0 to blocks.2 (3)  16.00   4000  recompute         attn, mlp
                                        quantize, 4 bits  norm1
blocks.3                                keep              all

Proof: no plan that )"));
  EXPECT_THAT(text,
              HasSubstr("All numbers are predicted.\n\n" +
                        comparison_rows(small_planning().comparison, wide, "json") + "\nblocks  "));
}

TEST(PlanningTable, BeginsWithTheSceneAndEndsWithCautions) {
  Planning careful = small_planning();
  careful.comparison.rows[1].caution = "rounds what it keeps";
  const std::string text = table_of(careful);
  EXPECT_THAT(text, testing::StartsWith("ViT: 86.0 M parameters, all trained\nbatch 4 × 197"));
  EXPECT_THAT(text, EndsWith("\n\nNot only memory and time:\n"
                             "  plan:24.0 MiB: rounds what it keeps\n"));
}

TEST(PlanningTable, HasNoDecisionsWhereThereAreNoBlocks) {
  Planning without = small_planning();
  without.groups.clear();
  EXPECT_THAT(table_of(without),
              AllOf(HasSubstr("room for\n\nProof: "), Not(HasSubstr("decision"))));
}

TEST(PlanningTable, IsAsciiWhereTheTerminalIs) {
  const std::string text = planning_table(small_planning(), {.unicode = false, .width = 200});
  EXPECT_THAT(text, AllOf(HasSubstr("     us\n"), Not(HasSubstr("·"))));
}

// Of a pipeline, each stage has its own needs and decisions; its name stands on its first line.
TEST(PlanningTable, HasTheStagesOfAPipeline) {
  Planning piped = small_planning();
  piped.stages = {stage_plan(0, 20), stage_plan(1, 15)};
  EXPECT_THAT(table_of(piped), AllOf(HasSubstr(R"(
stage  in flight  allocated  reserved  recompute  bubble  tightest in
                        MiB       MiB         ms      ms
pp0            2      20.00     24.00       5.00   20.00  optimizer step
pp1            1      15.00     18.00       5.00   20.00  optimizer step

stage  blocks                    saves  costs  decision          tensors
                                   MiB     µs
pp0    blocks.0 to blocks.2 (3)  16.00   4000  recompute         attn, mlp
                                               quantize, 4 bits  norm1
       blocks.3                                keep              all
pp1    blocks.0 to blocks.2 (3)  16.00   4000  recompute         attn, mlp
                                               quantize, 4 bits  norm1
       blocks.3                                keep              all

)")));
  EXPECT_THAT(table_of(piped), Not(HasSubstr("\nblocks  ")));
}

// A bar is at most vanilla's 40 MiB, 24 characters; the change is in memory, then in time.
TEST(PlanningTable, HasTheFrontBesideVanilla) {
  EXPECT_THAT(table_of(planning_with_front()), EndsWith(R"(
The front, 3 of its 9 points:
allocated                             change   step    change
      MiB                                        ms
    10.00  ██████                    −75.0 %  40.00  +100.0 %
    20.00  ████████████              −50.0 %  25.00   +25.0 %
    50.00  ████████████████████████  +25.0 %  20.00     0.0 %
)"));
  Planning none = planning_with_front();
  none.fronts[0].points.clear();
  EXPECT_THAT(table_of(none), Not(HasSubstr("The front")));
}

// What a class has no plan for says so, if another has.
TEST(PlanningTable, HasAColumnForEachFront) {
  Planning two = planning_with_front();
  two.fronts.push_back(small_front());
  two.fronts[0].points.erase(two.fronts[0].points.begin());
  two.fronts[1].allowed = {Allowed::Exact, Allowed::Offload};
  EXPECT_THAT(table_of(two),
              AllOf(HasSubstr("\nWhat budgets cost with what plans may do (some points of each "
                              "front):\nallocated"),
                    HasSubstr("change  exact   change  exact,offload    change\n"),
                    HasSubstr("−75.0 %   none                   40.00  +100.0 %\n")));
}

TEST(PlanningTable, HasOtherFormsOfTheSameBudget) {
  Planning other = small_planning();
  other.forms = {{"every n-th", "n = 2", 30_MiB, microseconds(22'000)}, {"blocks", "", {}, {}}};
  EXPECT_THAT(table_of(other), EndsWith(R"(
The same budget, as other programs let you write it:
form        allocated   step   change  what to write
                  MiB     ms
every n-th      30.00  22.00  +10.0 %  n = 2
blocks                                 nothing of this form keeps to it
)"));
}

}  // namespace
}  // namespace tidemark::cli::planning_printed_test
