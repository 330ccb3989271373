// What tensor-parallel ranks keep and exchange, against Megatron-LM's published formulas (arXiv
// 2205.05198, table 2) and counts that follow from the wiring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/parallel/rank_trace.h"
#include "tests/simulator/parallel/ranks.h"
#include "tests/support/all_strategies.h"
#include "tests/support/small_families.h"

namespace tidemark::tensor_parallel_test {
namespace {

using testing::Eq;
using testing::HasSubstr;

StepOptions of_tensor_ranks(std::int64_t ranks, bool shares_sequence = false) {
  StepOptions options{.batch = 2, .precision = Precision::Bf16};
  options.mesh[Axis::Tensor] = ranks;
  options.sequence_parallel = shares_sequence;
  return options;
}

std::string tensor_refusal(const Model& model, const StepOptions& options) {
  try {
    build_rank_trace(model, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::int64_t kept_per_layer(const StepOptions& options) {
  return kept_at_the_loss(formula_gpt(5), options) - kept_at_the_loss(formula_gpt(4), options);
}

constexpr std::int64_t s = 32, b = 2, h = 64, a = 4;

// Beside the formulas: fp32 mean and 1/deviation of two norms, and the fused attention kernel's
// fp32 per row and head instead of the 5as²b of scores in memory.
TEST(TensorParallel, KeepsWhatTheFormulasSay) {
  const std::int64_t sbh = s * b * h, statistics = 2 * 2 * 4 * s * b, lse = 4 * s * b * a;
  for (const std::int64_t t : {1, 2, 4}) {
    EXPECT_EQ(kept_per_layer(of_tensor_ranks(t)), 10 * sbh + 24 * sbh / t + statistics + lse / t);
    if (t == 1) continue;
    EXPECT_EQ(kept_per_layer(of_tensor_ranks(t, true)), (34 * sbh + statistics + lse) / t);
  }
}

// Per layer two all-reduces forward and two backward, of the residual stream; the embedding's sum
// and the head's gradient.
TEST(TensorParallel, ReducesFourTimesPerLayer) {
  auto among = exchanged(formula_gpt(3), of_tensor_ranks(2));
  EXPECT_EQ(among[Pattern::AllReduce].count, 3 * 4 + 2);
  EXPECT_EQ(among[Pattern::AllReduce].bytes, (3 * 4 + 2) * 2 * s * b * h);
}

// As many bytes in two halves, and the gathers again: two per layer and one of the head. Positions
// are added before ranks part the sequence, so the embedding's sum is not scattered, and the
// gradient of that parting is gathered.
TEST(SequenceParallel, GathersAndScattersWhatTensorParallelismReduces) {
  auto among = exchanged(formula_gpt(3), of_tensor_ranks(2, true));
  EXPECT_EQ(among[Pattern::AllReduce].count, 1);
  EXPECT_EQ(among[Pattern::ReduceScatter].count, 3 * 4 + 1);
  EXPECT_EQ(among[Pattern::AllGather].count, 3 * 4 + 1 + 1 + (3 * 2 + 1));
}

TEST(TensorParallel, DividesWeightsAndFillsUpTheVocabulary) {
  const auto weights = [](const StepOptions& options) {
    const Trace trace = build_rank_trace(formula_gpt(1), options);
    std::int64_t table = 0;
    for (const Tensor& tensor : trace.tensors)
      if (tensor.name == "embed.weight") table = numel(tensor.shape);
    return std::pair(parameters_of(trace) - table, table);
  };
  const auto [all, words] = weights(of_tensor_ranks(1));
  const auto [own, own_words] = weights(of_tensor_ranks(4));
  EXPECT_EQ(words, 500 * 64);
  EXPECT_EQ(own_words, 128 * 64);  // 500 are filled up to 512
  // whole on each rank: positions, three norms, the biases of two linears by rows
  const std::int64_t whole = 32 * 64 + 3 * 2 * 64 + 2 * 64;
  EXPECT_EQ(own, whole + (all - whole) / 4);
}

TEST(TensorParallel, OfOneRankChangesNothing) {
  const StepOptions alone = of_tensor_ranks(1);
  EXPECT_EQ(build_rank_trace(small_llama(), alone), build_trace(small_llama(), alone));
}

TEST(TensorParallel, IsRefusedWithTheNearestMesh) {
  EXPECT_THAT(tensor_refusal(small_llama(), of_tensor_ranks(4)),
              HasSubstr("has 2 heads, which 4 ranks cannot share (nearest: --mesh dp=2,tp=2)"));
  EXPECT_THAT(tensor_refusal(small_gpt2(), of_tensor_ranks(3)),
              HasSubstr("(nearest: --mesh dp=3)"));  // as many GPUs
  StepOptions odd = of_tensor_ranks(2, true);
  odd.sequence = 15;
  EXPECT_THAT(tensor_refusal(small_llama(), odd),
              HasSubstr("15 tokens, which 2 ranks cannot share"));
}

TEST(TensorParallel, IsRefusedWhereNobodyKnowsTheParts) {
  StepOptions lora = of_tensor_ranks(2);
  lora.tuning = parse_tuning("lora:r=4,targets=all");
  EXPECT_THAT(tensor_refusal(small_llama(), lora), HasSubstr("adapters"));
  StepOptions chunks = of_tensor_ranks(2);
  chunks.loss = parse_token_loss("chunked:2");
  EXPECT_THAT(tensor_refusal(small_llama(), chunks),
              Eq("--mesh: tp: --loss chunked:2 is not shared by tp ranks (leave it out)"));
  StepOptions liger = of_tensor_ranks(2);
  liger.liger = true;
  EXPECT_THAT(tensor_refusal(small_llama(), liger),
              Eq("--mesh: tp: Liger's kernels are not shared by tp ranks (leave --liger out)"));
  EXPECT_THAT(tensor_refusal(small_mixtral(), of_tensor_ranks(2)),
              Eq("--mesh: tp: experts as transformers runs them are not shared by tp ranks (take "
                 "--framework megatron)"));
  for (const Model& model : {small_swin(), small_t5()})
    EXPECT_THAT(tensor_refusal(model, of_tensor_ranks(2)),
                Eq("--mesh: tp: relative positions are of all heads (take tp=1)"));
}

TEST(TensorParallel, WithEveryStrategyIsSound) {
  for (const Model& model :
       {small_gpt2(), small_llama(), small_bert(), small_neox(), small_gemma()})
    for (const char* strategy : all_strategies)
      for (const bool shares_sequence : {false, true}) {
        StepOptions options = of_tensor_ranks(2, shares_sequence);
        options.precision = shares_sequence ? Precision::Bf16 : Precision::AmpBf16;
        options.mesh[Axis::Data] = 2;
        options.shard = parse_sharding("fsdp2");
        expect_sound_ranks(model, options, strategy);
        if (testing::Test::HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace tidemark::tensor_parallel_test
