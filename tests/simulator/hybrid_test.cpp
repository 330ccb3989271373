// Hybrids of state-space layers, attention, MLPs and experts: what a block keeps by closed forms,
// and that every strategy is sound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulator/small_hybrid.h"
#include "tests/support/all_strategies.h"

namespace tidemark::hybrid_test {
namespace {

using namespace small_hybrid;

// in_proj, convolution with bias, dt_bias, A_log and D, two norms, out_proj.
constexpr std::int64_t of_state_space =
    packed * width + channels * 5 + 3 * heads + inner + inner * width + width;

TEST(Hybrid, HasTheParametersOfItsModules) {
  const std::int64_t around = 2 * words * width + width;
  const std::int64_t of_attention = (32 + 2 * 16) * width + 32 * width + width;
  const std::int64_t of_mlp = 2 * mlp_width * width + width;
  const std::int64_t of_experts =
      4 * 2 * expert_width * width + 2 * shared_width * width + 4 * width + width;
  const std::int64_t all = around + of_state_space + of_attention + of_mlp + of_experts;
  for (const char* framework : {"transformers-4.57", "transformers-5", "megatron"})
    EXPECT_EQ(parameters_of(build_trace(hybrid("M*-E"), {.framework = framework})), all)
        << framework;
}

// Experts read and write 16 columns, by products with the same weights for all of them.
TEST(Hybrid, HasExpertsOfALatentWidth) {
  constexpr std::int64_t latent = 16;
  const std::int64_t narrower = 4 * 2 * expert_width * (width - latent);
  for (const char* framework : {"transformers-4.57", "transformers-5", "megatron"}) {
    const StepOptions options{.framework = framework};
    const Model narrow = hybrid("ME", R"(, "moe_latent_size": 16)");
    EXPECT_EQ(parameters_of(build_trace(hybrid("ME"), options)) -
                  parameters_of(build_trace(narrow, options)),
              narrower - 2 * latent * width)
        << framework;
  }
}

std::int64_t kept_by(std::string_view block, const StepOptions& options) {
  const std::string one = "M" + std::string(block), two = one + std::string(block);
  return kept_at_the_loss(hybrid(two), options) - kept_at_the_loss(hybrid(one), options);
}

// In 16 bits what norms read and write, what the products write, and the scan's result before the
// gate; in fp32 1/rms of either norm, exp(A_log), A and dt_bias.
TEST(Hybrid, KeepsOfAStateSpaceLayerInMegatronWhatItsCodeSaves) {
  for (const std::int64_t ranks : {1, 2}) {
    const std::int64_t t = tokens / ranks;  // that a rank has between its layers
    const std::int64_t whole = tokens * (packed + 3 * inner) / ranks;
    EXPECT_EQ(
        kept_by("M", megatron(ranks)),
        2 * (2 * t * width + whole) + 4 * (t + tokens * groups / ranks) + 3 * 4 * heads / ranks)
        << ranks;
  }
}

// Sequences lie beside each other for Megatron-LM and one after the other for the scan: two copies,
// of which the scan keeps one, and the norm the other.
TEST(Hybrid, CopiesSequencesForTheScan) {
  StepOptions two = megatron();
  two.batch = 2;
  EXPECT_EQ(kept_by("M", two), 2 * (kept_by("M", megatron()) - 3 * 4 * heads) + 3 * 4 * heads);
  const auto copies = [](const StepOptions& options) {
    return std::ranges::count(build_trace(hybrid("M"), options).ops, OpKind::Copy, &Op::kind);
  };
  EXPECT_EQ(copies(two) - copies(megatron()), 2);
}

// The block's own norm is composed. transformers 5 rounds x / rms before it multiplies, so that an
// fp32 copy of x, 1/rms and two tensors of 16 bits stay; NVIDIA's file multiplies by an fp32 copy
// of the weight first.
std::int64_t kept_by_norm(std::string_view framework) {
  const std::int64_t wide = 4 * tokens * (width + 1) + 2 * tokens * width;
  return framework == "transformers-5" ? wide + 2 * tokens * width
                                       : wide + 4 * tokens * width + 4 * width;
}

// One call keeps what it reads, the scan's result and 1/rms of its groups; neither what the norm
// made of it nor what the product reads. Weights are parameters.
TEST(Hybrid, KeepsOfAStateSpaceLayerInTransformersWhatItsCallSaves) {
  for (const char* framework : {"transformers-4.57", "transformers-5"})
    EXPECT_EQ(kept_by("M", {.precision = Precision::Bf16, .framework = framework}),
              2 * tokens * (packed + inner) + 4 * tokens * groups + 2 * 4 * heads +
                  kept_by_norm(framework))
        << framework;
}

// ReLU and pow() keep one tensor, the product behind them its square; Megatron-LM's compiled kernel
// keeps what it read.
TEST(Hybrid, KeepsOfASquaredReluOneTensorBesideItsSquare) {
  const std::int64_t inside = 2 * 2 * tokens * mlp_width;
  for (const char* framework : {"transformers-4.57", "transformers-5"})
    EXPECT_EQ(kept_by("-", {.precision = Precision::Bf16, .framework = framework}),
              inside + kept_by_norm(framework));
  EXPECT_EQ(kept_by("-", megatron()), inside + tokens * (2 * 2 * width + 4));
  const Trace amp = build_trace(hybrid("M-"), {.precision = Precision::AmpBf16});
  const auto square = std::ranges::find(amp.tensors, "blocks.1.mlp.square", &Tensor::name);
  ASSERT_NE(square, amp.tensors.end());
  EXPECT_EQ(square->dtype, DType::Float32);
}

TEST(Hybrid, HasNoPositionsAndMegatronsOneProductForQKV) {
  const Trace trace = build_trace(hybrid("M*"), megatron());
  EXPECT_EQ(std::ranges::count(trace.ops, OpKind::Rope, &Op::kind), 0);
  EXPECT_NE(std::ranges::find(trace.ops, "blocks.1.attn.qkv", &Op::name), trace.ops.end());
  const Trace separate = build_trace(hybrid("M*"), {});
  EXPECT_NE(std::ranges::find(separate.ops, "blocks.1.attn.q", &Op::name), separate.ops.end());
}

constexpr std::string_view two_ahead =
    R"(, "num_nextn_predict_layers": 2, "mtp_hybrid_override_pattern": "-")";
constexpr std::string_view one_ahead =
    R"(, "num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "-")";

// Norms of the word, of what was read and behind the block, a product of both, and the block, whose
// parameters serve each further token; transformers leaves them out.
TEST(FurtherTokens, ShareTheParametersOfOneBlock) {
  const std::int64_t block = 2 * mlp_width * width + width;
  const std::int64_t once = 3 * width + 2 * width * width + block;
  const std::int64_t without = parameters_of(build_trace(hybrid("M-"), megatron()));
  for (const std::string_view ahead : {one_ahead, two_ahead}) {
    EXPECT_EQ(parameters_of(build_trace(hybrid("M-", ahead), megatron())), without + once);
    EXPECT_EQ(build_trace(hybrid("M-", ahead), {}).ops.size(),
              build_trace(hybrid("M-"), {}).ops.size());
  }
}

// In 16 bits the word, what was read, both joined, what the block reads and its norm writes, its
// inside twice, what the last norm reads, and its row of what all heads read; in fp32 four norms'
// 1/rms and probabilities of all words; which of these are elsewhere, and labels.
TEST(FurtherTokens, KeepWhatTheirBlockAndTheirLossKeep) {
  const auto kept = [](std::string_view ahead) {
    return kept_at_the_loss(hybrid("M-", ahead), megatron());
  };
  const std::int64_t in_16_bits = tokens * (8 * width + 2 * mlp_width);
  const std::int64_t loss = tokens * (4 * words + 1 + 8);
  EXPECT_EQ(kept(two_ahead) - kept(one_ahead), 2 * in_16_bits + 4 * 4 * tokens + loss);
}

TEST(FurtherTokens, MultiplyInSixteenBits) {
  StepOptions options = megatron();
  options.linears = CodedLinears{LinearMath::Fp8};
  const Trace trace = build_trace(hybrid("M-", one_ahead), options);
  const auto of = [&](std::string_view name) {
    return std::ranges::find(trace.ops, name, &Op::name)->kind;
  };
  EXPECT_EQ(of("blocks.1.mlp.fc1"), OpKind::Opaque);
  EXPECT_EQ(of("ahead1.mtp.eh_proj"), OpKind::Linear);
  EXPECT_EQ(of("ahead1.mtp.blocks.0.mlp.fc1"), OpKind::Linear);
}

TEST(FurtherTokens, WithEveryStrategyAreSound) {
  const Model model = hybrid("M*E", R"(, "num_nextn_predict_layers": 2)");
  for (const char* strategy : all_strategies)
    for (const char* shard : {"megatron", "ddp"}) {
      StepOptions options = megatron();
      options.mesh[Axis::Data] = 2;
      options.accumulate = {2};
      options.shard = parse_sharding(shard);
      expect_sound_ranks(model, options, strategy);
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(FurtherTokens, AreRefusedInOneLineWhereTheyAreNotKnown) {
  using testing::HasSubstr;
  const Model model = hybrid("M-", one_ahead);
  StepOptions chunks = megatron();
  chunks.loss = parse_token_loss("chunked:2");
  EXPECT_THAT(refusal(model, chunks), HasSubstr("beside the prediction of several tokens"));
  StepOptions prompt = megatron();
  prompt.tuning = parse_tuning("prompt:tokens=2");
  EXPECT_THAT(refusal(model, prompt), HasSubstr("beside the prediction of several tokens"));
  chunks.loss = parse_token_loss("dpo");
  EXPECT_THAT(refusal(model, chunks), HasSubstr("beside the prediction of several tokens"));
}

TEST(Hybrid, WithEveryStrategyIsSound) {
  for (const char* strategy : all_strategies)
    for (const char* framework : {"transformers-4.57", "transformers-5", "megatron"})
      for (const Precision precision : {Precision::Bf16, Precision::AmpBf16}) {
        StepOptions options{.batch = 2, .precision = precision, .framework = framework};
        expect_sound_ranks(hybrid("M*"), options, strategy);
        expect_sound_ranks(hybrid("ME*-"), options, strategy);
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(Hybrid, RefusesInOneLineWhatItsScanIsNotKnownToDo) {
  using testing::HasSubstr;
  const auto refused = [&](StepOptions options) { return refusal(hybrid("M*"), options); };
  EXPECT_THAT(refused({.tuning = parse_tuning("lora:r=2,targets=out_proj")}),
              HasSubstr("take lora:targets=in_proj"));
  EXPECT_THAT(refused({.tuning = parse_tuning("lora:r=2,targets=all"), .base = BaseWeights::Nf4}),
              HasSubstr("leave --base out"));
  EXPECT_THAT(refused({.precision = Precision::Bf16, .linears = CodedLinears{LinearMath::Fp8}}),
              HasSubstr("--linears: not known of state-space layers"));
  EXPECT_THAT(refused({.padded = true}), HasSubstr("leave --padded out"));
  EXPECT_THAT(refused({.head = Head::TokenClassification}), HasSubstr("has no head"));
  EXPECT_THAT(refused({.tuning = parse_tuning("prefix:tokens=2")}), HasSubstr("prefixes"));
}

}  // namespace
}  // namespace tidemark::hybrid_test
