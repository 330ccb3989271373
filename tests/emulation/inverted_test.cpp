// Activations by their output, emulated, against their CPU twins.
#include "kernels/inverted/inverted.cu"

#include "tests/emulation/twin.h"

namespace tidemark::inverted_test {
namespace {

struct Pair {
  CpuKernel forward, backward;
  CudaKernel cuda_forward, cuda_backward;
};
const std::array pairs = {Pair{cpu::inverted_gelu_forward, cpu::inverted_gelu_backward,
                               cuda::inverted_gelu_forward, cuda::inverted_gelu_backward},
                          Pair{cpu::inverted_tanh_gelu_forward, cpu::inverted_tanh_gelu_backward,
                               cuda::inverted_tanh_gelu_forward, cuda::inverted_tanh_gelu_backward},
                          Pair{cpu::inverted_silu_forward, cpu::inverted_silu_backward,
                               cuda::inverted_silu_forward, cuda::inverted_silu_backward}};

Shape bytes_of(const Shape& shape) { return {(numel(shape) + 7) / 8}; }

TEST(InvertedTwins, ValuesAndSidesInAnyDtypeAndLayout) {
  for (const Pair& pair : pairs)
    for (const Shape& shape : {Shape{1}, Shape{31}, Shape{64}, Shape{33, 3}, Shape{2, 5, 41}})
      for (const DType dtype : data_dtypes)
        for (const Lie lie : {Lie::Dense, Lie::Padded, Lie::Reversed}) {
          CallMaker maker;
          maker.input(shape, dtype, lie, 4).output(shape, dtype, lie);
          maker.output(bytes_of(shape), DType::UInt8);
          expect_twins(maker.finish(16), pair.forward, pair.cuda_forward);
        }
}

// Of either side, values that belong to it: those of the left are negative.
TEST(InvertedTwins, SlopesInAnyDtypeAndLayout) {
  for (const Pair& pair : pairs)
    for (const Shape& shape : {Shape{1}, Shape{31}, Shape{64}, Shape{33, 3}, Shape{2, 5, 41}})
      for (const DType dtype : data_dtypes)
        for (const Lie lie : {Lie::Dense, Lie::Padded, Lie::Reversed}) {
          Values y = random_values(shape, 5, 3, dtype),
                 sides(static_cast<std::size_t>(bytes_of(shape)[0]));
          for (std::size_t i = 0; i < y.size(); ++i) {
            if (y[i] < 0) y[i] = y[i] / 64;
            if (y[i] >= 0 || i % 3 == 0) sides[i / 8] += 1 << (i % 8);
          }
          CallMaker maker;
          maker.absent_input(shape, dtype).saved(shape, y, dtype, lie);
          maker.saved(bytes_of(shape), sides, DType::UInt8);
          maker.d_output(shape, dtype, lie).d_input(shape, dtype, lie);
          expect_twins(maker.finish(64), pair.backward, pair.cuda_backward);
        }
}

TEST(InvertedTwins, AbsentGradientsAreZero) {
  CallMaker maker;
  maker.absent_input({7}).saved({7}, Values(7, 0.5)).saved({1}, Values(1, 5), DType::UInt8);
  maker.absent_d_output({7}).d_input({7});
  expect_twins(maker.finish(0), cpu::inverted_gelu_backward, cuda::inverted_gelu_backward);
}

}  // namespace
}  // namespace tidemark::inverted_test
