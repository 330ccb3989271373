// What ranks that share experts keep and exchange: their own experts' parameters, and as many
// visits as their tokens make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/cost/model_flops.h"
#include "simulator/parallel/contiguous.h"
#include "simulator/parallel/exchanges.h"
#include "simulator/parallel/expert_trace.h"
#include "simulator/parallel/fused_gradients.h"
#include "tests/simulator/parallel/ranks.h"
#include "traces/expert_ops.h"

namespace tidemark::expert_parallel_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t h = 32, f = 48, experts = 8, per_token = 2, depth = 2, tokens = 2 * 16;

StepOptions of_expert_ranks(std::int64_t ranks, std::int64_t replicas = 8,
                            std::string_view shard = "megatron") {
  StepOptions options = of_bf16(replicas, shard);
  options.framework = "megatron";
  options.mesh.experts = ranks;
  return options;
}

std::string expert_refusal(const Model& model, const StepOptions& options) {
  try {
    build_rank_trace(model, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Of all layers: what all ranks have, and what the experts have.
struct Counts {
  std::int64_t dense = 0, of_experts = 0;
};

Counts counts_of(const StepOptions& options, const Model& model = small_mixture()) {
  const Trace trace = build_rank_trace(model, options);
  Counts counts{.dense = parameters_of(trace)};
  for (const Op& op : trace.ops)
    if (expert_op(trace, op) == ExpertOp::Product)
      counts.of_experts += numel(trace[trace.inputs(op)[1]].shape);
  counts.dense -= counts.of_experts;
  return counts;
}

TEST(ExpertParallel, OfOneRankChangesNothing) {
  StepOptions alone = of_expert_ranks(1, 1);
  alone.shard = {};
  EXPECT_EQ(share_experts(build_trace(small_mixture(), alone)),
            build_trace(small_mixture(), alone));
}

// Rows are sent forward and, as gradients, back; adding gradients up is each rank's own.
TEST(ExpertParallel, ExchangesInForwardsAndBackwardsAlone) {
  const Trace trace = build_rank_trace(small_mixture(), of_expert_ranks(4));
  const auto op = std::ranges::find_if(
      trace.ops, [&](const Op& each) { return expert_op(trace, each) == ExpertOp::Exchange; });
  ASSERT_NE(op, trace.ops.end());
  const auto exchanges = [&](Task task) {
    const tidemark::Run run{task, StreamId::Compute, OpId(op - trace.ops.begin()), 0, 0, 0};
    return exchange_of(trace, Schedule(), run).has_value();
  };
  for (const Task task : {Task::Forward, Task::Recompute, Task::Backward})
    EXPECT_TRUE(exchanges(task)) << to_string(task);
  EXPECT_FALSE(exchanges(Task::Accumulate));
}

// Two products of [h, 2f] and [f, h] per expert.
TEST(ExpertParallel, SharesExpertsAndNothingElse) {
  const Counts alone = counts_of(of_expert_ranks(1));
  EXPECT_EQ(alone.of_experts, depth * experts * 3 * h * f);
  for (const std::int64_t ranks : {2, 4, 8}) {
    const Counts shared = counts_of(of_expert_ranks(ranks));
    EXPECT_EQ(shared.of_experts, alone.of_experts / ranks);
    EXPECT_EQ(shared.dense, alone.dense);
  }
}

// docs of the distributed optimizer: 6 + 12/d bytes per parameter among d ranks with the same ones,
// which are dp for most and dp/ep for experts. Sizes here need no padding but each buffer's end.
TEST(ExpertParallel, CutsStatesAmongRanksWithTheSameExperts) {
  for (const std::int64_t ranks : {1, 2, 4, 8}) {
    const StepOptions options = of_expert_ranks(ranks);
    const Trace trace = build_rank_trace(small_mixture(), options);
    const Schedule schedule = lower(planned(trace, "vanilla"));
    const ContiguousLayout layout = contiguous_layout(trace, *options.shard);
    ASSERT_EQ(layout.buckets.size(), ranks > 1 ? 2U : 1U);
    double states = 0, elements = 0;
    for (const ContiguousBucket& bucket : layout.buckets) {
      states += 12.0 * static_cast<double>(bucket.numel()) / static_cast<double>(bucket.replicas);
      elements += static_cast<double>(bucket.numel());
    }
    EXPECT_EQ(layout.buckets.back().replicas, 8 / ranks);
    std::int64_t gradients = static_cast<std::int64_t>(4 * elements);
    for (const DummyGradient& dummy : dummy_gradients(trace)) gradients += dummy.size.count;
    EXPECT_EQ(resting(schedule, Category::Gradient), gradients);
    EXPECT_EQ(resting(schedule, Category::Parameter), static_cast<std::int64_t>(2 * elements));
    // The first rank's part may end in padding.
    EXPECT_LE(resting(schedule, Category::OptimizerState), static_cast<std::int64_t>(states) + 64);
    EXPECT_GT(resting(schedule, Category::OptimizerState), static_cast<std::int64_t>(0.8 * states));
  }
}

// Per layer: rows and shares there, rows back; in the backward their gradients the other way round.
TEST(ExpertParallel, ExchangesAllVisitsThereAndBack) {
  constexpr std::int64_t visits = tokens * per_token, rows = 2 * visits * h, shares = 2 * visits;
  EXPECT_THAT(exchanged(small_mixture(), of_expert_ranks(1), Axis::Data),
              testing::Not(testing::Contains(testing::Key(Pattern::AllToAll))));
  for (const std::int64_t ranks : {2, 8}) {
    auto among = exchanged(small_mixture(), of_expert_ranks(ranks), Axis::Data);
    EXPECT_EQ(among[Pattern::AllToAll].count, depth * 2 * 3);
    EXPECT_EQ(among[Pattern::AllToAll].bytes, depth * 2 * (2 * rows + shares));
  }
}

// With equal shares as many visits come as go, so that what is kept does not depend on the ranks.
TEST(ExpertParallel, KeepsAsMuchOfEachLayer) {
  const std::int64_t alone = kept_at_the_loss(small_mixture(), of_expert_ranks(1));
  for (const std::int64_t ranks : {2, 4, 8})
    EXPECT_EQ(kept_at_the_loss(small_mixture(), of_expert_ranks(ranks)), alone);
}

// What an expert keeps of a visit in 16 bits: its input, both halves, their product; its share and
// two numbers that say where it came from.
TEST(ExpertParallel, KeepsInputHalvesAndProductOfEachVisit) {
  const auto kept_with = [](std::int64_t count) {
    Model model = small_mixture();
    std::get<DecoderConfig>(model.config).experts.per_token = count;
    return kept_at_the_loss(model, of_expert_ranks(4));
  };
  const std::int64_t of_visit = 2 * (h + 2 * f + f) + 2 + 2 * 8;
  const std::int64_t of_pick = 8 + 4;  // which expert, and its share in fp32
  EXPECT_EQ(kept_with(3) - kept_with(2), depth * tokens * (of_visit + of_pick));
}

// All tokens of all ranks visit the experts of one: 8 · tokens visits at 8 ranks of one expert and
// at 4 of two, where equal shares make 2 · tokens. Where its own tokens' visits come from it keeps
// as before; with half as many again, so much of it.
TEST(ExpertParallel, KeepsAllThatComesToTheBusiestRank) {
  const auto kept_with = [](std::int64_t ranks, std::optional<ExpertLoad> load) {
    StepOptions options = of_expert_ranks(ranks);
    options.expert_load = load;
    return kept_at_the_loss(small_mixture(), options);
  };
  const std::int64_t of_visit = 2 * (h + 2 * f + f) + 2;
  for (const std::int64_t ranks : {4, 8}) {
    const std::int64_t even = kept_with(ranks, {});
    EXPECT_EQ(kept_with(ranks, ExpertLoad{1}), even);
    EXPECT_EQ(kept_with(ranks, ExpertLoad{1.5}) - even, depth * tokens * of_visit);
    EXPECT_EQ(kept_with(ranks, ExpertLoad{}) - even, depth * 6 * tokens * of_visit);
  }
}

// Who has more visits than others does not make the model larger.
TEST(ExpertParallel, CountsTheModelsArithmeticOfAnAverageRank) {
  StepOptions options = of_expert_ranks(4);
  const double even = model_flops(build_rank_trace(small_mixture(), options));
  options.expert_load = ExpertLoad{};
  EXPECT_DOUBLE_EQ(model_flops(build_rank_trace(small_mixture(), options)), even);
}

TEST(ExpertParallel, ExchangesWhatTheBusiestRankGets) {
  StepOptions options = of_expert_ranks(8);
  const auto even = exchanged(small_mixture(), options, Axis::Data)[Pattern::AllToAll];
  options.expert_load = ExpertLoad{};
  const auto worst = exchanged(small_mixture(), options, Axis::Data)[Pattern::AllToAll];
  EXPECT_EQ(worst.count, even.count);
  EXPECT_EQ(worst.bytes, 4 * even.bytes);
}

TEST(ExpertParallel, OfMoreRanksNeedsLessBetweenSteps) {
  const auto between_steps = [](std::int64_t ranks) {
    const Schedule schedule =
        lower(planned(build_rank_trace(small_mixture(), of_expert_ranks(ranks)), "vanilla"));
    std::int64_t bytes = 0;
    for (const Buffer& buffer : schedule.buffers)
      if (buffer.persistent) bytes += buffer.size.count;
    return bytes;
  };
  for (const std::int64_t ranks : {2, 4, 8})
    EXPECT_LT(between_steps(ranks), between_steps(ranks / 2));
}

// Neighbours share experts, those as far into their group reduce gradients.
TEST(ExpertParallel, GroupsAreNeighboursAndThoseWithTheSameExperts) {
  StepOptions options = of_expert_ranks(4);
  options.mesh[Axis::Tensor] = 2;
  Interconnect joined;
  joined.gpus_per_node = 8;
  const RankGroup visits =
      group_of(options, {Pattern::AllToAll, Axis::Data, {}, Peers::SharingExperts}, joined);
  EXPECT_EQ(visits.ranks, 4);
  EXPECT_EQ(visits.per_node, 4);  // 2 apart
  const RankGroup same =
      group_of(options, {Pattern::ReduceScatter, Axis::Data, {}, Peers::SameExperts}, joined);
  EXPECT_EQ(same.ranks, 2);
  EXPECT_EQ(same.per_node, 1);  // 8 apart
}

StepOptions of_whole_experts(std::int64_t tensor, std::int64_t replicas, std::int64_t ranks) {
  StepOptions options = of_expert_ranks(ranks, replicas);
  options.mesh[Axis::Tensor] = tensor;
  options.mesh.expert_tensor = 1;
  options.sequence_parallel = true;
  return options;
}

// Two tensor-parallel ranks of four replicas share experts as eight replicas do: each has whole
// ones, and visits of half of the tokens; norms, attention and router aside.
TEST(ExpertParallel, WholeExpertsAreSharedByTensorRanksAsByReplicas) {
  const StepOptions options = of_whole_experts(2, 4, 8);
  const Counts whole = counts_of(options), alone = counts_of(of_expert_ranks(8));
  EXPECT_EQ(whole.of_experts, alone.of_experts);
  constexpr std::int64_t visits = tokens / 2 * per_token;
  auto among = exchanged(small_mixture(), options, Axis::Data);
  EXPECT_EQ(among[Pattern::AllToAll].count, depth * 2 * 3);
  EXPECT_EQ(among[Pattern::AllToAll].bytes, depth * 2 * (2 * 2 * visits * h + 2 * visits));
  for (const ContiguousBucket& bucket :
       contiguous_layout(build_rank_trace(small_mixture(), options), *options.shard).buckets)
    EXPECT_THAT(bucket.replicas, testing::AnyOf(1, 4));  // 4 · 2 / 8 of experts, 4 of all else
}

// Cut experts gather visits before their first product and reduce behind the second; whole ones
// leave the ranks' other exchanges only: of attention, and of the table and the loss.
TEST(ExpertParallel, WholeExpertsGatherNothing) {
  StepOptions cut = of_whole_experts(2, 4, 4);
  cut.mesh.expert_tensor = 0;
  const auto of_cut = exchanged(small_mixture(), cut, Axis::Tensor);
  const auto of_whole = exchanged(small_mixture(), of_whole_experts(2, 4, 4), Axis::Tensor);
  const auto fewer = [&](Pattern pattern) {
    return of_cut.at(pattern).count - of_whole.at(pattern).count;
  };
  // Forward and backward, of rows and of shares.
  EXPECT_EQ(fewer(Pattern::AllGather), depth * 3);
  EXPECT_EQ(fewer(Pattern::ReduceScatter), depth * 3);
}

TEST(ExpertParallel, WholeExpertsOfTheBusiestRankGetAllTokensOfTheirGroup) {
  StepOptions options = of_whole_experts(2, 4, 8);
  const auto even = exchanged(small_mixture(), options, Axis::Data)[Pattern::AllToAll];
  options.expert_load = ExpertLoad{};
  const auto worst = exchanged(small_mixture(), options, Axis::Data)[Pattern::AllToAll];
  EXPECT_EQ(worst.count, even.count);
  EXPECT_EQ(worst.bytes, 4 * even.bytes);  // eight ranks of one expert, two of which a token visits
}

TEST(ExpertParallel, GroupsOfWholeExpertsAreNeighboursOfAllKinds) {
  StepOptions options = of_whole_experts(2, 8, 4);
  Interconnect joined;
  joined.gpus_per_node = 8;
  const RankGroup visits =
      group_of(options, {Pattern::AllToAll, Axis::Data, {}, Peers::SharingExperts}, joined);
  EXPECT_EQ(visits.ranks, 4);
  EXPECT_EQ(visits.per_node, 4);
  const RankGroup same =
      group_of(options, {Pattern::ReduceScatter, Axis::Data, {}, Peers::SameExperts}, joined);
  EXPECT_EQ(same.ranks, 4);
  EXPECT_EQ(same.per_node, 2);  // 4 apart
}

TEST(ExpertParallel, IsRefusedWithTheNearestMesh) {
  EXPECT_THAT(expert_refusal(small_mixture(), of_expert_ranks(16, 16)),
              HasSubstr("8 experts are not shared by 16 ranks (nearest: --mesh dp=16,ep=8)"));
  EXPECT_THAT(expert_refusal(small_mixture(), of_expert_ranks(3, 12)),
              HasSubstr("8 experts are not shared by 3 ranks (nearest: --mesh dp=12,ep=2)"));
  EXPECT_THAT(expert_refusal(small_llama(), of_expert_ranks(2)),
              HasSubstr("'small-llama' has no experts (nearest: --mesh dp=8)"));
  StepOptions loop = of_expert_ranks(2);
  loop.framework = default_framework;
  EXPECT_THAT(expert_refusal(small_llama(), loop), HasSubstr("take --framework megatron"));
  StepOptions without_sp = of_expert_ranks(2, 4);
  without_sp.mesh[Axis::Tensor] = 2;
  EXPECT_THAT(expert_refusal(small_mixture(), without_sp), HasSubstr("add --sp"));
}

TEST(ExpertParallel, EveryStrategyIsSoundBesideOtherAxes) {
  for (const MlpForm form : {MlpForm::GatedPacked, MlpForm::Plain})
    for (const auto& [replicas, context, tensor, ranks] : std::vector<std::array<std::int64_t, 4>>{
             {4, 1, 1, 2}, {2, 1, 1, 2}, {2, 2, 1, 4}, {2, 1, 2, 2}, {1, 2, 2, 2}, {8, 1, 1, 8}})
      for (const char* shard :
           {"megatron", "megatron:whole-states", "megatron:overlap", "megatron:narrow-gradients"})
        for (const char* strategy : {"vanilla", "checkpoint", "checkpoint:selective"}) {
          StepOptions options = of_expert_ranks(ranks, replicas, shard);
          options.accumulate = {2};
          options.mesh[Axis::Context] = context;
          options.mesh[Axis::Tensor] = tensor;
          options.sequence_parallel = tensor > 1;
          expect_sound_ranks(small_mixture(form), options, strategy);
        }
}

TEST(ExpertParallel, EveryStrategyOfWholeExpertsIsSound) {
  for (const MlpForm form : {MlpForm::GatedPacked, MlpForm::Plain})
    for (const auto& [replicas, tensor, ranks] :
         std::vector<std::array<std::int64_t, 3>>{{1, 2, 2}, {2, 2, 4}, {4, 2, 8}, {2, 2, 2}})
      for (const char* shard : {"megatron", "megatron:overlap,narrow-gradients"})
        for (const char* strategy : {"vanilla", "checkpoint", "checkpoint:selective"}) {
          StepOptions options = of_whole_experts(tensor, replicas, ranks);
          options.shard = parse_sharding(shard);
          options.accumulate = {2};
          expect_sound_ranks(small_mixture(form), options, strategy);
        }
}

}  // namespace
}  // namespace tidemark::expert_parallel_test
