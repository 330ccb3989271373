// The CUDA softmax and log-softmax, emulated, against their CPU twins.
#include "kernels/softmax/softmax.cu"

#include "tests/emulation/twin.h"

namespace tidemark::softmax_test {
namespace {

// Rows of one warp and of several, most of which begin within a vector; with two and four vectors
// per thread; and rows that registers do not hold, in two bytes but not in four kept in the
// emulation's 48 KB.
const std::array shapes = {Shape{3, 1},    Shape{5, 31},    Shape{2, 3, 33},
                           Shape{9, 197},  Shape{3, 1032},  Shape{2, 2061},
                           Shape{2, 4109}, Shape{1, 12296}, Shape{2, 16397}};

TEST(SoftmaxTwins, Forward) {
  for (const Shape& shape : shapes)
    for (const DType dtype : data_dtypes)
      for (const DType to : {dtype, DType::Float32}) {
        CallMaker maker;
        maker.input(shape, dtype, Lie::Dense, 3).output(shape, to);
        expect_twins(maker.finish(32), cpu::softmax_forward, cuda::softmax_forward);
        expect_twins(maker.finish(32), cpu::log_softmax_forward, cuda::log_softmax_forward);
      }
}

TEST(SoftmaxTwins, Backward) {
  for (const Shape& shape : shapes)
    for (const DType dtype : data_dtypes) {
      CallMaker maker;
      Values y = random_values(shape, 9, 1, dtype);
      for (double& value : y) value = -std::abs(value) / 8;
      maker.absent_input(shape, dtype).saved(shape, y, dtype);
      maker.d_output(shape, dtype).d_input(shape, dtype);
      expect_twins(maker.finish(4000), cpu::softmax_backward, cuda::softmax_backward);
      expect_twins(maker.finish(4000), cpu::log_softmax_backward, cuda::log_softmax_backward);
    }
}

TEST(SoftmaxTwins, StridedRows) {
  for (const Lie lie : lies) {
    CallMaker maker;
    maker.input({2, 3, 40}, DType::BFloat16, lie).output({2, 3, 40}, DType::Float32, lie);
    expect_twins(maker.finish(32), cpu::softmax_forward, cuda::softmax_forward);
  }
}

TEST(SoftmaxTwins, RowsOfMaskedAndBrokenValues) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  CallMaker maker;
  maker.input_of({4, 3},
                 {-infinity, 1, 2, -infinity, -infinity, -infinity, nan, 1, 2, infinity, 1, 2},
                 DType::Float32);
  maker.output({4, 3});
  expect_twins(maker.finish(32), cpu::softmax_forward, cuda::softmax_forward);
  expect_twins(maker.finish(32), cpu::log_softmax_forward, cuda::log_softmax_forward);
}

// Neither in registers nor in vectors: x begins elsewhere in a vector than y.
TEST(SoftmaxTwins, RowsThatBeginAtDifferentPlaces) {
  const Shape shape{3, 33};
  for (const DType dtype : data_dtypes) {
    CallMaker maker;
    maker.input({4, 33}, dtype).output({4, 33}, dtype);
    TwinCase test = maker.finish(32);
    test.bind = [bind = test.bind, shape, dtype](std::vector<TestArray>& memory) {
      Call call = bind(memory);
      call.inputs[0] = array_at(call.inputs[0].data + size_of(dtype), dtype, dense(shape));
      call.outputs[0] = array_at(call.outputs[0].data, dtype, dense(shape));
      return call;
    };
    expect_twins(test, cpu::softmax_forward, cuda::softmax_forward);
  }
}

TEST(SoftmaxTwins, LongRowsOfMaskedAndBrokenValues) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  constexpr std::size_t width = 16397;
  Values x = random_values({4, width}, 1);
  std::fill_n(x.begin(), width / 2, -infinity);
  std::fill_n(x.begin() + width, width, -infinity);
  x[3 * width - 1] = nan;
  x[3 * width + 1] = infinity;
  for (const DType dtype : {DType::Float32, DType::BFloat16}) {
    CallMaker maker;
    maker.input_of({4, width}, x, dtype).output({4, width}, dtype);
    expect_twins(maker.finish(32), cpu::softmax_forward, cuda::softmax_forward);
    expect_twins(maker.finish(32), cpu::log_softmax_forward, cuda::log_softmax_forward);
  }
}

TEST(SoftmaxTwins, AbsentGradientsAreZero) {
  CallMaker maker;
  maker.absent_input({3, 4}).saved({3, 4}, Values(12, 0.25)).absent_d_output({3, 4});
  maker.d_input({3, 4});
  expect_twins(maker.finish(0), cpu::softmax_backward, cuda::softmax_backward);
}

TEST(SoftmaxTwins, SavedInEightBits) {
  for (const DType dtype : data_dtypes)
    for (const std::int64_t heads : {1, 3}) {
      const Shape shape{2, 3, 5, 40};
      CallMaker maker;
      maker.absent_input(shape, dtype).coded_saved(shape, heads, 1);
      maker.d_output(shape, dtype).d_input(shape, dtype);
      expect_twins(maker.finish(64), cpu::softmax_backward, cuda::softmax_backward);
    }
}

TEST(SoftmaxTwins, MinMaxAreNotedAndCodesWrittenInPassing) {
  for (const DType dtype : data_dtypes) {
    CallMaker maker;
    maker.input({2, 3, 5, 40}, dtype).output({2, 3, 5, 40}, dtype).coded_in_passing(3, 1);
    expect_twins(maker.finish(64), cpu::softmax_forward, cuda::softmax_forward);
  }
}

}  // namespace
}  // namespace tidemark::softmax_test
