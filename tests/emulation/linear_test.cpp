// Which copies, products and sums linear layers and matrix products are made of on a GPU, against
// the CPU twins. The products themselves are plain loops here, cuBLASLt's in the plugin.
#include "kernels/linear/linear.cu"

#include "kernels/cuda/gemm_choice.h"
#include "kernels/cuda/multiply.cu"
#include "tests/emulation/twin.h"

namespace tidemark::linear_test {
namespace {

/// Sums of up to a hundred terms in another order; 16 bits hide that, but for one rounding.
double product_ulps(DType dtype) { return dtype == DType::Float32 ? 64 : 2; }

void expect_linear(const Shape& x, std::int64_t out, DType dtype, Lie lie, bool has_bias = true) {
  const std::int64_t in = x.back();
  CallMaker forward;
  forward.call.kind = OpKind::Linear;
  forward.input(x, dtype, lie).input({out, in}, dtype, lie);
  if (has_bias) forward.input({out}, dtype);
  forward.output(x.with_back(out), dtype, lie);
  expect_twins(forward.finish(product_ulps(dtype)), cpu::linear_forward, cuda::linear_forward);

  CallMaker backward;
  backward.call.kind = OpKind::Linear, backward.call.pass = Pass::Backward;
  backward.input(x, dtype, lie).input({out, in}, dtype);
  if (has_bias) backward.absent_input({out}, dtype);
  backward.absent_output(x.with_back(out), dtype).d_output(x.with_back(out), dtype, lie);
  backward.d_input(x, dtype, lie).d_input({out, in}, dtype);
  if (has_bias) backward.d_input({out}, dtype);
  expect_twins(backward.finish(product_ulps(dtype)), cpu::linear_backward, cuda::linear_backward);
}

TEST(LinearTwins, AnyShapeDtypeAndLayout) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies) {
      expect_linear({1, 1}, 1, dtype, lie);
      expect_linear({31, 33}, 7, dtype, lie);
      expect_linear({2, 3, 5}, 33, dtype, lie, false);
      expect_linear({2, 3, 4, 5}, 6, dtype, lie);
    }
}

TEST(LinearTwins, MixedDtypes) {
  CallMaker maker;
  maker.call.kind = OpKind::Linear;
  maker.input({5, 33}, DType::Float32).input({7, 33}, DType::BFloat16).input({7}, DType::Float16);
  maker.output({5, 7}, DType::BFloat16);
  expect_twins(maker.finish(product_ulps(DType::BFloat16)), cpu::linear_forward,
               cuda::linear_forward);
  CallMaker wide;  // 16-bit factors, an fp32 result, a bias of neither
  wide.call.kind = OpKind::Linear;
  wide.input({5, 33}, DType::BFloat16).input({7, 33}, DType::BFloat16).input({7}, DType::BFloat16);
  wide.output({5, 7}, DType::Float32);
  expect_twins(wide.finish(product_ulps(DType::Float32)), cpu::linear_forward,
               cuda::linear_forward);
}

TEST(LinearTwins, OnlyWhatIsWantedIsWritten) {
  CallMaker maker;
  maker.call.kind = OpKind::Linear, maker.call.pass = Pass::Backward;
  maker.absent_input({5, 33}).input({7, 33}).absent_output({5, 7}).d_output({5, 7});
  maker.d_input({5, 33}).absent_d_input();
  expect_twins(maker.finish(product_ulps(DType::Float32)), cpu::linear_backward,
               cuda::linear_backward);
}

TEST(LinearTwins, AnAbsentGradientIsZero) {
  CallMaker maker;
  maker.call.kind = OpKind::Linear, maker.call.pass = Pass::Backward;
  maker.input({5, 33}).input({7, 33}).absent_output({5, 7}).absent_d_output({5, 7});
  maker.d_input({5, 33}).d_input({7, 33});
  expect_twins(maker.finish(product_ulps(DType::Float32)), cpu::linear_backward,
               cuda::linear_backward);
}

struct MatMulShapes {
  Shape a, b, y;
};

void expect_matmul(const MatMulShapes& shapes, DType dtype, Lie lie) {
  CallMaker forward;
  forward.call.kind = OpKind::MatMul;
  forward.input(shapes.a, dtype, lie).input(shapes.b, dtype, lie).output(shapes.y, dtype, lie);
  expect_twins(forward.finish(product_ulps(dtype)), cpu::matmul_forward, cuda::matmul_forward);
  CallMaker backward;
  backward.call.kind = OpKind::MatMul, backward.call.pass = Pass::Backward;
  backward.input(shapes.a, dtype, lie).input(shapes.b, dtype, lie).absent_output(shapes.y, dtype);
  backward.d_output(shapes.y, dtype, lie);
  backward.d_input(shapes.a, dtype, lie).d_input(shapes.b, dtype, lie);
  expect_twins(backward.finish(product_ulps(dtype)), cpu::matmul_backward, cuda::matmul_backward);
}

TEST(MatMulTwins, BatchesInAnyLayout) {
  const std::array<MatMulShapes, 6> cases{{
      {{3, 5}, {5, 7}, {3, 7}},
      {{2, 3, 4, 5}, {2, 3, 5, 7}, {2, 3, 4, 7}},
      {{2, 3, 4, 5}, {5, 7}, {2, 3, 4, 7}},        // one b for all: its gradient is summed
      {{2, 1, 4, 5}, {2, 3, 5, 7}, {2, 3, 4, 7}},  // one a for all heads
      {{2, 3, 1, 5}, {1, 3, 5, 1}, {2, 3, 1, 1}},  // products of one element
      {{6, 2, 4, 5}, {3, 2, 5, 4}, {6, 2, 4, 4}},  // b repeats a factor of the first axis
  }};
  for (const MatMulShapes& shapes : cases)
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies) expect_matmul(shapes, dtype, lie);
}

// 40 heads of 3 batches in the order (batch, token, head): too many launches, so copies are made.
TEST(MatMulTwins, ManyBatchesThatNoStrideLeadsThrough) {
  CallMaker maker;
  maker.call.kind = OpKind::MatMul;
  maker.input({40, 41, 2, 3}, DType::Float32, Lie::Swapped).input({40, 41, 3, 2});
  maker.output({40, 41, 2, 2}, DType::Float32, Lie::Swapped);
  expect_twins(maker.finish(product_ulps(DType::Float32)), cpu::matmul_forward,
               cuda::matmul_forward);
}

// By trial runs of the library's candidates, which differ by a few percent from each other.
TEST(GemmChoice, TheLibrarysFirstUnlessAnotherIsClearlyFaster) {
  const auto chosen = [](std::vector<float> times) { return cuda::chosen_gemm(times); };
  EXPECT_EQ(chosen({1.0f, 0.99f, 0.98f}), 0u);
  EXPECT_EQ(chosen({1.0f, 0.90f, 0.89f, 0.5f}), 3u);
  EXPECT_EQ(chosen({1.0f, 0.90f, 0.89f}), 1u);
  EXPECT_EQ(chosen({NAN, INFINITY, 2.0f, 1.99f}), 2u);  // the first two did not run
  EXPECT_EQ(chosen({NAN}), 1u);
  EXPECT_EQ(chosen({}), 0u);
}

}  // namespace
}  // namespace tidemark::linear_test
