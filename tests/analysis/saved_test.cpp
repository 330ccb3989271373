// Saved bytes and units per block are those of the chain by hand and of the papers.
#include "analysis/saved.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/strategies/strategy.h"
#include "tests/simulator/chain.h"
#include "tests/simulator/planned.h"
#include "tests/traces/small_trace.h"
#include "traces/presets.h"

namespace tidemark::saved_test {
namespace {

using testing::Contains;
using testing::Field;
using testing::IsEmpty;

SavedBytes saved(const Trace& trace, std::string_view strategy) {
  const PlannedStep step = planned(trace, strategy);
  return saved_bytes(*step.trace, step.plan);
}

BlockUnits units(const Trace& trace, std::string_view strategy) {
  const PlannedStep step = planned(trace, strategy);
  return block_units(*step.trace, step.plan);
}

double of(OpKind kind, const BlockUnits& units) {
  for (const KindUnits& row : units.kinds)
    if (row.kind == kind) return row.per_op;
  return 0;
}

// --- bytes --------------------------------------------------------------------------------------

// Each of four layers keeps its input of four bytes; x0 is given.
TEST(Saved, AChainKeepsOneTensorPerLayer) {
  EXPECT_EQ(saved(chain(4), "vanilla").per_op, Bytes{16});
  EXPECT_EQ(saved(chain(4), "vanilla").unique, Bytes{16});
}

// x0 and x2 stay.
TEST(Saved, CheckpointingKeepsTheBlocksInputs) {
  EXPECT_EQ(saved(chain(4, 2), "checkpoint").unique, Bytes{8});
}

/// Two linears read one tensor: counted twice per op, once as a storage.
TEST(Saved, ASharedTensorCountsOncePerKindOfOpAndOnce) {
  TraceBuilder b("shared", "toy", {.precision = Precision::Fp32});
  const TensorId x = b.input("x", {2, 4}, DType::Float32);
  const TensorId y = b.add("add", b.gelu("gelu", b.linear("fc1", x, 4)), b.linear("fc2", x, 4));
  const Trace trace = b.finish(b.cross_entropy("loss", y, b.input("t", {2}, DType::Int64)));
  // Linears: x (32 B); gelu: fc1 (32 B); log-softmax and loss: their log-probabilities (32 B each),
  // targets (16 B) and the total weight (4 B).
  EXPECT_EQ(saved(trace, "vanilla").per_op, Bytes{32 + 32 + 32 + 32 + 16 + 4});
  EXPECT_EQ(saved(trace, "vanilla").unique, Bytes{32 + 32 + 32 + 16 + 4});
}

// A variable of the model's code has it in the backward, which does not read it.
TEST(Saved, WhatOnlyAVariableKeepsIsNoSavedActivation) {
  Trace trace = chain(4);
  Op& last = trace.ops[3];
  last.also_keeps |= output_bit(0);
  EXPECT_EQ(saved(trace, "vanilla").unique, Bytes{20});
  trace.tensors[index(operand(trace, last, 16))].category = Category::Temporary;
  EXPECT_EQ(saved(trace, "vanilla").unique, Bytes{16});
  EXPECT_EQ(saved(trace, "vanilla").per_op, Bytes{16});
}

// Every block reads the same tables of sines and cosines.
TEST(Saved, EachFurtherBlockAddsTheSameBytes) {
  const auto of_depth = [](std::int64_t depth) {
    Model model = find_model("llama-7b");
    std::get<DecoderConfig>(model.config).depth = depth;
    const Trace trace = build_trace(model, {.batch = 1, .sequence = 8});
    return saved_bytes(trace, keep_everything(trace));
  };
  const SavedBytes one = of_depth(1), two = of_depth(2), many = of_depth(41);
  EXPECT_EQ(many.per_op - two.per_op, Bytes{39 * (two.per_op - one.per_op).count});
  EXPECT_EQ(many.unique - two.unique, Bytes{39 * (two.unique - one.unique).count});
}

TEST(Saved, QuantizedTensorsCountTheirCodesAndRanges) {
  const Trace trace = small_trace();
  for (const std::int64_t bits : code_bits) {
    const std::string strategy = "mesa:bits=" + std::to_string(bits);
    const PlannedStep mesa = planned(trace, strategy);
    Bytes less;
    for (std::size_t t = 0; t < mesa.plan.decisions.size(); ++t) {
      if (mesa.plan.decisions[t].action != Action::Quantize) continue;
      const Shape& shape = mesa.trace->tensors[t].shape;
      const std::int64_t groups = shape.rank() == 4 ? shape[1] : 1;  // its width is below 64
      less += Bytes{4 * numel(shape) - numel(shape) * bits / 8 - 16 * groups};
    }
    EXPECT_GT(less, Bytes{0});
    EXPECT_EQ(saved(trace, strategy).unique, saved(trace, "vanilla").unique - less);
  }
}

TEST(Saved, ReleasedMesaHoldsACopyPerOp) {
  const SavedBytes released = saved(small_trace(), "mesa:released");
  EXPECT_EQ(released.unique, released.per_op);
}

// --- units of a block ---------------------------------------------------------------------------

Trace counted_like_the_paper(const char* model) {
  return build_trace(find_model(model), {.batch = 2, .framework = "paper"});
}

// arXiv 2406.16282: norms 4, attention 4, linears 7 and GELU 4 units of [batch, tokens, width] in
// 16 bits. ReGELU2 keeps 2 of 16 bits of a tensor four units wide, MS-LayerNorm nothing of its own.
TEST(BlockUnits, OfAVisionTransformerAreThePapers) {
  const BlockUnits before = units(counted_like_the_paper("vit-b-16"), "vanilla");
  EXPECT_NEAR(before.per_op, 19, 1e-12);
  EXPECT_NEAR(of(OpKind::LayerNorm, before), 4, 1e-12);
  EXPECT_NEAR(of(OpKind::FlashAttention, before), 4, 1e-12);
  EXPECT_NEAR(of(OpKind::Linear, before), 7, 1e-12);
  EXPECT_NEAR(of(OpKind::Gelu, before), 4, 1e-12);
  const BlockUnits after = units(counted_like_the_paper("vit-b-16"), "lowmemorybp");
  EXPECT_NEAR(after.per_op, 11.5, 1e-12);
  EXPECT_NEAR(1 - after.per_op / before.per_op, 0.3947, 5e-5);
}

// LLaMA 13B: 5120 wide, its MLP 13824 = 2.7 · 5120.
TEST(BlockUnits, OfLlama13BAreThePapers) {
  const BlockUnits before = units(counted_like_the_paper("llama-13b"), "vanilla");
  EXPECT_NEAR(before.per_op, 21.8, 1e-12);
  EXPECT_NEAR(of(OpKind::RmsNorm, before), 4, 1e-12);
  EXPECT_NEAR(of(OpKind::FlashAttention, before), 4, 1e-12);
  EXPECT_NEAR(of(OpKind::Linear, before), 5.7, 1e-12);
  EXPECT_NEAR(of(OpKind::Silu, before), 2.7, 1e-12);
  EXPECT_NEAR(of(OpKind::Mul, before), 5.4, 1e-12);
  const BlockUnits after = units(counted_like_the_paper("llama-13b"), "lowmemorybp");
  EXPECT_NEAR(after.per_op, 15.4375, 1e-12);
  EXPECT_NEAR(1 - after.per_op / before.per_op, 0.2919, 5e-5);
}

TEST(BlockUnits, AreOfTheMiddleBlock) {
  const BlockUnits result = units(counted_like_the_paper("vit-b-16"), "vanilla");
  EXPECT_EQ(result.block, "blocks.6");
  EXPECT_EQ(result.unit, Bytes{2 * 2 * 197 * 768});
  double per_op = 0, unique = 0;
  for (const KindUnits& row : result.kinds) per_op += row.per_op, unique += row.unique;
  EXPECT_DOUBLE_EQ(per_op, result.per_op);
  EXPECT_DOUBLE_EQ(unique, result.unique);
  EXPECT_LE(unique, per_op);
}

TEST(BlockUnits, OfATraceWithoutBlocksAreNone) {
  TraceBuilder b("flat", "toy", {});
  const Trace trace = b.finish(b.gelu("gelu", b.parameter("p", {})));
  EXPECT_EQ(block_units(trace, keep_everything(trace)).block, "");
  EXPECT_THAT(block_units(trace, keep_everything(trace)).kinds, IsEmpty());
}

// --- groups -------------------------------------------------------------------------------------

TEST(SavedGroups, CountEqualTensorsTogether) {
  const Trace trace = small_trace();
  const auto groups = saved_groups(trace, derive_needs(trace));
  // Two blocks with a dropout each: one mask each, [2, 3, 4] of one byte.
  EXPECT_THAT(groups, Contains(SavedGroup{"dropout", 17, {2, 3, 4}, DType::Bool, {24}, 2}));
  EXPECT_THAT(groups, Not(Contains(Field(&SavedGroup::op, "add"))));
}

}  // namespace
}  // namespace tidemark::saved_test
