// BERT of Megatron-LM's core (core/models/bert/bert_model.py): the parameters that its modules
// have, and what a tensor-parallel rank keeps by the formulas of its layers (arXiv 2205.05198).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/simulator/parallel/ranks.h"
#include "tests/support/all_strategies.h"
#include "traces/models/config_reader.h"

namespace tidemark::megatron_bert_test {
namespace {

constexpr std::int64_t h = 64, s = 32, b = 2, a = 4, v = 512;

Model bert(std::int64_t depth, bool has_binary_head = true) {
  const std::string config =
      fmt::format(R"({{"model_type": "megatron-core-bert", "hidden_size": {}, "num_layers": {},
                      "num_attention_heads": {}, "vocab_size": {}, "max_position_embeddings": {},
                      "bert_binary_head": {}}})",
                  h, depth, a, v, s, has_binary_head);
  return small_model("megatron-bert", read_model_config(config, "bert.json").config);
}

StepOptions of_tensor_ranks(std::int64_t ranks) {
  StepOptions options{.batch = b,
                      .precision = Precision::Bf16,
                      .attention = Attention::Math,
                      .framework = "megatron"};
  options.mesh[Axis::Tensor] = ranks;
  return options;
}

// Words and places; per layer 12h² + 13h; the last norm; dense, norm and bias of the words' head,
// whose table is that of the words. With the binary head types of tokens, a pooler and two classes.
TEST(MegatronBert, HasTheParametersOfItsModules) {
  const std::int64_t layers = 3 * (12 * h * h + 13 * h), dense = h * h + h, norm = 2 * h;
  const std::int64_t of_words = v * h + s * h + layers + norm + dense + norm + v;
  EXPECT_EQ(parameters_of(build_trace(bert(3, false), of_tensor_ranks(1))), of_words);
  EXPECT_EQ(parameters_of(build_trace(bert(3), of_tensor_ranks(1))),
            of_words + 2 * h + dense + 2 * h + 2);
}

// With scores in memory and the number that scales them, and the fp32 mean and 1/deviation of two
// norms. Transformer Engine's attention keeps which pairs of tokens hold padding, whole on each
// rank; Megatron-LM's own does not.
TEST(MegatronBert, KeepsWhatTheFormulasSay) {
  const std::int64_t sbh = s * b * h, statistics = 2 * 2 * 4 * s * b, scores = 5 * a * s * s * b;
  constexpr std::int64_t factor = sizeof(double);
  for (const std::int64_t t : {1, 2, 4})
    for (const auto& [framework, mask] :
         {std::pair("megatron", b * s * s), std::pair("megatron-local", std::int64_t{})}) {
      StepOptions options = of_tensor_ranks(t);
      options.framework = framework;
      EXPECT_EQ(kept_at_the_loss(bert(5), options) - kept_at_the_loss(bert(4), options),
                10 * sbh + 24 * sbh / t + scores / t + mask + factor + statistics);
    }
}

TEST(MegatronBert, HasNoHeadButItsOwn) {
  EXPECT_EQ(head_of(bert(2).config), Head::Pretraining);
  EXPECT_EQ(head_of(bert(2, false).config), Head::MaskedLanguage);
  StepOptions options = of_tensor_ranks(1);
  options.head = Head::MaskedLanguage;
  EXPECT_THROW(build_trace(bert(2), options), UsageError);
  EXPECT_NO_THROW(build_trace(bert(2, false), options));
}

TEST(MegatronBert, WithEveryStrategyIsSound) {
  for (const char* strategy : all_strategies)
    for (const bool has_binary_head : {false, true}) {
      StepOptions options = of_tensor_ranks(2);
      options.mesh[Axis::Data] = 2;
      options.master_weights = true;
      options.shard = parse_sharding("megatron");
      expect_sound_ranks(bert(2, has_binary_head), options, strategy);
      if (testing::Test::HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace tidemark::megatron_bert_test
