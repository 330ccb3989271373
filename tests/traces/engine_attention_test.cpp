// Which heads Transformer Engine's attention copies: by how they lie, and by whose kernel runs.
#include "traces/models/engine_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/small_models.h"

namespace tidemark::engine_attention_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr std::int64_t hopper = 90, blackwell = 100;

StepOptions of_megatron(std::int64_t batch, std::int64_t capability) {
  StepOptions options{.batch = batch, .precision = Precision::Bf16, .framework = "megatron"};
  options.capability = capability;
  return options;
}

/// Of the first block: what follows "blocks.0.attn." in the names of copies.
std::vector<std::string> copies_in(const Model& model, const StepOptions& options) {
  const Trace trace = build_trace(model, options);
  constexpr std::string_view prefix = "blocks.0.attn.";
  std::vector<std::string> names;
  for (const Op& op : trace.ops)
    if (const std::string name = op.name; op.kind == OpKind::Copy && name.starts_with(prefix))
      names.push_back(name.substr(prefix.size()));
  return names;
}

/// Decoders whose q, k and v come out of one product.
Model packed(std::int64_t key_heads, bool rotates) {
  DecoderConfig config{.width = 64,
                       .depth = 2,
                       .heads = 4,
                       .mlp = 128,
                       .key_heads = key_heads,
                       .head_width = 16,
                       .vocabulary = 128,
                       .positions = 32};
  config.mlp_form = MlpForm::GatedPacked;
  config.packed_qkv = true;
  config.unpacking = Unpacking::Slices;
  config.learned_positions = !rotates;
  return small_model("packed", config);
}

TEST(EngineLayout, OfOnePieceIsTakenAsItIs) {
  EXPECT_THAT(copies_in(packed(4, false), of_megatron(2, hopper)), IsEmpty());
}

// What is rotated is new, so that only values are still a part.
TEST(EngineLayout, BesideRotatedHeadsValuesAreCopied) {
  EXPECT_THAT(copies_in(packed(4, true), of_megatron(2, hopper)), ElementsAre("v.dense"));
  EXPECT_THAT(copies_in(packed(2, true), of_megatron(2, hopper)), ElementsAre("v.dense"));
}

TEST(EngineLayout, OfGroupsAllAreCopied) {
  EXPECT_THAT(copies_in(packed(2, false), of_megatron(2, hopper)),
              ElementsAre("q.dense", "k.dense", "v.dense"));
}

TEST(EngineLayout, OfOtherFrameworksIsNotAskedFor) {
  for (const char* framework : {"transformers-4.57", "megatron-local"}) {
    StepOptions options = of_megatron(2, hopper);
    options.framework = framework;
    EXPECT_THAT(copies_in(packed(2, true), options), Not(Contains("v.dense"))) << framework;
  }
}

// flash-attn's q, k, v and result: before Hopper always, on it only where it is asked for.
TEST(SamplesFirst, IsForFlashAttention) {
  const auto copies = [](StepOptions options) { return copies_in(packed(4, false), options); };
  const auto all = ElementsAre("q.by_sample", "k.by_sample", "v.by_sample", "merge");
  EXPECT_THAT(copies(of_megatron(2, 80)), all);
  EXPECT_THAT(copies(of_megatron(2, hopper)), IsEmpty());
  EXPECT_THAT(copies(of_megatron(2, blackwell)), IsEmpty());
  StepOptions asked = of_megatron(2, hopper);
  asked.attention = Attention::Flash;
  EXPECT_THAT(copies(asked), all);
}

// cuDNN's may not run then on Blackwell.
TEST(SamplesFirst, IsForDeterministicStepsOnBlackwell) {
  StepOptions options = of_megatron(2, blackwell);
  options.framework = "megatron-deterministic";
  EXPECT_THAT(copies_in(packed(4, false), options), Contains("merge"));
  options.capability = hopper;
  EXPECT_THAT(copies_in(packed(4, false), options), IsEmpty());
}

// Of one sequence both orders are the same.
TEST(SamplesFirst, OfOneSequenceNothingIsCopied) {
  EXPECT_THAT(copies_in(packed(4, false), of_megatron(1, 80)), IsEmpty());
}

}  // namespace
}  // namespace tidemark::engine_attention_test
