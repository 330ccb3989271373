// Megatron-LM's contiguous buffers: where parameters lie in them, what stays between steps, and
// what is exchanged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/graph/differentiate.h"
#include "simulator/judge/validate.h"
#include "simulator/parallel/contiguous.h"
#include "simulator/parallel/rank_trace.h"
#include "tests/simulator/parallel/ranks.h"

namespace tidemark::megatron_test {
namespace {

using testing::IsEmpty;

Trace two_parameters(std::int64_t ranks) {
  StepOptions options = of_bf16(ranks, "megatron");
  TraceBuilder b("toy", "toy", options);
  b.parameter("first", {100});
  b.parameter("second", {70});
  const TensorId x = b.input("x", {4}, DType::Float32);
  return b.finish(b.gelu("loss", x));
}

// From behind: [70, filled up to 128][100, filled up to 256].
TEST(ContiguousLayout, IsAlignedFromBehind) {
  const ContiguousLayout layout = contiguous_layout(two_parameters(2), parse_sharding("megatron"));
  ASSERT_EQ(layout.places.size(), 2u);
  EXPECT_EQ(layout.places[0].begin, 0);
  EXPECT_EQ(layout.places[0].end, 70);
  EXPECT_EQ(layout.places[1].begin, 128);
  EXPECT_EQ(layout.places[1].end, 228);
  ASSERT_EQ(layout.buckets.size(), 1u);
  EXPECT_EQ(layout.buckets[0].numel(), 256);
}

TEST(ContiguousLayout, IsDenseWithoutTheDistributedOptimizer) {
  const ContiguousLayout layout =
      contiguous_layout(two_parameters(2), parse_sharding("megatron:whole-states"));
  EXPECT_EQ(layout.places[1].begin, 70);
  EXPECT_EQ(layout.buckets[0].numel(), 170);
}

// lcm(3, 128) = 384; a rank has 128 of it.
TEST(ContiguousLayout, DealsOutEqualParts) {
  const Trace trace = two_parameters(3);
  const Sharding sharing = parse_sharding("megatron");
  EXPECT_EQ(contiguous_layout(trace, sharing).buckets[0].numel(), 384);
  const std::vector<std::int64_t> elements = elements_of_first_rank(trace, sharing);
  EXPECT_THAT(elements, testing::Contains(70));
  EXPECT_THAT(elements, testing::Not(testing::Contains(100)));
}

std::int64_t elements_in(const StepOptions& options) {
  std::int64_t all = 0;
  for (const ContiguousBucket& bucket :
       contiguous_layout(trace_of(options), *options.shard).buckets)
    all += bucket.numel();
  return all;
}

// docs/user-guide/features/dist_optimizer.md: 18 bytes per parameter, or 6 + 12/d.
TEST(Megatron, KeepsEighteenBytesOrSixAndTwelveShared) {
  const StepOptions whole = of_bf16(4, "megatron:whole-states"), cut = of_bf16(4, "megatron");
  const std::int64_t n = parameters_of(trace_of(whole)), padded = elements_in(cut);
  const Schedule of_whole = schedule_of(whole), of_cut = schedule_of(cut);
  EXPECT_EQ(resting(of_whole, Category::Parameter), 2 * n);
  EXPECT_EQ(resting(of_whole, Category::Gradient), 4 * n);
  EXPECT_EQ(resting(of_whole, Category::OptimizerState), 12 * n);
  EXPECT_EQ(resting(of_cut, Category::Parameter), 2 * padded);
  EXPECT_EQ(resting(of_cut, Category::Gradient), 4 * padded);
  EXPECT_LE(resting(of_cut, Category::OptimizerState), 12 * padded / 4);
  EXPECT_GT(resting(of_cut, Category::OptimizerState), 12 * (padded - 128 * 64) / 4);
}

// Gradients of 16 bits are reduced in 16 bits, and the rank's part is copied to fp32 for the
// update: 4 + 16/d bytes per parameter until zero_grad().
TEST(Megatron, OfNarrowGradientsUpdatesFromAnFp32Copy) {
  const StepOptions options = of_bf16(4, "megatron:narrow-gradients");
  const Schedule schedule = schedule_of(options);
  EXPECT_EQ(resting(schedule, Category::Gradient), 2 * elements_in(options));
  std::int64_t copies = 0;
  for (const Buffer& buffer : schedule.buffers)
    if (!buffer.persistent && buffer.role == Role::Temporary &&
        buffer.category == Category::Gradient)
      copies += buffer.size.count;
  EXPECT_EQ(copies, 4 * elements_in(options) / 4);
}

TEST(Megatron, InstancesCutAmongFewer) {
  const auto states = [](const char* shard) {
    return resting(schedule_of(of_bf16(8, shard)), Category::OptimizerState);
  };
  EXPECT_LT(states("megatron"), states("megatron:instances=2"));
  EXPECT_LT(states("megatron:instances=2"), states("megatron:instances=8"));
  EXPECT_FALSE(sharing_defect(of_bf16(8, "megatron:instances=3")).empty());
}

// Each micro-batch adds to the main gradients; they are reduced once, and parameters gathered.
TEST(Megatron, ReducesOnceAndGathersParameters) {
  const Schedule schedule = schedule_of(of_bf16(4, "megatron", 3));
  EXPECT_EQ(count_runs(schedule, Task::ReduceScatter), 1);
  EXPECT_EQ(count_runs(schedule, Task::AllGather), 1);
  EXPECT_EQ(count_runs(schedule_of(of_bf16(4, "megatron:whole-states", 3)), Task::AllReduce), 1);
}

// More micro-batches need no more memory: what one makes is added and freed.
TEST(Megatron, KeepsNoGradientBesideItsBuffer) {
  EXPECT_EQ(live_peak(schedule_of(of_bf16(2, "megatron", 2))),
            live_peak(schedule_of(of_bf16(2, "megatron", 5))));
}

TEST(Megatron, OfOneRankHasItsBuffersAndExchangesNothing) {
  const StepOptions options = of_bf16(1, "megatron", 2);
  const Schedule schedule = schedule_of(options);
  EXPECT_THAT(validate(trace_of(options), schedule), IsEmpty());
  EXPECT_EQ(resting(schedule, Category::Gradient), 4 * elements_in(options));
  for (const tidemark::Run& run : runs_of(schedule)) EXPECT_FALSE(is_collective(run.task));
}

TEST(Megatron, MoreRanksNeverKeepMore) {
  std::int64_t before = INT64_MAX;
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    const std::int64_t states =
        resting(schedule_of(of_bf16(ranks, "megatron")), Category::OptimizerState);
    EXPECT_LE(states, before);
    before = states;
  }
}

TEST(Megatron, GoesWithStagesAndTensorParallelRanks) {
  for (const char* shard : {"megatron", "megatron:overlap", "megatron:whole-states"})
    for (const char* schedule : {"1f1b", "gpipe", "interleaved:v=2"})
      for (const std::int64_t stage : {0, 1}) {
        StepOptions options = of_bf16(2, shard, 4);
        options.framework = "megatron";
        options.mesh[Axis::Pipeline] = options.mesh[Axis::Tensor] = 2;
        options.rank = RankClass{stage};
        options.schedule = parse_schedule(schedule);
        const Trace trace = build_rank_trace(small_gpt2(4), options);
        EXPECT_THAT(validate(trace, lower(planned(trace, "vanilla"))), IsEmpty())
            << shard << ' ' << schedule << ' ' << stage;
      }
}

// Its loss is Megatron-LM's on one rank, too: fp32 logits, whose memory holds their softmax.
TEST(MegatronFramework, WritesTheSoftmaxOverFp32Logits) {
  StepOptions options{.batch = 2, .framework = "megatron"};
  const Trace trace = build_rank_trace(small_gpt2(), options);
  const auto loss = std::ranges::find(trace.ops, OpKind::VocabularyLoss, &Op::kind);
  ASSERT_NE(loss, trace.ops.end());
  const TensorId logits = trace.inputs(*loss)[0];
  EXPECT_EQ(trace[logits].dtype, DType::Float32);
  EXPECT_EQ(trace[trace.outputs(*loss)[1]].storage, logits);
  EXPECT_THAT(check(trace), IsEmpty());
}

StepOptions with_loss(const char* loss, std::int64_t ranks) {
  StepOptions options{.batch = 2, .framework = "megatron"};
  options.loss = parse_token_loss(loss);
  options.mesh[Axis::Tensor] = ranks;
  return options;
}

// Transformer Engine's kernel writes the gradient over the logits as they are, and leaves no copy.
TEST(MegatronFramework, WritesTheGradientOverTheLogitsOfAFusedLoss) {
  for (const std::int64_t ranks : {1, 2}) {
    const Trace trace = build_rank_trace(small_gpt2(), with_loss("fused", ranks));
    const auto loss = std::ranges::find(trace.ops, OpKind::VocabularyLoss, &Op::kind);
    ASSERT_NE(loss, trace.ops.end());
    const TensorId logits = trace.inputs(*loss)[0], gradient = trace.outputs(*loss)[1];
    EXPECT_EQ(trace[logits].dtype, DType::BFloat16);
    EXPECT_EQ(trace[gradient].dtype, DType::BFloat16);
    EXPECT_EQ(trace[gradient].storage, trace[logits].storage);
    EXPECT_THAT(check(trace), IsEmpty());
    EXPECT_THAT(validate(trace, lower(planned(trace, "vanilla"))), IsEmpty());
  }
}

// What torch.compile makes of Megatron-LM's own loss has the softmax in fp32 beside the logits, and
// in the backward a copy of it beside the bf16 gradient.
TEST(MegatronFramework, CopiesTheSoftmaxInTheBackwardOfACompiledLoss) {
  for (const char* framework : {"megatron", "megatron-local"})
    for (const std::int64_t ranks : {1, 2}) {
      StepOptions options = with_loss("native", ranks);
      options.framework = framework;
      const Trace trace = build_rank_trace(small_gpt2(), options);
      const auto loss = std::ranges::find(trace.ops, OpKind::VocabularyLoss, &Op::kind);
      ASSERT_NE(loss, trace.ops.end());
      const Tensor& logits = trace[trace.inputs(*loss)[0]];
      const TensorId softmax = trace.outputs(*loss)[1];
      EXPECT_EQ(logits.dtype, DType::BFloat16);
      EXPECT_EQ(trace[softmax].dtype, DType::Float32);
      EXPECT_EQ(trace[softmax].storage, softmax);
      EXPECT_THAT(check(trace), IsEmpty());
      const JointGraph graph = differentiate(trace, keep_everything(trace));
      const auto op = static_cast<OpId>(loss - trace.ops.begin());
      const auto node = std::ranges::find_if(
          graph.nodes, [&](const Node& n) { return n.op == op && n.task == Task::Backward; });
      ASSERT_NE(node, graph.nodes.end());
      std::vector<Bytes> written;
      for (const InstanceId id : graph.writes(*node)) {
        EXPECT_EQ(graph[id].over, no_instance);
        written.push_back(graph[id].size);
      }
      EXPECT_THAT(written, testing::ElementsAre(size(logits), Bytes{2 * size(logits).count}));
      EXPECT_THAT(validate(trace, lower(planned(trace, "vanilla"))), IsEmpty());
    }
}

TEST(MegatronFramework, AloneCompilesMegatronsOwnLossOfBf16Logits) {
  StepOptions options = with_loss("native", 1);
  options.precision = Precision::Fp32;
  EXPECT_THAT([&] { require_used_options(build_rank_trace(small_gpt2(), options)); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("take --precision bf16")));
  options = with_loss("native", 1);
  options.framework = "transformers-4.57";
  EXPECT_THAT([&] { require_used_options(build_rank_trace(small_gpt2(), options)); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("take --framework megatron")));
}

// What transformers' code would make fp32 first is Megatron-LM's own model there.
TEST(MegatronFramework, MakesNoFp32LogitsBesideThoseOfItsLoss) {
  for (const bool is_fused : {false, true}) {
    StepOptions options = with_loss("fused", 1);
    if (!is_fused) options.loss = {};
    const Trace trace = build_rank_trace(small_llama(), options);
    const auto is_wide_logits = [&](const Tensor& tensor) {
      return tensor.dtype == DType::Float32 && tensor.shape.rank() > 0 &&
             tensor.shape.back() == 61 && tensor.category == Category::Activation;
    };
    std::set<TensorId> storages;
    for (const Tensor& tensor : trace.tensors)
      if (is_wide_logits(tensor)) storages.insert(tensor.storage);
    EXPECT_EQ(storages.size(), is_fused ? 0U : 1U);
  }
}

TEST(MegatronFramework, AloneHasTransformerEnginesLoss) {
  for (const char* framework : {"transformers-4.57", "megatron-local"}) {
    StepOptions options = with_loss("fused", 1);
    options.framework = framework;
    const Trace trace = build_rank_trace(small_gpt2(), options);
    EXPECT_THAT(
        [&] { require_used_options(trace); },
        testing::ThrowsMessage<UsageError>(testing::HasSubstr("take --framework megatron")));
  }
}

// Transformer Engine's norms are one kernel, which reads and keeps 16 bits; PyTorch's make an fp32
// copy.
TEST(MegatronFramework, KeepsTheInputsOfNormsInTheirOwnBits) {
  const auto dtypes_of = [](const char* framework) {
    const Trace trace = build_rank_trace(small_llama(), {.batch = 2, .framework = framework});
    std::vector<DType> found;
    for (const Op& op : trace.ops)
      if (op.kind == OpKind::RmsNorm) found.push_back(trace[trace.inputs(op)[0]].dtype);
    return found;
  };
  EXPECT_EQ(dtypes_of("megatron"), std::vector(7, DType::BFloat16));
  EXPECT_EQ(dtypes_of("megatron-local"), std::vector(7, DType::Float32));
}

}  // namespace
}  // namespace tidemark::megatron_test
