// Linears in eight bits: what is kept, what a pass has at once, and which linears stay as they are.
#include <gtest/gtest.h>

#include <algorithm>

#include "traces/trace_builder.h"
#include "traces/trace_json.h"

namespace tidemark::fp8_linear_test {
namespace {

constexpr std::int64_t rows = 16, in = 640;
constexpr std::int64_t x = rows * in;

/// One linear with a bias, in bf16.
Trace one_linear(std::int64_t out, const std::string& framework = "transformers-4.57") {
  TraceBuilder b("one", "toy",
                 {.batch = 1,
                  .precision = Precision::Bf16,
                  .linears = CodedLinears{LinearMath::Fp8},
                  .framework = framework});
  const TensorId read = b.cast("x16", b.input("x", {rows, in}, DType::Float32), DType::BFloat16);
  return b.finish(b.mean("loss", b.linear("fc", read, out)));
}

TEST(Fp8Linear, KeepsCodesOfTheWeightUntilTheBackward) {
  const Trace trace = one_linear(128);
  const auto codes = std::ranges::find(trace.tensors, "fc.codes", &Tensor::name);
  ASSERT_NE(codes, trace.tensors.end());
  EXPECT_EQ(size(*codes), Bytes{in * 128});
  EXPECT_EQ(trace.opaque_rows[0].saved, input_bit(0) | output_bit(1) | output_bit(2));
}

TEST(Fp8Linear, MakesThemAgainInNewerVersions) {
  const Trace trace = one_linear(128, "transformers-5");
  EXPECT_EQ(std::ranges::find(trace.tensors, "fc.codes", &Tensor::name), trace.tensors.end());
  EXPECT_EQ(trace.opaque_rows[0].saved, input_bit(0) | input_bit(1));
}

// The weight's cast has 9 bytes per element, of which its codes stay; the product has the codes of
// both, y and a workspace.
TEST(Fp8Linear, HasTwoCopiesInFp32WhileItCasts) {
  constexpr std::int64_t w = in * 128, y = rows * 128, results = 2 * y + w;
  const OpaquePass& forward = one_linear(128).opaque_rows[0].forward;
  EXPECT_EQ(forward.workspace, Bytes{9 * w - results});
  EXPECT_EQ(forward.workspace + forward.scratch, Bytes{w + x + 2 * y + (1 << 20) - results});
}

// Where the input is wide, the last cast of the backward, of x, needs most: beside it codes of dy,
// twice, and dx.
TEST(Fp8Linear, CastsTheInputBesideTheGradientOfItInTheBackward) {
  constexpr std::int64_t w = in * 16, y = rows * 16, results = 2 * x + 2 * w;
  const OpaquePass& backward = one_linear(16).opaque_rows[0].backward;
  EXPECT_EQ(backward.workspace, Bytes{2 * y + 2 * x + 9 * x - results});
}

TEST(Fp8Linear, IsWrittenAndReadBack) {
  for (const char* framework : {"transformers-4.57", "transformers-5"}) {
    const Trace trace = one_linear(128, framework);
    EXPECT_EQ(read_trace(write_trace(trace), "t.json"), trace);
  }
}

TEST(Fp8Linear, LeavesSizesThatAreNoMultiplesOf16) {
  const Trace trace = one_linear(120);
  EXPECT_TRUE(trace.opaque_rows.empty());
  EXPECT_THROW(require_used_options(trace), UsageError);
}

}  // namespace
}  // namespace tidemark::fp8_linear_test
