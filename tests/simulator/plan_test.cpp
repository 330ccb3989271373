// Sound plans pass, and plans with one thing wrong are refused with what it is.
#include "simulator/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/strategies/strategy.h"
#include "tests/simulator/chain.h"
#include "tests/traces/small_trace.h"
#include "traces/models/model_config.h"

namespace tidemark::plan_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

struct PlanOfAChain : testing::Test {
  Trace trace = chain(4);  // x0 … x4, tensors 0 … 4, ops 0 … 3
  Plan plan = keep_everything(trace);

  void decide(int tensor, Action action) {
    tidemark::decide(plan, static_cast<TensorId>(tensor), action, "to test");
  }
  void add_region(int begin, int split, int end) {
    plan.regions.push_back(
        {static_cast<OpId>(begin), static_cast<OpId>(split), static_cast<OpId>(end), 0});
  }
  std::vector<std::string> defects() const { return check(trace, plan); }
};

TEST_F(PlanOfAChain, KeepingEverythingIsSound) {
  EXPECT_THAT(defects(), IsEmpty());
  EXPECT_THAT(plan.decisions, Each(Field(&Decision::action, Action::Keep)));
  EXPECT_THAT(plan.reasons, Each(Not(IsEmpty())));
}

TEST_F(PlanOfAChain, EqualReasonsAreListedOnce) {
  decide(1, Action::Offload);
  decide(2, Action::Offload);
  EXPECT_EQ(plan.decisions[1].reason, plan.decisions[2].reason);
  EXPECT_EQ(plan.reasons[plan.decisions[1].reason], "to test");
  EXPECT_EQ(plan.reasons.size(), 2u);
}

TEST_F(PlanOfAChain, RecomputingInsideOfARegionIsSound) {
  add_region(0, 0, 2);
  decide(1, Action::Recompute);
  EXPECT_THAT(defects(), IsEmpty());
}

// f2 writes its result over x1.
TEST_F(PlanOfAChain, WhatIsOverwrittenInPlaceCannotBeRecomputed) {
  trace.tensors[2].storage = TensorId{1};
  add_region(0, 0, 2);
  decide(1, Action::Recompute);
  EXPECT_THAT(defects(),
              ElementsAre(HasSubstr("'x1' is recompute, but 'x2' works in place on it")));
}

// f1 writes its result over x0, which no op makes.
TEST_F(PlanOfAChain, AnInputThatIsOverwrittenCannotBeRecomputed) {
  trace.tensors[1].storage = TensorId{0};
  add_region(0, 0, 2);
  decide(0, Action::Recompute);
  EXPECT_THAT(defects(), testing::Contains(HasSubstr("'x1' works in place on it")));
}

TEST_F(PlanOfAChain, CheckpointsKeepWhatIsWorkedOnInPlace) {
  trace.tensors[4].storage = TensorId{3};
  const PlannedStep step =
      plan_step(std::make_shared<const Trace>(trace), parse_strategy("checkpoint:every=2"));
  EXPECT_EQ(step.refusal, "");
  EXPECT_EQ(step.plan.decisions[1].action, Action::Recompute);
  EXPECT_EQ(step.plan.decisions[3].action, Action::Keep);
}

TEST_F(PlanOfAChain, RecomputingWithoutARegionIsRefused) {
  decide(1, Action::Recompute);
  EXPECT_THAT(defects(),
              ElementsAre("'x1' is recompute but nothing provides it before the gradient of 'x2': "
                          "keep it, or let one region hold its producer and all its uses"));
}

// x2 is made by op 1 and read by op 2: a region that ends between them cannot bring it back.
TEST_F(PlanOfAChain, RecomputingOutsideOfTheRegionIsRefused) {
  add_region(0, 0, 2);
  decide(2, Action::Recompute);
  EXPECT_THAT(defects(), ElementsAre(HasSubstr("'x2' is recompute but nothing provides it")));
}

TEST_F(PlanOfAChain, OnlyWhatAnOpMakesCanBeLetGo) {
  decide(0, Action::Offload);
  EXPECT_THAT(defects(), ElementsAre("'x0' is offload, but no op of the step writes it: only its "
                                     "own memory can provide it"));
}

TEST_F(PlanOfAChain, ReconstructingNeedsACoupling) {
  add_region(0, 0, 4);
  decide(3, Action::Reconstruct);
  EXPECT_THAT(defects(), IsEmpty());  // its producer runs again: the region holds it, too
  plan.regions = {};
  EXPECT_THAT(defects(), ElementsAre(HasSubstr("'x3' is reconstruct but nothing provides it")));
}

TEST_F(PlanOfAChain, RegionsAreInOrderAndDisjoint) {
  add_region(2, 2, 4);
  add_region(0, 0, 2);
  EXPECT_THAT(defects(), ElementsAre(HasSubstr("region 1 [0, 0, 2) is empty, out of order")));
  plan.regions = {};
  add_region(0, 0, 3);
  add_region(2, 2, 4);
  EXPECT_THAT(defects(), ElementsAre(HasSubstr("region 1 [2, 2, 4)")));
}

TEST_F(PlanOfAChain, RegionsHoldOpsOfTheTrace) {
  for (const auto& [begin, split, end] : {std::array{1, 1, 1}, {0, 3, 2}, {2, 1, 3}, {0, 0, 5}}) {
    plan.regions = {};
    add_region(begin, split, end);
    EXPECT_THAT(defects(), ElementsAre(HasSubstr("is empty, out of order or out of range")));
  }
}

TEST_F(PlanOfAChain, ListsAreAsLongAsTheTrace) {
  plan.decisions.pop_back();
  EXPECT_THAT(defects(), ElementsAre("the plan is for 4 tensors, the trace has 5"));
}

TEST_F(PlanOfAChain, CopiesAreMadeAtOpsOfTheTrace) {
  decide(1, Action::Offload);
  plan.left_by.assign(trace.tensors.size(), no_op);
  EXPECT_THAT(defects(), IsEmpty());
  plan.left_by[1] = static_cast<OpId>(trace.ops.size());
  EXPECT_THAT(defects(), ElementsAre(HasSubstr("'x1' is copied at op ")));
}

TEST_F(PlanOfAChain, ListsOfHeldTensorsAreAsLongAsTheTrace) {
  plan.value_release_after = {no_op};
  EXPECT_THAT(defects(), ElementsAre(HasSubstr("a list of ops by tensor has another size")));
}

TEST_F(PlanOfAChain, ReasonsAreThereAndNotEmpty) {
  plan.reasons.push_back("");
  EXPECT_THAT(defects(), ElementsAre("a reason is empty"));
  plan.reasons.pop_back();
  plan.decisions[2].reason = 7;
  EXPECT_THAT(defects(), ElementsAre("a reason is out of range"));
}

TEST(Checkpoint, WrapsWhatTheModelsOwnDoes) {
  const SwinConfig config{.image = 32,
                          .patch = 2,
                          .width = 16,
                          .depths = {2, 3},
                          .heads = {2, 4},
                          .window = 4,
                          .checkpoints_stages = true};
  const auto trace = std::make_shared<const Trace>(
      build_trace({"small-swin", "swin", "", "", config}, {.batch = 2}));
  const Plan stages = plan_step(trace, parse_strategy("checkpoint")).plan;
  ASSERT_EQ(stages.regions.size(), 2u);
  EXPECT_EQ(stages.regions[0].begin, trace->blocks[0].begin);
  EXPECT_EQ(stages.regions[0].end, trace->blocks[2].begin);  // the merging of patches, too
  EXPECT_EQ(stages.regions[1].end, trace->blocks[4].end);
  EXPECT_EQ(plan_step(trace, parse_strategy("checkpoint:blocks")).plan.regions.size(), 5u);
}

TEST(Plan, AMaskOfBitsIsNotQuantized) {
  const Trace trace = small_trace();
  Plan plan = keep_everything(trace);
  decide(plan, tensor_named(trace, "b0.drop.mask"), Action::Quantize, "to test");
  EXPECT_THAT(check(trace, plan), ElementsAre("'b0.drop.mask' is quantize, but its dtype is bool"));
}

}  // namespace
}  // namespace tidemark::plan_test
