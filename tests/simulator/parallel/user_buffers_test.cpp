// What tensor-parallel ranks exchange beside products: which products these are, what of the
// exchange stays exposed, and what memory it takes.
#include "simulator/parallel/user_buffers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/cost/cost_model.h"
#include "simulator/parallel/cluster.h"
#include "tests/simulator/parallel/ranks.h"
#include "tests/simulator/parallel/small_megatron.h"

namespace tidemark::user_buffers_test {
namespace {

constexpr std::int64_t h = 64, s = 32, b = 2;

Model decoder() { return small_megatron(2); }

StepOptions asked(bool overlaps = true) {
  StepOptions options{.batch = b, .precision = Precision::Bf16, .framework = "megatron"};
  options.shard = parse_sharding("megatron");
  options.mesh[Axis::Tensor] = 2;
  options.sequence_parallel = true;
  options.tp_overlap = overlaps;
  return options;
}

TEST(UserBuffers, AreOfProductsInBlocks) {
  for (const bool has_codes : {false, true}) {
    StepOptions options = asked();
    if (has_codes) options.linears = CodedLinears{LinearMath::Fp8};
    const Trace trace = build_rank_trace(decoder(), options);
    const auto beside = products_beside_exchanges(trace);
    std::vector<std::string> found;
    for (std::size_t i = 0; i < beside.size(); ++i)
      for (const OpId product : beside[i])
        found.push_back(fmt::format("{} {}", to_string(trace.ops[i].kind), trace[product].name));
    EXPECT_THAT(found, testing::ElementsAre(
                           "all_gather blocks.0.attn.qkv", "reduce_scatter blocks.0.attn.o",
                           "all_gather blocks.0.mlp.gate_up", "reduce_scatter blocks.0.mlp.down",
                           "all_gather blocks.1.attn.qkv", "reduce_scatter blocks.1.attn.o",
                           "all_gather blocks.1.mlp.gate_up", "reduce_scatter blocks.1.mlp.down"));
  }
}

TEST(UserBuffers, AreNowhereWithoutThem) {
  EXPECT_TRUE(products_beside_exchanges(build_rank_trace(decoder(), asked(false))).empty());
  StepOptions options = asked();
  options.sequence_parallel = false;
  EXPECT_TRUE(products_beside_exchanges(build_rank_trace(decoder(), options)).empty());
  EXPECT_EQ(user_buffers(options, s, h), Bytes{});
  options = asked();
  options.framework = "megatron-local";
  EXPECT_TRUE(products_beside_exchanges(build_rank_trace(decoder(), options)).empty());
}

// Of four ranks and 160 SMs, of which bulk exchanges take a tenth.
TEST(UserBuffers, HideWhatLastsNoLongerThanTheProduct) {
  const auto exposed = [](Task task, OpKind kind, double exchange, double product) {
    return exposed_beside(task, kind, exchange, product, 4, 160);
  };
  const auto gather = OpKind::AllGather, scatter = OpKind::ReduceScatter;
  for (const auto& [task, kind] : {std::pair(Task::Forward, gather), {Task::Backward, scatter}}) {
    EXPECT_EQ(exposed(task, kind, 30, 40), 0);
    EXPECT_EQ(exposed(task, kind, 31, 40), 1);
    EXPECT_EQ(exposed(task, kind, 100, 40), 70);
  }
  for (const Task task : {Task::Forward, Task::Recompute}) {
    EXPECT_EQ(exposed(task, scatter, 40, 80), 10);
    EXPECT_EQ(exposed(task, scatter, 80, 40), 50);
  }
  for (const auto& [task, kind] : {std::pair(Task::Recompute, gather), {Task::Backward, gather}}) {
    EXPECT_EQ(exposed(task, kind, 40, 80), 4);
    EXPECT_EQ(exposed(task, kind, 80, 40), 40);
  }
}

TEST(UserBuffers, TakeTenSequences) {
  EXPECT_EQ(user_buffers(asked(), s, h), Bytes{10 * b * s * h * 2});
  StepOptions options = asked();
  options.mesh[Axis::Context] = 4;
  EXPECT_EQ(user_buffers(options, s, h), Bytes{10 * b * s / 4 * h * 2});
  options.precision = Precision::Fp32;
  EXPECT_EQ(user_buffers(options, s, h), Bytes{10 * b * s / 4 * h * 4});
}

TEST(UserBuffers, MakeExchangesOfBlocksShorterAndNoOthers) {
  const Device device = device_of(find_cluster("dgx-h100"));
  const auto times = [&](bool overlaps) {
    const PlannedStep step = planned(build_rank_trace(decoder(), asked(overlaps)), "vanilla");
    const Trace& trace = *step.trace;
    const CostModel costs(trace, step.derived->needs, device);
    std::vector<Nanoseconds> found;
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      found.push_back(
          costs.of(Schedule(), {Task::Forward, StreamId::Compute, OpId(i), 0, 0, 0}).time);
    return std::pair(found, products_beside_exchanges(trace));
  };
  const auto [alone, none] = times(false);
  const auto [beside, products] = times(true);
  ASSERT_EQ(alone.size(), beside.size());
  for (std::size_t i = 0; i < alone.size(); ++i)
    if (products[i].empty())
      EXPECT_EQ(beside[i], alone[i]);
    else
      EXPECT_LT(beside[i], alone[i]);
}

}  // namespace
}  // namespace tidemark::user_buffers_test
