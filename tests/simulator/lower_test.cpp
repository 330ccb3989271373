// Peaks and runs of chains of n layers meet closed forms; recovery and optimizer stand in order.
#include "simulator/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/chain.h"
#include "tests/traces/small_trace.h"

namespace tidemark::lower_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// --- closed forms on chains ---------------------------------------------------------------------

struct ChainOf : testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Lower, ChainOf, testing::Values(4, 16, 64, 256));

std::int64_t root(std::int64_t n) {
  std::int64_t root = 1;
  while (root * root < n) ++root;
  return root;
}

Schedule lowered(const Trace& trace, const char* strategy) {
  const PlannedStep step =
      plan_step(std::make_shared<const Trace>(trace), parse_strategy(strategy));
  EXPECT_EQ(step.refusal, "");
  EXPECT_THAT(check(*step.trace, step.plan), IsEmpty());
  Schedule schedule = lower(*step.trace, step.plan);
  EXPECT_THAT(validate(*step.trace, schedule), IsEmpty());
  return schedule;
}

// After the forward pass x0 … x(n−1) are kept: n. The last layer's backward reads the gradient of
// its output and writes that of its input: n + 2.
TEST_P(ChainOf, VanillaKeepsAllAndTwoGradients) {
  const std::int64_t n = GetParam();
  const Schedule schedule = lowered(chain(n), "vanilla");
  EXPECT_EQ(units(live_peak(schedule)), n + 2);
  EXPECT_EQ(std::ssize(runs_of(schedule)), 2 * n + 1);  // forward, seed, backward
}

// With k = √n layers per block the inputs of k blocks are kept. Before the last block's gradients
// its other k − 1 layer inputs are made again, and two gradients come on top: 2k + 1. Each block
// runs k − 1 layers again: n − k in all.
TEST_P(ChainOf, CheckpointEveryRootNeedsTwoRootsPlusOne) {
  const std::int64_t n = GetParam(), k = root(n);
  const Schedule schedule = lowered(chain(n, k), "checkpoint");
  EXPECT_EQ(units(live_peak(schedule)), 2 * k + 1);
  EXPECT_EQ(count_runs(schedule, Task::Recompute), n - k);
  EXPECT_EQ(std::ssize(runs_of(schedule)), 2 * n + 1 + (n - k));
}

TEST_P(ChainOf, CheckpointSqrtFindsTheSameBlocks) {
  const std::int64_t n = GetParam(), k = root(n);
  EXPECT_EQ(units(live_peak(lowered(chain(n), "checkpoint:sqrt"))), 2 * k + 1);
}

// Three tensors are present at once beside x0, which is given and stays: x(i), and the gradients of
// x(i+1) and x(i). Only x1 … x(n−1) are made by the step and needed again, so 2(n − 1) tensors
// move; the 2(n + 1) of a step that also moves its input and its output are two each more.
TEST_P(ChainOf, OffloadedNeedsThreeTensorsBesideTheInput) {
  const std::int64_t n = GetParam();
  const Trace trace = chain(n);
  Plan plan = keep_everything(trace);
  for (std::int64_t i = 1; i < n; ++i)
    decide(plan, tensor_named(trace, fmt::format("x{}", i)), Action::Offload, "to test");
  ASSERT_THAT(check(trace, plan), IsEmpty());
  const Schedule schedule = lower(trace, plan);
  EXPECT_THAT(validate(trace, schedule), IsEmpty());
  EXPECT_EQ(units(live_peak(schedule)), 3 + 1);
  EXPECT_EQ(std::ssize(runs_of(schedule)), 2 * n + 1);
  EXPECT_EQ(count_steps<CopyOut>(schedule), n - 1);
  EXPECT_EQ(count_steps<CopyIn>(schedule), n - 1);
}

// In one arena each tensor of four bytes takes a place of its own alignment.
std::int64_t places(const Schedule& schedule) {
  return plan_arena(schedule).size.count / arena_alignment;
}

// A second stream may recover a block while the gradients of the one behind it run, so the k − 1
// inputs of both have places of their own: k + 2 (k − 1) + 2 = 3k.
TEST_P(ChainOf, OverlapHasPlacesForTwoBlocks) {
  const std::int64_t n = GetParam(), k = root(n);
  const Schedule schedule = lowered(chain(n, k), "checkpoint+overlap");
  EXPECT_EQ(count_runs(schedule, Task::Recompute), n - k);
  EXPECT_EQ(places(lowered(chain(n, k), "checkpoint")), 2 * k + 1);
  EXPECT_EQ(places(schedule), 3 * k);
}

// --- the order of steps -------------------------------------------------------------------------

std::vector<std::string> named_runs(const Trace& trace, const Schedule& schedule) {
  std::vector<std::string> names;
  for (const auto& run : runs_of(schedule))
    names.push_back(
        fmt::format("{} {}", to_string(run.task), run.op == no_op ? "" : trace[run.op].name));
  return names;
}

TEST(Lower, RecoversARegionBeforeItsGradients) {
  const Trace trace = chain(4, 2);
  EXPECT_THAT(named_runs(trace, lowered(trace, "checkpoint")),
              ElementsAre("forward x1", "forward x2", "forward x3", "forward x4", "seed x4",
                          "recompute x3", "backward x4", "backward x3",  //
                          "recompute x1", "backward x2", "backward x1"));
}

Trace small_with(const StepOptions& options, double probability = 0.1) {
  TraceBuilder b("small", "toy", options);
  TensorId x = b.input("x", {2, 3, 4}, DType::Float32);
  b.begin_block("block", x, -1);
  x = b.linear("fc1", x, 4);
  x = b.layer_norm("norm", x, 1e-5);
  x = b.dropout("drop", x, probability);
  b.end_block();
  x = b.linear("fc2", x, 4);
  const TensorId targets = b.input("targets", {2, 3}, DType::Int64);
  return b.finish(b.cross_entropy("loss", x, targets));
}

TEST(Lower, RunsTheOptimizerOncePerStepOrPerParameter) {
  const auto updates = [](const char* framework) {
    const Trace trace = small_with({.batch = 2, .framework = framework});
    return count_runs(lowered(trace, "vanilla"), Task::Optimizer);
  };
  EXPECT_EQ(updates("torch-2"), 1);
  EXPECT_EQ(updates("torch-1.13"), 6);  // two weights with biases, γ and β
}

TEST(Lower, RunsNoBackwardWhereNothingIsTrained) {
  StepOptions options{.batch = 2};
  options.tuning = parse_tuning("frozen:*");
  const Schedule schedule = lowered(small_with(options), "vanilla");
  EXPECT_EQ(count_runs(schedule, Task::Seed), 0);
  EXPECT_EQ(count_runs(schedule, Task::Backward), 0);
  EXPECT_EQ(count_runs(schedule, Task::Optimizer), 0);
}

TEST(Lower, KeepsNoInputOfAFrozenLinear) {
  StepOptions options{.batch = 2};
  options.tuning = parse_tuning("frozen:fc2*");
  const Trace trace = small_with(options);
  const Schedule schedule = lowered(trace, "vanilla");
  for (const auto& run : runs_of(schedule))
    if (run.task == Task::Backward && trace[run.op].name == "fc2") {
      EXPECT_EQ(run.reads, 2u);  // dy and the weight
    }
}

// A weight beside the path to the loss has no gradient in any framework, and so no state.
TEST(Lower, UpdatesNoWeightThatTheLossDoesNotDependOn) {
  TraceBuilder b("aside", "toy", {.batch = 2, .framework = "torch-1.13"});
  const TensorId x = b.input("x", {2, 4}, DType::Float32);
  b.linear("aside", x, 4, false);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const Trace trace = b.finish(b.cross_entropy("loss", b.linear("fc", x, 4, false), targets));
  const Schedule schedule = lowered(trace, "vanilla");
  EXPECT_EQ(count_runs(schedule, Task::Optimizer), 1);
  EXPECT_EQ(std::ranges::count(schedule.buffers, Role::OptimizerState, &Buffer::role), 1);
}

// --- what tests of any plan have found ----------------------------------------------------------

// The norm runs again for its statistics, but what it wrote is read by the recovery of the block
// behind, before that: it must be kept.
TEST(Lower, KeepsWhatALaterBlocksRecoveryReadsFirst) {
  TraceBuilder b("post-norm", "toy", {.batch = 2, .precision = Precision::AmpFp16});
  TensorId x = b.input("x", {2, 4}, DType::Float32);
  for (const std::string name : {"b0", "b1"}) {
    b.begin_block(name, x, -1);
    x = b.residual(name + ".add", x, b.linear(name + ".fc", x, 4));
    x = b.layer_norm(name + ".norm", x, 1e-5);
    b.end_block();
  }
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  lowered(b.finish(b.cross_entropy("loss", x, targets)), "checkpoint");
}

// Two inputs of a concatenation get parts of one gradient. When one of them is done with, a second
// gradient of the other is still not added into that memory: it has another size.
TEST(Lower, AddsIntoNoPartOfAConcatenationsGradient) {
  TraceBuilder b("concat", "toy", {.batch = 2});
  const TensorId x = b.input("x", {2, 4}, DType::Float32);
  const TensorId h = b.linear("fc1", x, 4), t = b.tanh("tanh", h);
  const std::vector<TensorId> parts = {b.linear("fc2", x, 4), h};
  const TensorId wide = b.concat("cat", parts, {2, 8});
  const TensorId sum = b.add("sum", b.linear("down", wide, 4), t);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const Trace trace = b.finish(b.cross_entropy("loss", sum, targets));
  const Schedule schedule = lowered(trace, "vanilla");
  EXPECT_EQ(count_runs(schedule, Task::Accumulate), 1);
  for (const auto& run : runs_of(schedule))
    if (run.task == Task::Accumulate) {
      EXPECT_EQ(schedule[schedule.writes(run)[0]].size, size(trace[h]));
    }
}

// Rows of two axes are a matrix; of three they are a view of one, as is the gradient that comes
// back, to which PyTorch adds nothing: the sum lies beside both.
TEST(Lower, AddsToNoInputsGradientOfALinearOfManyAxes) {
  for (const Shape& shape : {Shape{6, 4}, Shape{2, 3, 4}}) {
    TraceBuilder b("shared", "toy", {.batch = 2});
    const TensorId h = b.tanh("tanh", b.linear("fc1", b.input("x", shape, DType::Float32), 4));
    const TensorId sum = b.add("sum", b.linear("fc2", h, 4), b.linear("fc3", h, 4));
    const TensorId targets = b.input("targets", {6}, DType::Int64);
    const Trace trace = b.finish(b.cross_entropy("loss", b.view("rows", sum, {6, 4}), targets));
    const Schedule schedule = lowered(trace, "vanilla");
    const auto of_h = std::ranges::count_if(schedule.buffers, [&](const Buffer& buffer) {
      return buffer.role == Role::Gradient && buffer.tensor == h;
    });
    EXPECT_EQ(of_h, shape.rank() == 2 ? 2 : 3) << to_text(shape);
  }
}

// What a gradient on one stream brings back from the host is read by a recovery on the other.
TEST(Lower, OrdersCopiesLikeRuns) {
  TraceBuilder b("copies", "toy", {.batch = 2});
  TensorId x = b.input("x", {2, 4}, DType::Float32);
  b.begin_block("b0", x, -1);
  const TensorId y = b.linear("fc", x, 4);
  x = b.dropout("drop", y, 0.1);
  b.end_block();
  b.begin_block("b1", x, -1);
  x = b.add("add", x, b.gelu("gelu", y));
  x = b.softmax("softmax", x);
  b.end_block();
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const auto trace = std::make_shared<const Trace>(b.finish(b.cross_entropy("loss", x, targets)));
  PlannedStep step = plan_step(trace, parse_strategy("checkpoint+overlap"));
  decide(step.plan, y, Action::Offload, "to test");
  ASSERT_THAT(check(*trace, step.plan), IsEmpty());
  const Schedule schedule = lower(*trace, step.plan);
  EXPECT_EQ(count_steps<CopyIn>(schedule), 1);
  EXPECT_THAT(validate(*trace, schedule), IsEmpty());
}

// Products need the value again, the activation before them does not.
TEST(Lower, DecodesWhileLoadingWhereTheOpCan) {
  TraceBuilder b("codes", "toy", {.batch = 2});
  const TensorId x = b.linear("fc1", b.input("x", {2, 8}, DType::Float32), 8);
  const TensorId y = b.linear("fc2", b.gelu("gelu", x), 8);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const Trace trace = b.finish(b.cross_entropy("loss", y, targets));
  const Schedule schedule = lowered(trace, "mesa");
  EXPECT_EQ(count_runs(schedule, Task::Quantize), 2);
  EXPECT_EQ(count_runs(schedule, Task::Dequantize), 1);
  const Schedule released = lowered(trace, "mesa:released");
  EXPECT_EQ(count_runs(released, Task::Dequantize), 2);
}

std::vector<Buffer> buffers_of(const Schedule& schedule, Role role) {
  std::vector<Buffer> found;
  std::ranges::copy_if(schedule.buffers, std::back_inserter(found),
                       [&](const Buffer& buffer) { return buffer.role == role; });
  return found;
}

// Two values of sixteen elements, all of a value in one group: codes of two bits fill four bytes,
// and the range of a group, sixteen bytes, stays from step to step.
TEST(Lower, MakesRoomForCodesAndTheirRanges) {
  TraceBuilder b("codes", "toy", {.batch = 2});
  const TensorId x = b.linear("fc1", b.input("x", {2, 8}, DType::Float32), 8);
  const TensorId y = b.linear("fc2", b.gelu("gelu", x), 8);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const Trace trace = b.finish(b.cross_entropy("loss", y, targets));
  const auto is_of = [](std::int64_t size, bool persistent) {
    return testing::AllOf(testing::Field(&Buffer::size, Bytes{size}),
                          testing::Field(&Buffer::persistent, persistent));
  };
  const Schedule short_codes = lowered(trace, "mesa:bits=2");
  EXPECT_THAT(buffers_of(short_codes, Role::Codes), ElementsAre(is_of(4, false), is_of(4, false)));
  EXPECT_THAT(buffers_of(short_codes, Role::Ranges), ElementsAre(is_of(16, true), is_of(16, true)));
  const Schedule grouped = lowered(trace, "mesa:group=4");  // two groups of four channels
  EXPECT_THAT(buffers_of(grouped, Role::Codes), ElementsAre(is_of(16, false), is_of(16, false)));
  EXPECT_THAT(buffers_of(grouped, Role::Ranges), ElementsAre(is_of(32, true), is_of(32, true)));
}

// Floats end with their magnitudes behind them, and become a value before GELU's backward. GELU's
// input has two rows of two groups; its output, which a product reads, is one.
TEST(Lower, MakesRoomForFloatsAndTheirMagnitudes) {
  TraceBuilder b("codes", "toy", {.batch = 2});
  const TensorId x = b.linear("fc1", b.input("x", {2, 8}, DType::Float32), 32);
  const TensorId y = b.linear("fc2", b.gelu("gelu", x), 8);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const Trace trace = b.finish(b.cross_entropy("loss", y, targets));
  const Schedule schedule = lowered(trace, "fp8-activations");
  const auto is_of = [](std::int64_t size) {
    return testing::AllOf(testing::Field(&Buffer::size, Bytes{size}),
                          testing::Field(&Buffer::persistent, false));
  };
  EXPECT_THAT(buffers_of(schedule, Role::Codes), ElementsAre(is_of(64 + 4 * 4), is_of(64 + 4)));
  EXPECT_THAT(buffers_of(schedule, Role::Ranges), IsEmpty());
  EXPECT_EQ(count_runs(schedule, Task::Quantize), 2);
  EXPECT_EQ(count_runs(schedule, Task::Dequantize), 2);
  EXPECT_THAT(validate(trace, schedule), IsEmpty());
}

// A quantizer is one layer's: its range runs on from micro-batch to micro-batch.
TEST(Lower, MicroBatchesShareRanges) {
  StepOptions options{.batch = 2};
  options.accumulate = {3};
  TraceBuilder b("codes", "toy", options);
  const TensorId x = b.linear("fc1", b.input("x", {2, 8}, DType::Float32), 8);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const Trace trace = b.finish(b.cross_entropy("loss", b.gelu("gelu", x), targets));
  const Schedule schedule = lowered(trace, "mesa");
  EXPECT_EQ(buffers_of(schedule, Role::Codes).size(),
            3 * buffers_of(schedule, Role::Ranges).size());
  EXPECT_THAT(validate(trace, schedule), IsEmpty());
}

// While a function runs again, its variables name what they named; then the codes go, too.
TEST(Lower, FreesCodesOfALocalVariable) {
  TraceBuilder b("local", "toy", {.batch = 2});
  b.begin_function();
  const TensorId y = b.local(b.linear("fc", b.input("x", {2, 4}, DType::Float32), 4));
  const TensorId z = b.softmax("softmax", b.dropout("drop", y, 0.1));
  b.end_function();
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const Trace trace = b.finish(b.cross_entropy("loss", z, targets));
  Plan plan = keep_everything(trace);
  const OpId begin = op_named(trace, "drop"), end = op_named(trace, "loss");
  plan.regions = {{begin, begin, end, 0}};
  decide(plan, y, Action::Quantize, "to test");
  decide(plan, tensor_named(trace, "drop.mask"), Action::Recompute, "to test");
  ASSERT_THAT(check(trace, plan), IsEmpty());
  EXPECT_THAT(validate(trace, lower(trace, plan)), IsEmpty());
}

// The branch of a coupling was moved to the host: it is brought back before the add is undone.
TEST(Lower, BringsBackWhatAnInverseReads) {
  TraceBuilder b("coupling", "toy", {.batch = 2});
  const TensorId x = b.linear("fc", b.input("x", {2, 4}, DType::Float32), 4);
  const TensorId branch = b.tanh("tanh", b.parameter("p", {2, 4}));
  const TensorId sum = b.residual("add", x, branch);
  const TensorId y = b.add("twice", b.gelu("gelu1", x), b.gelu("gelu2", sum));
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const Trace trace = b.finish(b.cross_entropy("loss", y, targets));
  Plan plan = keep_everything(trace);
  plan.regions = {{op_named(trace, "add"), op_named(trace, "add"), op_named(trace, "loss"), 0}};
  decide(plan, x, Action::Reconstruct, "to test");
  decide(plan, branch, Action::Offload, "to test");
  ASSERT_THAT(check(trace, plan), IsEmpty());
  const Schedule schedule = lower(trace, plan);
  EXPECT_EQ(count_runs(schedule, Task::Reconstruct), 1);
  EXPECT_EQ(count_steps<CopyIn>(schedule), 1);
  EXPECT_THAT(validate(trace, schedule), IsEmpty());
}

}  // namespace
}  // namespace tidemark::lower_test
