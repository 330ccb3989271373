// Ranks that cut torchtitan's LLaMA: who turns which heads of which tokens.
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/parallel/rank_trace.h"
#include "tests/traces/small_trace.h"
#include "traces/presets.h"

namespace tidemark::titan_ranks_test {
namespace {

StepOptions titan_step() {
  return {.batch = 2, .sequence = 64, .precision = Precision::Bf16, .framework = "torchtitan"};
}

Shape shape_of_output(const Trace& trace, std::string_view op) {
  return trace[trace.outputs(trace[op_named(trace, op)])[0]].shape;
}

Shape shape_of_table(const Trace& trace) {
  return trace[trace.inputs(trace[op_named(trace, "blocks.0.attn.q_rope")])[1]].shape;
}

// 32 heads, 8 of keys, of 128 elements.
TEST(TitanRanks, OfATensorTurnTheirOwnHeads) {
  StepOptions step = titan_step();
  step.mesh[Axis::Tensor] = 4;
  step.sequence_parallel = true;
  const Trace trace = build_rank_trace(find_model("llama-3-8b"), step);
  EXPECT_EQ(shape_of_output(trace, "blocks.0.attn.q_rope"), (Shape{2, 8, 64, 128}));
  EXPECT_EQ(shape_of_output(trace, "blocks.0.attn.k_rope"), (Shape{2, 2, 64, 128}));
  EXPECT_EQ(shape_of_output(trace, "blocks.0.attn.k.repeat"), (Shape{2, 8, 64, 128}));
  EXPECT_EQ(shape_of_table(trace), (Shape{64, 128}));
}

// … and repeat them before they gather what others have.
TEST(TitanRanks, OfAContextTurnTheirOwnTokens) {
  StepOptions step = titan_step();
  step.mesh[Axis::Context] = 2;
  step.shard = parse_sharding("fsdp2");
  const Trace trace = build_rank_trace(find_model("llama-3-8b"), step);
  EXPECT_EQ(shape_of_output(trace, "blocks.0.attn.q_rope"), (Shape{2, 32, 32, 128}));
  EXPECT_EQ(shape_of_output(trace, "blocks.0.attn.k.repeat"), (Shape{2, 32, 32, 128}));
  EXPECT_EQ(shape_of_table(trace), (Shape{32, 128}));
}

TEST(TitanRanks, AreOfLlamaAlone) {
  EXPECT_THROW(build_rank_trace(find_model("gpt2"), titan_step()), UsageError);
}

}  // namespace
}  // namespace tidemark::titan_ranks_test
