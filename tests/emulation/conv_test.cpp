// The CUDA convolutions, emulated, against their CPU twins; the matrix product in the middle is the
// emulation's own.
#include "kernels/conv/conv.cu"

#include <cmath>

#include "tests/emulation/twin.h"

namespace tidemark::conv_test {
namespace {

struct Example {
  Shape x, weight;
  std::int64_t stride, padding, groups;
};

const std::array examples = {
    Example{{2, 3, 8, 12}, {5, 3, 4, 4}, 4, 0, 1},   // patches side by side
    Example{{2, 3, 9, 7}, {4, 3, 3, 3}, 2, 1, 1},    // patches that overlap
    Example{{2, 4, 6, 6}, {6, 2, 3, 3}, 1, 1, 2},    // groups
    Example{{2, 5, 9, 7}, {5, 1, 3, 3}, 2, 1, 5},    // one channel to a group
    Example{{2, 3, 21, 32}, {4, 3, 8, 8}, 8, 0, 1},  // read in vectors; rows that no patch has
    Example{{1, 2, 5, 5}, {2, 1, 5, 5}, 1, 2, 2}};

Shape result_of(const Example& e) {
  const auto extent = [&](std::size_t i) {
    return (e.x[i] + 2 * e.padding - e.weight[i]) / e.stride + 1;
  };
  return {e.x[0], e.weight[0], extent(2), extent(3)};
}

void set(CallMaker& maker, const Example& e) {
  maker.call.settings.stride = e.stride, maker.call.settings.padding = e.padding;
  maker.call.settings.groups = e.groups;
}

TEST(ConvTwins, Forward) {
  for (const Example& e : examples)
    for (const DType dtype : data_dtypes)
      for (const Lie lie : {Lie::Dense, Lie::Reversed})
        for (const bool has_bias : {true, false}) {
          CallMaker maker;
          set(maker, e);
          maker.input(e.x, dtype, lie).input(e.weight, dtype);
          if (has_bias) maker.input({e.weight[0]}, dtype);
          maker.output(result_of(e), dtype, lie);
          // Sums of n products in another order: n roundings of partial sums, which are as large as
          // √n. Whose order differs by how much depends on the processor's matrix product.
          const auto n = static_cast<double>(e.weight[1] * e.weight[2] * e.weight[3]);
          expect_twins(maker.finish(n * std::sqrt(n)), cpu::conv2d_forward, cuda::conv2d_forward);
        }
}

TEST(ConvTwins, Backward) {
  for (const Example& e : examples)
    for (const DType dtype : data_dtypes)
      for (const Lie lie : {Lie::Dense, Lie::Padded}) {
        CallMaker maker;
        set(maker, e);
        maker.input(e.x, dtype).input(e.weight, dtype, lie).absent_input({e.weight[0]}, dtype);
        maker.absent_output(result_of(e), dtype).d_output(result_of(e), dtype, lie);
        maker.d_input(e.x, dtype, lie).d_input(e.weight, dtype).d_input({e.weight[0]}, dtype);
        expect_twins(maker.finish(64), cpu::conv2d_backward, cuda::conv2d_backward);
      }
}

TEST(ConvTwins, AbsentGradientsAreZero) {
  CallMaker maker;
  set(maker, examples[1]);
  maker.input(examples[1].x).input(examples[1].weight).absent_output(result_of(examples[1]));
  maker.absent_d_output(result_of(examples[1])).d_input(examples[1].x);
  maker.d_input(examples[1].weight);
  expect_twins(maker.finish(0), cpu::conv2d_backward, cuda::conv2d_backward);
}

}  // namespace
}  // namespace tidemark::conv_test
