// States are reconstructed once and branches run again at most once; other stacks are refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "analysis/saved.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/step_facts.h"
#include "tests/traces/small_trace.h"
#include "traces/presets.h"

namespace tidemark::reversible_test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr std::array ways = {"reversible",     "reversible:released", "pareprop",
                             "pareprop:hoist", "pareprop:released",   "pareprop:hoist,released"};

/// A stem, then one stack of blocks { norm, fc, add1 | mlp, drop, add2 }.
Trace stack_of(int blocks, Precision precision = Precision::Fp32) {
  TraceBuilder b("stack", "toy", {.batch = 2, .precision = precision});
  TensorId x = b.linear("stem", b.input("x", {2, 3, 4}, DType::Float32), 4);
  for (int i = 0; i < blocks; ++i) {
    const std::string name = fmt::format("b{}", i);
    b.begin_block(name, x, 0);
    b.part(Part::F);
    x = b.residual(name + ".add1", x,
                   b.linear(name + ".fc", b.layer_norm(name + ".norm", x, 1e-5), 4));
    b.part(Part::G);
    x = b.residual(name + ".add2", x,
                   b.dropout(name + ".drop", b.linear(name + ".mlp", x, 4), 0.1));
    b.end_block();
  }
  const TensorId targets = b.input("targets", {2, 3}, DType::Int64);
  return b.finish(b.cross_entropy("loss", x, targets));
}

PlannedStep planned_stack(const Trace& trace, std::string_view strategy) {
  return plan_step(std::make_shared<const Trace>(trace), parse_strategy(strategy));
}

Schedule sound_schedule(const PlannedStep& step) {
  EXPECT_EQ(step.refusal, "");
  EXPECT_THAT(check(*step.trace), IsEmpty());
  EXPECT_THAT(check(*step.trace, step.plan), IsEmpty());
  Schedule schedule = lower(*step.trace, step.plan);
  EXPECT_THAT(validate(*step.trace, schedule), IsEmpty());
  EXPECT_THAT(validate(schedule, plan_arena(schedule)), IsEmpty());
  return schedule;
}

struct StackOf : testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Reversible, StackOf, testing::Values(1, 2, 3, 5));

// Each block's add is undone once: two states per block but the first, whose two streams begin as
// one tensor.
TEST_P(StackOf, EveryStateIsReconstructedOnce) {
  for (const char* way : ways) {
    SCOPED_TRACE(way);
    const PlannedStep step = planned_stack(stack_of(GetParam()), way);
    const Schedule schedule = sound_schedule(step);
    std::map<std::string, int> times;
    for (const auto& run : runs_of(schedule))
      if (run.task == Task::Reconstruct) ++times[step.trace->ops[index(run.op)].name];
    EXPECT_EQ(std::ssize(times), 2 * GetParam() - 1);
    EXPECT_THAT(times, Each(Pair(testing::_, 1)));
  }
}

// What is recovered is recovered once, too: F and G run again in each block.
TEST_P(StackOf, EveryBranchRunsAgainAtMostOnce) {
  for (const char* way : ways) {
    const Schedule schedule = sound_schedule(planned_stack(stack_of(GetParam()), way));
    std::map<OpId, int> times;
    for (const auto& run : runs_of(schedule))
      if (run.task == Task::Recompute) ++times[run.op];
    EXPECT_THAT(times, Each(Pair(testing::_, 1))) << way;
    EXPECT_FALSE(times.empty()) << way;
  }
}

TEST(Reversible, KeepsAsMuchForFiveBlocksAsForThree) {
  const auto kept = [](int blocks, const char* strategy) {
    const PlannedStep step = planned_stack(stack_of(blocks), strategy);
    return saved_bytes(*step.trace, step.plan).unique;
  };
  EXPECT_EQ(kept(3, "reversible"), kept(5, "reversible"));
  EXPECT_LT(kept(3, "vanilla"), kept(5, "vanilla"));
}

TEST(Reversible, ReconstructsBesideTheGradients) {
  EXPECT_EQ(sound_schedule(planned_stack(stack_of(3), "reversible")).streams, 1u);
  const Schedule two = sound_schedule(planned_stack(stack_of(3), "pareprop"));
  EXPECT_EQ(two.streams, 2u);
  EXPECT_EQ(count_steps<Synchronize>(two), 0);
  const Schedule released = sound_schedule(planned_stack(stack_of(3), "pareprop:released"));
  EXPECT_EQ(released.streams, 3u);
  EXPECT_GT(count_steps<Synchronize>(released), 0);
}

TEST(Reversible, TheTwoStreamsEndInTheirMean) {
  const PlannedStep step = planned_stack(stack_of(2), "reversible");
  const Op& fuse = (*step.trace)[op_named(*step.trace, "b1.fuse")];
  EXPECT_EQ(fuse.kind, OpKind::Average);
}

// Between stages of different widths a small network fuses the streams.
TEST(Reversible, EachStageIsAStack) {
  for (const Precision precision : {Precision::Fp32, Precision::AmpFp16}) {
    StepOptions options{.batch = 2};
    options.precision = precision;
    const PlannedStep step =
        planned_stack(build_trace(find_model("swin-t"), options), "pareprop:hoist");
    sound_schedule(step);
    const Op& fuse = (*step.trace)[op_named(*step.trace, "stages.0.blocks.1.fuse.fc1")];
    EXPECT_EQ(fuse.kind, OpKind::Linear);
  }
}

// Swin's layer names what its attention made until its MLP has run; a half is a function of its
// own.
TEST(Reversible, VariablesEndWithTheirHalf) {
  const Trace trace = build_trace(find_model("swin-t"), {.batch = 2});
  const PlannedStep step = planned_stack(trace, "reversible");
  const auto across = [](const Trace& of) {
    std::size_t held = 0;
    for (const Op& op : of.ops)
      for (const TensorId output : of.outputs(op))
        if (const OpId until = of[output].held_until; until != no_op && op.part != Part::None)
          held += of[until].part != op.part || of[until].block != op.block;
    return held;
  };
  EXPECT_GT(across(trace), 0u);
  EXPECT_EQ(across(*step.trace), 0u);
}

// The norm behind the add reads the stream before the branch does; the stream itself is what
// enters the block.
TEST(Reversible, APostNormBlockBecomesPreNorm) {
  for (const char* way : ways) {
    const PlannedStep step =
        planned_stack(build_trace(find_model("bert-base"), {.batch = 2, .sequence = 8}), way);
    sound_schedule(step);
    EXPECT_EQ((*step.trace)[step.trace->blocks[1].input].name, "blocks.0.add2");
  }
}

TEST(Reversible, AModelWithoutTwoBranchesPerBlockIsRefused) {
  TraceBuilder b("plain", "toy", {.batch = 2});
  TensorId x = b.input("x", {2, 4}, DType::Float32);
  b.begin_block("b0", x, 0);
  x = b.linear("fc", x, 4);
  b.end_block();
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  EXPECT_THAT(planned_stack(b.finish(b.cross_entropy("loss", x, targets)), "reversible").refusal,
              HasSubstr("no block has two residual branches that could be coupled"));
}

// An add that rounds its stream to another dtype cannot be undone, and a stack is coupled as a
// whole or not at all.
TEST(Reversible, AStackWithAnAddThatCannotBeUndoneIsRefused) {
  Trace trace = stack_of(3);
  const Op& add = *std::ranges::find(trace.ops, "b1.add2", &Op::name);
  trace.tensors[index(trace.outputs(add)[0])].dtype = DType::BFloat16;
  for (const char* way : {"reversible", "pareprop"})
    EXPECT_THAT(planned_stack(trace, way).refusal, HasSubstr("no block has two residual branches"))
        << way;
}

}  // namespace
}  // namespace tidemark::reversible_test
