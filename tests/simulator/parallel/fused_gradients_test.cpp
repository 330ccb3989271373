// Products that add gradients of their weights to main gradients themselves: what is left out, what
// stays, and what it takes.
#include "simulator/parallel/fused_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/cost/cost_model.h"
#include "simulator/derived.h"
#include "tests/simulator/parallel/ranks.h"

namespace tidemark::fused_gradients_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

StepOptions of_megatron(std::string_view shard, std::int64_t micro_batches = 1) {
  StepOptions options = of_bf16(2, shard, micro_batches);
  options.framework = "megatron";
  return options;
}

// x [2, 4, 8] through two linears to 16 and back, a third as the second, and a norm.
Trace three_linears(const StepOptions& options) {
  TraceBuilder b("toy", "toy", options);
  TensorId x = b.input("x", {2, 4, 8}, b.compute_dtype());
  x = b.layer_norm("norm", x, 1e-5);
  x = b.linear("up", x, 16, true);
  x = b.linear("down", x, 8, true);
  x = b.linear("up_again", x, 16, true);
  return b.finish(b.gelu("loss", x));
}

std::vector<std::string> added_by_kernels(const Trace& trace, const Schedule& schedule) {
  std::vector<std::string> names;
  for (const tidemark::Run& run : runs_of(schedule)) {
    if (run.task != Task::Accumulate) continue;
    names.push_back(trace[schedule[schedule.reads(run)[0]].tensor].name);
  }
  return names;
}

TEST(FusedGradients, OnlyThoseOfNormsAndBiasesAreAddedByKernels) {
  const Trace trace = three_linears(of_megatron("megatron"));
  const Schedule schedule = lower(planned(trace, "vanilla"));
  EXPECT_THAT(
      added_by_kernels(trace, schedule),
      UnorderedElementsAre("norm.weight", "norm.bias", "up.bias", "down.bias", "up_again.bias"));
  EXPECT_THAT(validate(trace, schedule), IsEmpty());
}

TEST(FusedGradients, WithoutFusionAllAre) {
  const Trace trace = three_linears(of_megatron("megatron:no-fusion"));
  EXPECT_EQ(added_by_kernels(trace, lower(planned(trace, "vanilla"))).size(), 8u);
  StepOptions pytorch = of_megatron("megatron");
  pytorch.framework = default_framework;
  const Trace other = three_linears(pytorch);
  EXPECT_EQ(added_by_kernels(other, lower(planned(other, "vanilla"))).size(), 8u);
}

// up [16, 8] and up_again are one shape, down [8, 16] another: 128 elements of 2 bytes each.
TEST(FusedGradients, LeaveADummyPerShape) {
  const Trace trace = three_linears(of_megatron("megatron"));
  std::vector<std::string> dummies;
  for (const DummyGradient& dummy : dummy_gradients(trace))
    dummies.push_back(fmt::format("{} {}", trace[dummy.weight].name, dummy.size.count));
  EXPECT_THAT(dummies, ElementsAre("up.weight 256", "down.weight 256"));
  const auto rest = [](const char* shard) {
    return resting(lower(planned(three_linears(of_megatron(shard)), "vanilla")),
                   Category::Gradient);
  };
  EXPECT_EQ(rest("megatron"), rest("megatron:no-fusion") + 512);
}

// Experts' weights lie in one tensor [experts, in, out] here, and in one each there.
TEST(FusedGradients, OfExpertsHaveADummyForOne) {
  StepOptions options = of_megatron("megatron");
  const Trace trace = build_trace(small_mixture(), options);
  Bytes most;
  for (const DummyGradient& dummy : dummy_gradients(trace)) most = std::max(most, dummy.size);
  for (const Op& op : trace.ops) {
    const TensorId weight = weight_of_product(trace, op);
    if (weight == no_tensor) continue;
    const Shape& shape = trace[weight].shape;
    const std::int64_t experts = shape.rank() == 3 ? shape[0] : 1;
    EXPECT_LE(numel(shape) / experts * 2, most.count) << op.name;
  }
  EXPECT_THAT(validate(trace, lower(planned(trace, "vanilla"))), IsEmpty());
}

// The gate of a mixture is PyTorch's, a norm's weight no product's.
TEST(FusedGradients, AreOfProductsOfTheLibrariesOnly) {
  const Trace trace = build_trace(small_mixture(), of_megatron("megatron"));
  for (const Op& op : trace.ops) {
    const bool is_gate = expert_op(trace, op) == ExpertOp::Gate;
    if (is_gate || op.kind == OpKind::RmsNorm) {
      EXPECT_EQ(weight_of_product(trace, op), no_tensor) << op.name;
    }
  }
}

// The table of words is the head's weight, too: the head's product adds its part, and the part of
// looking words up is added by a kernel.
TEST(FusedGradients, OfATiedTableComeInTwoParts) {
  const Trace trace = build_trace(small_gpt2(), of_megatron("megatron", 2));
  const Schedule schedule = lower(planned(trace, "vanilla"));
  EXPECT_THAT(validate(trace, schedule), IsEmpty());
  const auto lookup = std::ranges::find(trace.ops, OpKind::Embedding, &Op::kind);
  ASSERT_NE(lookup, trace.ops.end());
  const std::string& table = trace[trace.inputs(*lookup)[1]].name;
  EXPECT_EQ(std::ranges::count(added_by_kernels(trace, schedule), table), 2);  // per micro-batch
}

// A product that left its gradient out is noticed: the main gradient misses it.
TEST(FusedGradients, ThatAreMissingAreNoticed) {
  const Trace trace = three_linears(of_megatron("megatron"));
  Schedule schedule = lower(planned(trace, "vanilla"));
  for (Step& step : schedule.steps) {
    auto* run = std::get_if<tidemark::Run>(&step);
    if (!run || run->task != Task::Backward || trace[run->op].name != "down") continue;
    --run->reads;  // of the main gradient, the last
    std::swap(schedule.operands[run->first_operand + run->reads],
              schedule.operands[run->first_operand + run->reads + run->writes]);
    break;
  }
  EXPECT_FALSE(validate(trace, schedule).empty());
}

// 4 bytes are read and 4 written per element instead of 2 written, and the sum of 2 and 8 is left
// out: of the product's own time nothing else changes.
TEST(FusedGradients, MoveTheMainGradientInsideTheProduct) {
  const auto bytes_of = [](const char* shard, Task task, Precision precision = Precision::Bf16) {
    StepOptions options = of_megatron(shard);
    options.precision = precision;
    options.master_weights = precision == Precision::Bf16;
    const Trace trace = three_linears(options);
    const PlannedStep step = planned(trace, "vanilla");
    const Schedule schedule = lower(step);
    const auto derived = derived_of(step);
    const Device device = find_device("h100");
    const CostModel costs(*step.trace, derived->needs, device);
    double sum = 0;
    for (const tidemark::Run& run : runs_of(schedule))
      if (run.task == task) sum += costs.of(schedule, run).bytes;
    return sum;
  };
  constexpr double elements = 3 * 128;
  EXPECT_DOUBLE_EQ(bytes_of("megatron", Task::Backward),
                   bytes_of("megatron:no-fusion", Task::Backward) + 6 * elements);
  EXPECT_DOUBLE_EQ(bytes_of("megatron", Task::Accumulate),
                   bytes_of("megatron:no-fusion", Task::Accumulate) - 10 * elements);
  EXPECT_DOUBLE_EQ(bytes_of("megatron:narrow-gradients", Task::Backward),
                   bytes_of("megatron:no-fusion", Task::Backward) + 2 * elements);
  EXPECT_DOUBLE_EQ(bytes_of("megatron:narrow-gradients", Task::Backward, Precision::Fp32),
                   bytes_of("megatron:no-fusion", Task::Backward, Precision::Fp32) + 4 * elements);
}

}  // namespace
}  // namespace tidemark::fused_gradients_test
