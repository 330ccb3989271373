// What context-parallel ranks keep and exchange: everything of a token over c, and keys and values
// of all tokens while an attention reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/cost/cost_model.h"
#include "simulator/cost/model_flops.h"
#include "simulator/parallel/cluster.h"
#include "tests/simulator/parallel/ranks.h"
#include "tests/support/all_strategies.h"
#include "tests/support/small_families.h"
#include "traces/presets.h"

namespace tidemark::context_parallel_test {
namespace {

using testing::Eq;
using testing::HasSubstr;

StepOptions of_context_ranks(std::int64_t ranks, std::int64_t tensor_ranks = 1) {
  StepOptions options{.batch = 2, .precision = Precision::Bf16};
  options.mesh[Axis::Context] = ranks;
  options.mesh[Axis::Tensor] = tensor_ranks;
  options.sequence_parallel = tensor_ranks > 1;
  return options;
}

std::string context_refusal(const Model& model, const StepOptions& options) {
  try {
    build_rank_trace(model, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

constexpr std::int64_t s = 32, b = 2, h = 64, a = 4;

TEST(ContextParallel, OfOneRankChangesNothing) {
  const StepOptions alone = of_context_ranks(1);
  EXPECT_EQ(build_rank_trace(small_llama(), alone), build_trace(small_llama(), alone));
}

// The 34 of arXiv 2205.05198, table 2, fp32 mean and 1/deviation of two norms, and the kernel's
// fp32 per row and head: of s / (ct) tokens each. What was gathered is not kept.
TEST(ContextParallel, KeepsItsTokensShareOfEachLayer) {
  const std::int64_t sbh = s * b * h, statistics = 2 * 2 * 4 * s * b, lse = 4 * s * b * a;
  for (const std::int64_t c : {1, 2, 4})
    for (const std::int64_t t : {1, 2}) {
      const StepOptions options = of_context_ranks(c, t);
      const std::int64_t per_layer =
          kept_at_the_loss(formula_gpt(5), options) - kept_at_the_loss(formula_gpt(4), options);
      EXPECT_EQ(per_layer, (34 * sbh + statistics + lse) / (c * t)) << to_text(options.mesh);
    }
}

// Keys and values of all tokens, 2·2·sbh bytes of 16 bits per layer, are gathered before the
// attention and again before its gradients; theirs are reduced and scattered.
TEST(ContextParallel, GathersKeysAndValuesTwice) {
  for (const std::int64_t c : {2, 4}) {
    auto among = exchanged(formula_gpt(3), of_context_ranks(c), Axis::Context);
    EXPECT_EQ(among[Pattern::AllGather].count, 3 * 2 * 2);
    EXPECT_EQ(among[Pattern::AllGather].bytes, 3 * 2 * 2 * 2 * s * b * h);
    EXPECT_EQ(among[Pattern::ReduceScatter].count, 3 * 2);
    EXPECT_EQ(among[Pattern::ReduceScatter].bytes, 3 * 2 * 2 * s * b * h);
  }
}

StepOptions of_heads(std::int64_t ranks, std::int64_t tensor_ranks = 1) {
  StepOptions options = of_context_ranks(ranks, tensor_ranks);
  options.context_form = ContextForm::AllToAll;
  return options;
}

// What the attention made is kept for its gradients as it was made, 2·sbh more of 16 bits, beside
// what the next product reads.
TEST(ContextParallel, OfExchangedHeadsKeepsAttentionsResultTwice) {
  const std::int64_t sbh = s * b * h, statistics = 2 * 2 * 4 * s * b, lse = 4 * s * b * a;
  for (const auto& [c, t] : {std::pair{2, 1}, std::pair{4, 1}, std::pair{2, 2}}) {
    const StepOptions options = of_heads(c, t);
    const std::int64_t per_layer =
        kept_at_the_loss(formula_gpt(5), options) - kept_at_the_loss(formula_gpt(4), options);
    EXPECT_EQ(per_layer, (36 * sbh + statistics + lse) / (c * t)) << to_text(options.mesh);
  }
  EXPECT_EQ(build_rank_trace(small_llama(), of_heads(1)), build_trace(small_llama(), of_heads(1)));
}

// Queries, keys, values and the result go once each way; so do their gradients.
TEST(ContextParallel, ExchangesHeadsFourTimes) {
  for (const std::int64_t c : {2, 4}) {
    auto among = exchanged(formula_gpt(3), of_heads(c), Axis::Context);
    EXPECT_EQ(among.size(), 1u);
    EXPECT_EQ(among[Pattern::AllToAll].count, 3 * 2 * 4);
    EXPECT_EQ(among[Pattern::AllToAll].bytes, 3 * 2 * 4 * 2 * s * b * h / c);
  }
}

TEST(ContextParallel, ExchangesHeadsAmongTheRanksOfAContext) {
  StepOptions options = of_heads(4, 2);
  options.mesh[Axis::Data] = 4;
  Interconnect joined;
  joined.gpus_per_node = 8;
  const RankGroup heads = group_of(options, {Pattern::AllToAll, Axis::Context, {}}, joined);
  EXPECT_EQ(heads.ranks, 4);
  EXPECT_EQ(heads.per_node, 4);
}

TEST(ContextParallel, OfExchangedHeadsIsRefusedWhereHeadsDoNotDivide) {
  StepOptions grouped = of_heads(4);
  grouped.framework = "megatron";  // hands the kernel each key head once
  EXPECT_THAT(
      context_refusal(small_llama(), grouped),
      HasSubstr("has 2 heads, which 4 ranks cannot exchange evenly (take --cp-form all-gather)"));
}

StepOptions of_ring(std::int64_t ranks, std::int64_t tensor_ranks = 1) {
  StepOptions options = of_context_ranks(ranks, tensor_ranks);
  options.context_form = ContextForm::Ring;
  return options;
}

// Two parts of the keys are there at once: of two ranks all, as where they are gathered; of eight a
// quarter. A layer keeps the same.
TEST(ContextParallel, OfARingHasTwoPartsOfTheKeysAtOnce) {
  const auto with_form_of_gathers = [](Trace trace) {
    trace.step.context_form.reset();
    return trace;
  };
  EXPECT_EQ(with_form_of_gathers(build_rank_trace(small_llama(), of_ring(2))),
            build_rank_trace(small_llama(), of_context_ranks(2)));
  const auto bytes_of_gathered = [](const StepOptions& options) {
    const Trace trace = build_rank_trace(formula_gpt(1), options);
    std::int64_t bytes = 0;
    for (const Op& op : trace.ops)
      if (op.kind == OpKind::AllGather) bytes += size(trace[trace.outputs(op)[0]]).count;
    return bytes;
  };
  for (const std::int64_t c : {2, 4, 8}) {
    EXPECT_EQ(bytes_of_gathered(of_ring(c)), 2 * 2 * s * b * h * 2 / c);
    EXPECT_EQ(kept_at_the_loss(formula_gpt(3), of_ring(c)),
              kept_at_the_loss(formula_gpt(3), of_context_ranks(c)));
  }
}

// No collective; all that is computed is computed.
TEST(ContextParallel, OfARingComputesAsMuchAndGathersNothing) {
  for (const std::int64_t c : {2, 4, 8}) {
    EXPECT_TRUE(exchanged(formula_gpt(3), of_ring(c), Axis::Context).empty());
    EXPECT_DOUBLE_EQ(model_flops(build_rank_trace(formula_gpt(3), of_ring(c))),
                     model_flops(build_rank_trace(formula_gpt(3), of_context_ranks(c))));
  }
}

// Of each task: what one attention takes.
std::map<Task, double> attention_ns(const Model& model, const StepOptions& options,
                                    const Cluster& cluster, double efficiency) {
  const PlannedStep step = planned(build_rank_trace(model, options), "vanilla");
  const Schedule schedule = lower(step);
  Device device = device_of(cluster);
  device.attention_efficiency = efficiency;
  const CostModel costs(*step.trace, step.derived->needs, device);
  std::map<Task, double> ns;
  for (const Step& each : schedule.steps)
    if (const auto* run = std::get_if<tidemark::Run>(&each);
        run && run->op != no_op && (*step.trace)[run->op].kind == OpKind::FlashAttention)
      ns[run->task] += static_cast<double>(costs.of(schedule, *run).time.count());
  return ns;
}

// Of c parts of the keys one is met while nothing comes, and one while each of the others comes.
TEST(ContextParallel, OfARingTakesTheLongerOfMeetingAndPassingKeys) {
  constexpr std::int64_t c = 4, part_bytes = 2 * 2 * s / c * b * h;  // keys and values
  const Cluster fast = find_cluster("dgx-h100");
  Cluster slow = fast;
  slow.interconnect.link_bytes_per_second /= 1e7;
  constexpr double slowly = 1e-7;  // of the attention
  const Model model = formula_gpt(1);
  const auto gathered = attention_ns(model, of_context_ranks(c), fast, slowly);
  const auto hidden = attention_ns(model, of_ring(c), fast, slowly);
  const auto exposed = attention_ns(model, of_ring(c), slow, 1);
  const auto alone = attention_ns(model, of_context_ranks(c), slow, 1);
  for (const auto& [task, times] : {std::pair{Task::Forward, 1}, std::pair{Task::Backward, 2}}) {
    EXPECT_NEAR(hidden.at(task), gathered.at(task), 1e-3 * gathered.at(task)) << to_string(task);
    const RankGroup ring =
        group_of(of_ring(c), {Pattern::Send, Axis::Context, {}}, slow.interconnect);
    const double passing =
        collective_of(slow.interconnect, ring, Pattern::Send, times * part_bytes).ns;
    EXPECT_GT(passing, alone.at(task));
    EXPECT_NEAR(exposed.at(task), alone.at(task) / c + (c - 1) * passing, 0.01 * passing)
        << to_string(task);
  }
}

TEST(ContextParallel, OfARingIsSound) {
  for (const Model& model : {small_gpt2(), small_llama()})
    for (const char* strategy : {"vanilla", "checkpoint", "mesa", "offload"})
      for (const Attention attention : {Attention::Flash, Attention::MemoryEfficient}) {
        StepOptions options = of_ring(4);
        options.mesh[Axis::Data] = 2;
        options.attention = attention;
        options.shard = parse_sharding("fsdp2");
        expect_sound_ranks(model, options, strategy);
        if (testing::Test::HasFatalFailure()) return;
      }
}

// As many key heads as a rank has, of a quarter of the queries'.
TEST(ContextParallel, GathersOnlyTheKeyHeadsOfATensorParallelRank) {
  const Model model = small_llama();
  auto alone = exchanged(model, of_context_ranks(2), Axis::Context);
  auto shared = exchanged(model, of_context_ranks(2, 2), Axis::Context);
  EXPECT_EQ(alone[Pattern::AllGather].count, shared[Pattern::AllGather].count);
  EXPECT_EQ(alone[Pattern::AllGather].bytes, 2 * shared[Pattern::AllGather].bytes);
}

TEST(ContextParallel, KeepsAllParameters) {
  EXPECT_EQ(parameters_of(build_rank_trace(small_llama(), of_context_ranks(2))),
            parameters_of(build_trace(small_llama(), of_context_ranks(1))));
}

// States are cut, and gradients reduced, among dp · cp ranks as among as many replicas.
TEST(ContextParallel, SharesStatesAsReplicasDo) {
  for (const char* shard :
       {"megatron", "megatron:whole-states", "fsdp2", "zero1", "zero3", "ddp"}) {
    StepOptions replicas = of_bf16(4, shard), tokens = of_bf16(1, shard), both = of_bf16(2, shard);
    tokens.mesh[Axis::Context] = 4;
    both.mesh[Axis::Context] = 2;
    const auto resting_bytes = [](const StepOptions& options) {
      const Schedule schedule = lower(planned(build_rank_trace(small_gpt2(), options), "vanilla"));
      std::int64_t bytes = 0;
      for (const Buffer& buffer : schedule.buffers)
        if (buffer.persistent && buffer.category != Category::Input) bytes += buffer.size.count;
      return bytes;
    };
    EXPECT_EQ(resting_bytes(tokens), resting_bytes(replicas)) << shard;
    EXPECT_EQ(resting_bytes(both), resting_bytes(replicas)) << shard;
    EXPECT_EQ(exchanged(small_gpt2(), tokens, Axis::Data)[Pattern::AllReduce].bytes,
              exchanged(small_gpt2(), replicas, Axis::Data)[Pattern::AllReduce].bytes);
  }
}

// Ranks of a replica's context lie next to each other, replicas behind them.
TEST(ContextParallel, ReducesAmongAllRanksWithTheSameParameters) {
  StepOptions options = of_context_ranks(2, 2);
  options.mesh[Axis::Data] = 4;
  Interconnect joined;
  joined.gpus_per_node = 8;
  const RankGroup reduced = group_of(options, {Pattern::AllReduce, Axis::Data, {}}, joined);
  EXPECT_EQ(reduced.ranks, 8);
  EXPECT_EQ(reduced.per_node, 4);  // 2 apart
  EXPECT_EQ(group_of(options, {Pattern::AllGather, Axis::Context, {}}, joined).ranks, 2);
}

TEST(ContextParallel, OfMoreRanksNeedsLess) {
  std::int64_t before = kept_at_the_loss(small_llama(), of_context_ranks(1));
  for (const std::int64_t c : {2, 4}) {
    const std::int64_t now = kept_at_the_loss(small_llama(), of_context_ranks(c));
    EXPECT_LT(now, before);
    before = now;
  }
}

TEST(ContextParallel, IsRefusedWithTheNearestMesh) {
  StepOptions odd = of_context_ranks(4);
  odd.sequence = 12;
  EXPECT_THAT(context_refusal(small_llama(), odd),
              HasSubstr("12 tokens are no 8 pieces, two for each of 4 ranks (nearest: --mesh "
                        "dp=2,cp=2)"));
  odd.sequence = 13;
  EXPECT_THAT(context_refusal(small_llama(), odd), HasSubstr("(nearest: --mesh dp=4)"));
}

TEST(ContextParallel, IsRefusedWhereTokensMeet) {
  StepOptions scores = of_context_ranks(2);
  scores.attention = Attention::Math;
  EXPECT_THAT(context_refusal(small_llama(), scores), HasSubstr("take --attention flash"));
  StepOptions chunks = of_context_ranks(2);
  chunks.loss = parse_token_loss("chunked:2");
  EXPECT_THAT(context_refusal(small_llama(), chunks),
              Eq("--mesh: cp: --loss chunked:2 is not shared by cp ranks (leave it out)"));
  EXPECT_THAT(context_refusal(small_mixtral(), of_context_ranks(2)),
              HasSubstr("not shared by cp ranks (take --framework megatron)"));
  EXPECT_THAT(context_refusal(small_t5(), of_context_ranks(2)),
              Eq("--mesh: cp: relative positions are of all pairs of tokens (take cp=1)"));
  StepOptions classes = of_context_ranks(2);
  classes.head = Head::SequenceClassification;
  EXPECT_THAT(
      context_refusal(small_gpt2(), classes),
      Eq("--mesh: cp: the head reads one token of each sequence, which one rank has (take cp=1)"));
  EXPECT_THAT(
      context_refusal(small_bert(), classes),
      Eq("--mesh: cp: the head reads one token of each sequence, which one rank has (take cp=1)"));
  classes.head = Head::QuestionAnswering;
  EXPECT_THAT(
      context_refusal(small_bert(), classes),
      Eq("--mesh: cp: the loss weighs all tokens of a sequence against each other, of which "
         "each rank has some (take cp=1)"));
  StepOptions shifted = of_context_ranks(2);
  shifted.framework = "transformers-4.47";
  EXPECT_THAT(context_refusal(small_gpt2(), shifted),
              Eq("--mesh: cp: the loss moves logits by a token, which another rank may have (take "
                 "cp=1)"));
  EXPECT_THAT(context_refusal(find_model("deberta-v3-base"), of_context_ranks(2)),
              Eq("--mesh: cp: disentangled attention is not shared by cp ranks (take cp=1)"));
  StepOptions padded = of_context_ranks(2);
  padded.padded = true;
  EXPECT_THAT(context_refusal(small_llama(), padded),
              Eq("--mesh: cp: a mask of padding is added to the scores of all tokens (take "
                 "--attention flash without --padded)"));
  for (const Model& model : {small_vit(), small_mvit()})
    EXPECT_THAT(context_refusal(model, of_context_ranks(2)), HasSubstr("no sequences of words"));
}

TEST(ContextParallel, WithEveryStrategyIsSound) {
  for (const Model& model : {small_gpt2(), small_llama(), small_neox()})
    for (const char* strategy : all_strategies)
      for (const char* shard : {"fsdp2", "megatron"}) {
        StepOptions options = of_context_ranks(2, 2);
        options.mesh[Axis::Data] = 2;
        options.master_weights = true;
        options.optimizer_form = OptimizerForm::Fused;
        options.shard = parse_sharding(shard);
        expect_sound_ranks(model, options, strategy);
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(ContextParallel, OfExchangedHeadsIsSound) {
  for (const Model& model : {small_gpt2(), small_llama()})
    for (const char* strategy : {"vanilla", "checkpoint", "checkpoint:selective", "mesa"})
      for (const Attention attention : {Attention::Flash, Attention::MemoryEfficient}) {
        StepOptions options = of_heads(2);
        options.mesh[Axis::Data] = 2;
        options.attention = attention;
        options.shard = parse_sharding("fsdp2");
        expect_sound_ranks(model, options, strategy);
        if (testing::Test::HasFatalFailure()) return;
      }
  StepOptions stage = of_heads(2, 2);
  stage.mesh[Axis::Pipeline] = 2;
  stage.accumulate = {3};
  stage.shard = parse_sharding("megatron");
  expect_sound_ranks(formula_gpt(2), stage, "vanilla");
}

TEST(ContextParallel, WithEitherKernelAndInGroupsIsSound) {
  for (const Model& model : {small_bert(), small_gpt2()})
    for (const Attention attention : {Attention::Flash, Attention::MemoryEfficient})
      for (const char* shard : {"fsdp2:shard=2", "fsdp1:shard=4", "ddp"}) {
        StepOptions options = of_context_ranks(2);
        options.mesh[Axis::Data] = 4;
        options.attention = attention;
        options.shard = parse_sharding(shard);
        for (const char* strategy : {"vanilla", "checkpoint"})
          expect_sound_ranks(model, options, strategy);
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(ContextParallel, InPipelineStagesIsSound) {
  for (const std::int64_t stage : {0, 1}) {
    StepOptions options = of_context_ranks(2);
    options.mesh[Axis::Pipeline] = 2;
    options.accumulate = {4};
    options.rank = RankClass{stage};
    options.shard = parse_sharding("megatron");
    expect_sound_ranks(small_gpt2(), options, "checkpoint");
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tidemark::context_parallel_test
