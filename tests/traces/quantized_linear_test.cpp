// Bases in four and eight bits: what is stored, and what their ops take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::quantized_linear_test {
namespace {

using testing::HasSubstr;

/// One linear of 640 × 128 with adapters, over 10 rows.
Trace one_linear(BaseWeights base) {
  TraceBuilder b("one", "toy",
                 {.batch = 1,
                  .precision = Precision::Bf16,
                  .tuning = parse_tuning("lora:r=4,targets=fc"),
                  .base = base});
  const TensorId x = b.cast("x16", b.input("x", {10, 640}, DType::Float32), DType::BFloat16);
  return b.finish(b.mean("loss", b.linear("fc", x, 128, false)));
}

std::int64_t bytes_of(const Trace& trace, std::string_view name) {
  const auto found = std::ranges::find(trace.tensors, name, &Tensor::name);
  return found == trace.tensors.end() ? 0 : size(*found).count;
}

TEST(QuantizedLinear, StoresHalfAByteAndAFactorPerBlock) {
  const Trace trace = one_linear(BaseWeights::Nf4);
  EXPECT_EQ(bytes_of(trace, "fc.weight"), 640 * 128 / 2);
  EXPECT_EQ(bytes_of(trace, "fc.weight.absmax"), 640 * 128 / 64 * 4);
}

TEST(QuantizedLinear, StoresFactorsInEightBitsToo) {
  const Trace trace = one_linear(BaseWeights::Nf4Double);
  EXPECT_EQ(bytes_of(trace, "fc.weight.absmax"), 1280);
  EXPECT_EQ(bytes_of(trace, "fc.weight.nested_absmax"), 1280 / 256 * 4);
  // The weight is made again for dx, and its factors beside it.
  const Bytes again = trace.opaque_rows[0].backward.workspace;
  EXPECT_EQ(again, Bytes{640 * 128 * 2 + std::max(0, 1280 * 4 - 10 * 640 * 2)});
}

TEST(QuantizedLinear, StoresAByteAndAFactorPerRow) {
  const Trace trace = one_linear(BaseWeights::Int8);
  EXPECT_EQ(bytes_of(trace, "fc.weight"), 640 * 128);
  EXPECT_EQ(bytes_of(trace, "fc.weight.scale"), 128 * 4);
  // Codes and factors of x, sums in int32, the result in fp16.
  EXPECT_EQ(trace.opaque_rows[0].forward.workspace,
            Bytes{10 * 640 + 10 * 4 + 10 * 128 * 4 + 10 * 128 * 2});
}

// torchao's product is a plain one: autograd keeps the weight in the dtype that it was made in.
TEST(QuantizedLinear, DecodesEightBitFloatsForAPlainProduct) {
  const Trace trace = one_linear(BaseWeights::Fp8);
  EXPECT_EQ(bytes_of(trace, "fc.weight"), 640 * 128);
  EXPECT_EQ(bytes_of(trace, "fc.weight.scale"), 128 * 4);
  EXPECT_EQ(bytes_of(trace, "fc.weight.decoded"), 640 * 128 * 2);
  const OpaquePass& decoding = trace.opaque_rows[0].forward;
  EXPECT_EQ(decoding.workspace, Bytes{2 * 640 * 128 * 4});  // in fp32, and times its factor
  EXPECT_EQ(decoding.moved, Bytes{640 * 128 * (1 + 4)});
  EXPECT_EQ(decoding.streamed, Bytes{640 * 128 * (4 + 4 + 4 + 2)});
  EXPECT_EQ(decoding.kernels, 3);
  const auto reads = std::ranges::find(trace.ops, "fc", &Op::name);
  ASSERT_NE(reads, trace.ops.end());
  EXPECT_EQ(reads->kind, OpKind::Linear);
  EXPECT_EQ(trace[trace.inputs(*reads)[1]].name, "fc.weight.decoded");
}

TEST(QuantizedLinear, StoresNoConv1dInEightBitFloats) {
  const StepOptions options{.batch = 1,
                            .precision = Precision::Bf16,
                            .tuning = parse_tuning("lora:r=4,targets=c_attn"),
                            .base = BaseWeights::Fp8};
  EXPECT_THAT([&] { build_trace(find_model("gpt2"), options); },
              testing::ThrowsMessage<UsageError>(HasSubstr("Conv1D")));
}

TEST(QuantizedLinear, LeavesHeadAndEmbeddingsAsTheyAre) {
  StepOptions options{.batch = 1,
                      .sequence = 16,
                      .precision = Precision::Bf16,
                      .tuning = parse_tuning("lora:r=4,targets=all"),
                      .base = BaseWeights::Nf4};
  const Trace trace = build_trace(find_model("llama-7b"), options);
  EXPECT_EQ(trace.opaque_rows.size(), 32u * 7);
  for (const Tensor& tensor : trace.tensors)
    EXPECT_FALSE(tensor.dtype == DType::UInt8 && tensor.trainable) << tensor.name;
}

TEST(QuantizedLinear, IsRefusedWithoutAdapters) {
  Trace trace;
  trace.step.base = BaseWeights::Nf4;
  try {
    require_used_options(trace);
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--base: weights in nf4 cannot be trained"));
  }
}

}  // namespace
}  // namespace tidemark::quantized_linear_test
