// T5 of Megatron-LM's core (core/models/T5): the parameters that its modules have, and what a
// tensor-parallel rank keeps by the formulas of its layers (arXiv 2205.05198).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/simulator/parallel/ranks.h"
#include "tests/support/all_strategies.h"
#include "traces/models/config_reader.h"

namespace tidemark::megatron_t5_test {
namespace {

// s tokens are read, w are written.
constexpr std::int64_t h = 64, s = 32, w = 16, b = 2, a = 4, v = 512;

Model t5(std::int64_t depth, std::int64_t decoder_depth, bool shares_words = true) {
  const std::string config =
      fmt::format(R"({{"model_type": "megatron-t5", "hidden_size": {}, "encoder_num_layers": {},
                      "decoder_num_layers": {}, "num_attention_heads": {}, "vocab_size": {},
                      "max_position_embeddings": {},
                      "untie_embeddings_and_output_weights": {}}})",
                  h, depth, decoder_depth, a, v, s, !shares_words);
  return small_model("megatron-t5", read_model_config(config, "t5.json").config);
}

StepOptions of_tensor_ranks(std::int64_t ranks, std::string_view framework = "megatron") {
  StepOptions options{.batch = b,
                      .precision = Precision::Bf16,
                      .attention = Attention::Math,
                      .framework = std::string(framework)};
  options.target_sequence = w;
  options.mesh[Axis::Tensor] = ranks;
  return options;
}

// Words and places; per layer 12h² + 13h, and of a decoder's 4h² + 6h more; a norm behind each
// stack. A head that shares the words has a bias, any other has words of its own.
TEST(MegatronT5, HasTheParametersOfItsModules) {
  const std::int64_t layer = 12 * h * h + 13 * h, cross = 4 * h * h + 6 * h;
  const std::int64_t stacks = v * h + s * h + 2 * layer + 3 * (layer + cross) + 2 * 2 * h;
  EXPECT_EQ(parameters_of(build_trace(t5(2, 3), of_tensor_ranks(1))), stacks + v);
  EXPECT_EQ(parameters_of(build_trace(t5(2, 3, false), of_tensor_ranks(1))), stacks + v * h);
}

// With scores in memory and the number that scales them, and the fp32 mean and 1/deviation of
// norms. Transformer Engine's attention keeps which pairs of tokens hold padding, whole on each
// rank, but of the decoder's own scores; Megatron-LM's own keeps none.
TEST(MegatronT5, KeepsWhatTheFormulasSay) {
  constexpr std::int64_t factor = sizeof(double);
  const auto own = [](std::int64_t tokens, std::int64_t t) {
    return (10 * tokens + 24 * tokens / t) * b * h + 5 * a * tokens * tokens * b / t + factor +
           2 * 2 * 4 * tokens * b;
  };
  const auto cross = [](std::int64_t t) {
    return (5 * w + (4 * w + 4 * s) / t) * b * h + 5 * a * w * s * b / t + factor + 2 * 4 * w * b;
  };
  for (const std::int64_t t : {1, 2, 4})
    for (const std::string_view framework : {"megatron", "megatron-local"}) {
      const StepOptions options = of_tensor_ranks(t, framework);
      const std::int64_t masks = framework == "megatron" ? b * s : 0;  // per query
      const std::int64_t of_two = kept_at_the_loss(t5(2, 2), options);
      EXPECT_EQ(kept_at_the_loss(t5(3, 2), options) - of_two, own(s, t) + masks * s);
      EXPECT_EQ(kept_at_the_loss(t5(2, 3), options) - of_two, own(w, t) + cross(t) + masks * w);
    }
}

// Each stack's sequence is dealt out where places are added to words, and what a layer of the
// decoder gathers of the encoder's is not kept: 34·sbh/t, and of attention to the encoder
// (9w + 4s)·bh/t.
TEST(MegatronT5, CutsBothSequences) {
  constexpr std::int64_t factor = sizeof(double);
  for (const std::int64_t t : {2, 4}) {
    StepOptions options = of_tensor_ranks(t, "megatron-local");
    options.sequence_parallel = true;
    const auto own = [&](std::int64_t tokens) {
      return (34 * tokens * h + 5 * a * tokens * tokens + 2 * 2 * 4 * tokens) * b / t + factor;
    };
    const std::int64_t cross = ((9 * w + 4 * s) * h + 5 * a * w * s + 2 * 4 * w) * b / t + factor;
    const std::int64_t of_two = kept_at_the_loss(t5(2, 2), options);
    EXPECT_EQ(kept_at_the_loss(t5(3, 2), options) - of_two, own(s));
    EXPECT_EQ(kept_at_the_loss(t5(2, 3), options) - of_two, own(w) + cross);
    const Trace trace = build_rank_trace(t5(2, 2), options);
    EXPECT_EQ(std::ranges::count(trace.ops, OpKind::Scatter, &Op::kind), 2);
  }
}

// Keys and values beside each other in each head are a layout that Transformer Engine knows.
TEST(MegatronT5, TakesKeysAndValuesAsTheyLie) {
  StepOptions options = of_tensor_ranks(1);
  options.attention = Attention::Sdpa;
  options.capability = 90;  // flash-attn, preferred before, wants samples first
  const Trace trace = build_trace(t5(1, 1), options);
  const auto attention = std::ranges::find(trace.ops, "decoder.blocks.0.cross.flash", &Op::name);
  ASSERT_NE(attention, trace.ops.end());
  const auto storage = [&](std::size_t i) { return trace[trace.inputs(*attention)[i]].storage; };
  EXPECT_EQ(storage(1), storage(2));
  EXPECT_EQ(trace[storage(1)].name, "decoder.blocks.0.cross.kv");
  EXPECT_EQ(trace[storage(0)].name, "decoder.blocks.0.cross.q");
}

TEST(MegatronT5, WithEveryStrategyIsSound) {
  for (const char* strategy : all_strategies)
    for (const bool is_cut : {false, true}) {
      StepOptions options = of_tensor_ranks(2);
      options.sequence_parallel = is_cut;
      options.mesh[Axis::Data] = 2;
      options.master_weights = true;
      options.shard = parse_sharding("megatron");
      expect_sound_ranks(t5(2, 2), options, strategy);
      if (testing::Test::HasFatalFailure()) return;
    }
}

// examples/t5/pretrain_t5.py: get_batch() cuts nothing.
TEST(MegatronT5, HasNoContextRanks) {
  StepOptions options = of_tensor_ranks(1);
  options.attention = Attention::Flash;
  options.mesh[Axis::Context] = 2;
  try {
    build_rank_trace(t5(2, 2), options);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("whole sequences (take cp=1)"));
  }
}

}  // namespace
}  // namespace tidemark::megatron_t5_test
