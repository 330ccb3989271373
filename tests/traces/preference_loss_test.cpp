// Steps of pairs: what the reference shares with the model and what it has for itself. Against
// PyTorch's own allocator in tests/analysis/measured_heads_test.cpp.
#include "traces/models/preference_loss.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "traces/models/config_reader.h"
#include "traces/presets.h"

namespace tidemark::preference_loss_test {
namespace {

constexpr const char* gpt2 =
    R"({"model_type": "gpt2", "vocab_size": 90, "n_embd": 16, "n_head": 2, "n_layer": 3})";

Trace of_pairs(const char* loss, StepOptions options = {}) {
  options.batch = 3;
  options.sequence = 11;
  options.loss = parse_token_loss(loss);
  return build_trace({"toy", "", "", "", read_model_config(gpt2, "toy").config}, options);
}

std::int64_t parameters(const Trace& trace) {
  return std::ranges::count(trace.tensors, Category::Parameter, &Tensor::category);
}

std::int64_t ops_of_reference(const Trace& trace) {
  return std::ranges::count_if(trace.ops,
                               [](const Op& op) { return op.name.starts_with("reference."); });
}

const Tensor& named(const Trace& trace, std::string_view name) {
  return *std::ranges::find(trace.tensors, name, &Tensor::name);
}

TEST(PreferenceLoss, IsWrittenAsItWasRead) {
  for (const char* text : {"dpo", "dpo:precomputed"})
    EXPECT_EQ(to_text(parse_token_loss(text)), text);
  for (const char* text : {"dpo:", "dpo:4", "dpo:precompute"})
    EXPECT_THROW(parse_token_loss(text), UsageError) << text;
}

TEST(PreferenceLoss, RunsTwoSequencesForAPair) {
  const Trace trace = of_pairs("dpo");
  EXPECT_EQ(check(trace), std::vector<std::string>());
  EXPECT_EQ(named(trace, "input_ids").shape, (Shape{6, 11}));
  EXPECT_EQ(named(trace, "log_probabilities").shape, (Shape{6 * 10}));
}

// Each op of the model again, in its order, but for the last one, which reads both.
TEST(PreferenceLoss, RunsASecondModelThatIsFrozen) {
  const Trace trace = of_pairs("dpo"), alone = of_pairs("dpo:precomputed");
  EXPECT_EQ(parameters(trace), 2 * parameters(alone));
  EXPECT_EQ(ops_of_reference(trace), static_cast<std::int64_t>(alone.ops.size()) - 1);
  EXPECT_EQ(trace.ops.size(), 2 * alone.ops.size() - 1);
  EXPECT_EQ(trace.blocks.size(), 3u);
  const std::vector<std::uint8_t> wants = requires_gradient(trace);
  for (std::size_t i = 0; i < trace.tensors.size(); ++i) {
    const bool is_of_reference = trace.tensors[i].name.starts_with("reference.");
    EXPECT_FALSE(is_of_reference && wants[i] != 0) << trace.tensors[i].name;
  }
}

// The base without its adapters is the reference: no parameter is added.
TEST(PreferenceLoss, ReadsTheBaseUnderAdapters) {
  const Tuning lora = parse_tuning("lora:r=4,dropout=0.1,targets=c_attn");
  const Trace trace = of_pairs("dpo", {.tuning = lora});
  EXPECT_EQ(check(trace), std::vector<std::string>());
  EXPECT_EQ(parameters(trace), parameters(of_pairs("dpo:precomputed", {.tuning = lora})));
  for (const Op& op : trace.ops) {
    EXPECT_NE(op.kind, OpKind::Dropout);
    EXPECT_FALSE(op.name.starts_with("reference.") && is_adapter(op.name)) << op.name;
  }
}

// Projections that a fused one is made of under adapters are so in the reference, too.
TEST(PreferenceLoss, ReadsTheProjectionsThatAdaptersAreBeside) {
  for (const char* tuning : {"lora:targets=q,v", "lora-fa:targets=all"}) {
    const Trace trace = of_pairs("dpo", {.tuning = parse_tuning(tuning)});
    EXPECT_EQ(check(trace), std::vector<std::string>()) << tuning;
    const auto q = std::ranges::find(trace.ops, "reference.blocks.0.attn.q", &Op::name);
    ASSERT_NE(q, trace.ops.end()) << tuning;
    EXPECT_EQ(trace[trace.inputs(*q)[1]].name, "blocks.0.attn.q.weight");
  }
}

TEST(PreferenceLoss, TurnsDropoutOffUnlessItIsAskedFor) {
  const auto drops = [](const Trace& trace) {
    return std::ranges::count(trace.ops, OpKind::Dropout, &Op::kind);
  };
  EXPECT_EQ(drops(of_pairs("dpo")), 0);
  EXPECT_GT(drops(of_pairs("dpo", {.dropout = 0.1})), 0);
}

// Under autocast the cache of 16-bit weights is left with each model, not with the loss.
TEST(PreferenceLoss, LeavesAutocastWithEachModel) {
  const Trace trace = of_pairs("dpo", {.precision = Precision::AmpBf16});
  const auto last = [&](std::string_view weight) {
    return trace[named(trace, weight).held_until].name;
  };
  EXPECT_EQ(last("blocks.0.attn.qkv.weight.cast"), "log_probabilities");
  EXPECT_EQ(last("reference.blocks.0.attn.qkv.weight.cast"), "reference.log_probabilities");
}

// 60 rows of 90 words, 16 wide. A tile has 32768 columns whatever the vocabulary is; fp32 sums of
// both gradients, and copies of the tile and of the wider factor, beside what is rounded.
TEST(PreferenceLoss, MakesTilesOfLogits) {
  const Trace trace = of_pairs("dpo:precomputed", {.precision = Precision::Bf16});
  const auto row = std::ranges::find_if(trace.opaque_rows, is_preference_loss);
  ASSERT_NE(row, trace.opaque_rows.end());
  const std::int64_t tile = 60 * 32768 * 2;
  EXPECT_EQ(row->forward.workspace, Bytes{tile + 7 * 4 * 60});
  EXPECT_EQ(row->backward.workspace,
            Bytes{tile + 4 * (60 + 90) * 16 +
                  std::max<std::int64_t>(0, 4 * (60 * 90 + 90 * 16) - 2 * (60 + 90) * 16)});
  EXPECT_EQ(row->forward.flops, 2 * 60 * 90 * 16);
  EXPECT_EQ(row->backward.flops, 3 * 2 * 60 * 90 * 16);
}

TEST(PreferenceLoss, RefusesWhatIsNotKnown) {
  for (const char* tuning : {"prompt:tokens=4", "prefix:tokens=4", "lora:r=4,targets=all,save=wte"})
    EXPECT_THROW(of_pairs("dpo", {.tuning = parse_tuning(tuning)}), UsageError) << tuning;
  StepOptions older;
  older.framework = "transformers-4.51";
  EXPECT_THROW(require_used_options(of_pairs("dpo", older)), UsageError);
  StepOptions piped;
  piped.mesh[Axis::Pipeline] = 3;
  EXPECT_THROW(require_used_options(of_pairs("dpo", piped)), UsageError);
  StepOptions sharded;
  sharded.mesh[Axis::Data] = 2;
  EXPECT_NO_THROW(require_used_options(of_pairs("dpo", sharded)));
  sharded.shard = parse_sharding("zero2");
  EXPECT_THROW(require_used_options(of_pairs("dpo", sharded)), UsageError);
}

}  // namespace
}  // namespace tidemark::preference_loss_test
