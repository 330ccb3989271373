// Losses whose logits are never whole: their ops, sizes and refusals. Against PyTorch's own
// allocator in tests/analysis/measured_heads_test.cpp.
#include "traces/models/chunked_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/presets.h"

namespace tidemark::chunked_loss_test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t width = 64, words = 1000, tokens = 50;

Trace with_loss(const char* loss, StepOptions options = {}) {
  options.batch = 2;
  options.loss = parse_token_loss(loss);
  if (!options.precision) options.precision = Precision::Bf16;
  TraceBuilder b("head", "toy", options);
  const TensorId x =
      b.cast("x16", b.input("x", {2, tokens, width}, DType::Float32), DType::BFloat16);
  const TensorId table = b.parameter("table", {words, width});
  return b.finish(chunked_token_loss(b, x, table, no_tensor));
}

TEST(TokenLoss, IsWrittenAsItWasRead) {
  for (const char* text : {"chunked:8", "chunked:1", "fused-linear", "fused", "native"})
    EXPECT_EQ(to_text(parse_token_loss(text)), text);
  for (const char* text : {"chunked", "chunked:0", "chunked:17", "chunked:x", "fused-linear:2",
                           "fused:2", "native:2", ""})
    EXPECT_THROW(parse_token_loss(text), UsageError) << text;
  try {
    parse_token_loss("fused-liner");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'fused-linear'?"));
  }
}

TEST(ChunkedLoss, HasAnOpPerChunkOfRows) {
  const Trace trace = with_loss("chunked:3");
  ASSERT_EQ(trace.opaque_rows.size(), 3u);
  std::vector<std::int64_t> rows;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::Opaque) rows.push_back(trace[trace.inputs(op)[0]].shape[0]);
  EXPECT_THAT(rows, testing::ElementsAre(34, 34, 32));
  const OpaqueRow& row = trace.opaque_rows[0];
  EXPECT_EQ(row.forward.workspace, Bytes{34 * words * (2 + 4 + 4)});
  EXPECT_EQ(row.backward.workspace, Bytes{34 * words * 12 - 2 * (34 * width + words * width)});
  EXPECT_EQ(row.forward.flops, 2 * 34 * words * width);
  EXPECT_EQ(row.backward.flops, 3 * 2 * 34 * words * width);
}

// ⌈1000 / 64⌉ = 16 parts of 100 rows: ⌈100 / 16⌉ = 7, so 8 rows at once.
TEST(FusedLinearLoss, TakesTheRowsThatLigerTakes) {
  const Trace trace = with_loss("fused-linear");
  ASSERT_EQ(trace.opaque_rows.size(), 1u);
  // Logits and losses; a chunk's part of the table's gradient in bf16 and in fp32.
  const Bytes workspace{8 * words * 2 + 4 * 100 + words * width * (2 + 4)};
  EXPECT_EQ(trace.opaque_rows[0].forward.workspace, workspace);
  EXPECT_EQ(trace.opaque_rows[0].backward.flops, 2 * 2 * 100 * words * width);
}

TEST(ChunkedLoss, MakesNoGradientOfAFrozenTable) {
  StepOptions frozen;
  frozen.tuning = parse_tuning("frozen:*");
  const OpaqueRow row = with_loss("fused-linear", frozen).opaque_rows[0];
  EXPECT_EQ(row.backward.flops, 2 * 100 * words * width);
  // The logits of the next chunk beside those of the last.
  EXPECT_EQ(row.backward.workspace, Bytes{2 * 8 * words * 2 + 4 * 100});
}

TEST(ChunkedLoss, IsRefusedWhereNoWordsAreScored) {
  StepOptions options{.batch = 1, .loss = parse_token_loss("chunked:4")};
  try {
    require_used_options(build_trace(find_model("vit-b-16"), options));
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has no logits of the next words"));
  }
  options.sequence = 16;
  EXPECT_NO_THROW(require_used_options(build_trace(find_model("gpt2"), options)));
}

}  // namespace
}  // namespace tidemark::chunked_loss_test
