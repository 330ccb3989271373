// Learned keys and values in front of those of each block: their table, what is cut out of it, the
// masks. Against PyTorch's own allocator in tests/analysis/measured_heads_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "traces/models/config_reader.h"
#include "traces/presets.h"
#include "traces/shape_rules.h"

namespace tidemark::prefix_test {
namespace {

Trace with_prefix(const char* config, const char* tuning, StepOptions options = {}) {
  options.batch = 3;
  options.sequence = 40;
  options.tuning = parse_tuning(tuning);
  return build_trace({"toy", "", "", "", read_model_config(config, "toy").config}, options);
}

std::int64_t trained_numbers(const Trace& trace) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : trace.tensors)
    if (tensor.trainable) sum += numel(tensor.shape);
  return sum;
}

const Tensor& named(const Trace& trace, std::string_view name) {
  return *std::ranges::find(trace.tensors, name, &Tensor::name);
}

constexpr const char* llama =
    R"({"model_type": "llama", "vocab_size": 90, "hidden_size": 48, "num_hidden_layers": 5,
        "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 70})";

// Keys and values of 2 heads of 8 in 5 blocks, for each of 7 tokens.
TEST(Prefix, IsOneTableOfKeysAndValues) {
  const Trace trace = with_prefix(llama, "prefix:tokens=7");
  EXPECT_EQ(check(trace), std::vector<std::string>());
  EXPECT_EQ(named(trace, "prefix.weight").shape, (Shape{7, 5 * 2 * 2 * 8}));
  EXPECT_EQ(trained_numbers(trace), 7 * 5 * 2 * 2 * 8);
  EXPECT_EQ(named(trace, "blocks.4.attn.k.join").shape, (Shape{3, 2, 7 + 40, 8}));
  EXPECT_EQ(named(trace, "blocks.0.attn.q").shape, (Shape{3, 40, 48}));
}

// peft's transform: 16 → 9 → 160, both with biases.
TEST(Prefix, MayComeOutOfAnMlp) {
  const Trace trace = with_prefix(llama, "prefix:tokens=7,projection=9");
  EXPECT_EQ(check(trace), std::vector<std::string>());
  EXPECT_EQ(trained_numbers(trace), 7 * 16 + 16 * 9 + 9 + 9 * 160 + 160);
}

// Fused kernels get a mask whatever the batch is: it is wider than high. Prefixes are seen by all.
TEST(Prefix, WidensTheMask) {
  for (const Attention attention : {Attention::Sdpa, Attention::Math}) {
    const Trace trace = with_prefix(llama, "prefix:tokens=7", {.attention = attention});
    EXPECT_EQ(named(trace, "attention_mask").shape, (Shape{1, 1, 40, 47}));
  }
}

// The joined keys of a block are named by the cache until the loss is there.
TEST(Prefix, StaysInTheCache) {
  const Trace trace = with_prefix(llama, "prefix:tokens=7");
  EXPECT_EQ(index(named(trace, "blocks.0.attn.v.join").held_until), trace.ops.size() - 1);
}

// 40 blocks are more than an op has results: 3 groups, of 13, 13 and 14.
TEST(Prefix, IsCutTwiceForDeepModels) {
  const Trace trace = with_prefix(
      R"({"model_type": "gpt2", "vocab_size": 90, "n_embd": 16, "n_head": 2, "n_layer": 40})",
      "prefix:tokens=7");
  EXPECT_EQ(check(trace), std::vector<std::string>());
  EXPECT_EQ(named(trace, "prefix.split.0").shape, (Shape{3, 7, 13 * 32}));
  EXPECT_EQ(named(trace, "prefix.split.2.13").shape, (Shape{3, 7, 32}));
  for (const Op& op : trace.ops) EXPECT_LE(op.outputs, max_operands);
}

// Positions that are learned go on behind those of the prefix.
TEST(Prefix, StandsBeforeTheFirstPosition) {
  const Trace trace = with_prefix(
      R"({"model_type": "gpt2", "vocab_size": 90, "n_embd": 16, "n_head": 2, "n_layer": 2})",
      "prefix:tokens=7");
  EXPECT_EQ(*fill_of(trace, named(trace, "position_ids")), InputFill(fill::Positions{7}));
}

}  // namespace
}  // namespace tidemark::prefix_test
