// A checkpointed segment runs again as PyTorch's does: all of its function, up to the last op that
// packs a tensor for its gradient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/recovered.h"
#include "tests/traces/small_trace.h"
#include "traces/trace_builder.h"

namespace tidemark::checkpoint_test {
namespace {

using testing::IsEmpty;

/// x → tanh → fc → scaled, by a weight of its own → x + scaled. fc and the weight are as `tuning`
/// says.
PlannedStep scaled_branch(std::string_view tuning) {
  TraceBuilder b("scaled", "toy", {.precision = Precision::Fp32, .tuning = parse_tuning(tuning)});
  const TensorId x = b.linear("first", b.input("x", {2, 4}, DType::Float32), 4);
  b.begin_block("block", x, -1);
  const TensorId y = b.linear("fc", b.tanh("tanh", x), 4);
  const TensorId sum = b.add("sum", x, b.mul("scaled", y, b.parameter("scale.weight", {4})));
  b.end_block();
  const TensorId out = b.linear("last", sum, 4);
  return plan_step(std::make_shared<const Trace>(b.finish(
                       b.cross_entropy("loss", out, b.input("targets", {2}, DType::Int64)))),
                   parse_strategy("checkpoint"));
}

// The product's gradient needs the frozen weight alone, and no gradient needs fc's output: the
// weight is packed when fc has run.
TEST(Checkpoint, RunsUpToWhatPacksAFrozenWeight) {
  const PlannedStep step = scaled_branch("frozen:fc*,scale*");
  EXPECT_THAT(run_again(step), testing::ElementsAre("tanh", "fc"));
  EXPECT_THAT(check(*step.trace, step.plan), IsEmpty());
  EXPECT_THAT(validate(*step.trace, lower(*step.trace, step.plan)), IsEmpty());
}

// Where all is trained, gradients need the same.
TEST(Checkpoint, RunsNoFurtherThanTheLastThatPacks) {
  EXPECT_THAT(run_again(scaled_branch("full")), testing::ElementsAre("tanh", "fc"));
}

// An op packs what it reads before it runs, and what it writes afterwards.
TEST(Checkpoint, StopsBeforeAnOpThatPacksItsInputsAlone) {
  const PlannedStep step = scaled_branch("frozen:fc*,scale*");
  const Needs needs = derive_needs(*step.trace);
  const Region region = step.plan.regions.front();
  EXPECT_EQ((*step.trace)[end_of_reruns(*step.trace, needs, region.begin, region.end)].name,
            "scaled");
  const auto tanh = region.begin;
  EXPECT_EQ((*step.trace)[tanh].name, "tanh");
  const auto fc = static_cast<OpId>(index(tanh) + 1);
  EXPECT_EQ(end_of_reruns(*step.trace, needs, tanh, fc), fc);
}

// What is doubled holds a number alone, which no hook packs: it stays, so that nothing runs again
// for it, and fc does not run either.
TEST(Checkpoint, RunsNothingForANumber) {
  TraceBuilder b("doubled", "toy", {.precision = Precision::Fp32});
  const TensorId x = b.linear("first", b.input("x", {2, 4}, DType::Float32), 4);
  b.begin_block("block", x, -1);
  const TensorId y = b.scale("doubled", b.linear("fc", b.tanh("tanh", x), 4), 2);
  b.end_block();
  const PlannedStep step =
      plan_step(std::make_shared<const Trace>(b.finish(b.mean("loss", b.linear("last", y, 4)))),
                parse_strategy("checkpoint"));
  EXPECT_THAT(run_again(step), testing::ElementsAre("tanh"));
}

// A sum that no gradient needs is begun anew, and what comes before the last tanh is added to it,
// as the outputs of experts are. The last add packs nothing and does not run.
TEST(Checkpoint, BeginsSumsInPlaceAnew) {
  TraceBuilder b("summed", "toy", {.precision = Precision::Fp32});
  const TensorId x = b.linear("first", b.input("x", {2, 4}, DType::Float32), 4);
  b.begin_block("block", x, -1);
  TensorId sum = b.linear("sum", x, 4);
  for (const char* name : {"a", "b"})
    sum = b.add_in_place(std::string("plus_") + name, sum, b.tanh(name, x));
  sum = b.add("out", x, sum);
  b.end_block();
  const PlannedStep step =
      plan_step(std::make_shared<const Trace>(b.finish(b.mean("loss", b.linear("last", sum, 4)))),
                parse_strategy("checkpoint"));
  EXPECT_THAT(run_again(step), testing::ElementsAre("sum", "a", "plus_a", "b"));
  EXPECT_THAT(check(*step.trace, step.plan), IsEmpty());
  EXPECT_THAT(validate(*step.trace, lower(*step.trace, step.plan)), IsEmpty());
}

}  // namespace
}  // namespace tidemark::checkpoint_test
