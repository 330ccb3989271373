// The CUDA norms, emulated, against their CPU twins.
#include "kernels/norm/norm.cu"

#include "tests/emulation/twin.h"

namespace tidemark::norm_test {
namespace {

// One warp to a row, a block to a row, and a row that shared memory does not hold (12 288 floats);
// 70 rows are more than the blocks that sum a weight's gradient. Threads with two vectors of a row
// begin behind 2048 numbers of four bytes and 4096 of two, with four behind twice that.
const std::array shapes = {Shape{3, 1},    Shape{5, 31},   Shape{2, 3, 33}, Shape{70, 72},
                           Shape{9, 1023}, Shape{5, 2056}, Shape{3, 4104},  Shape{1, 12296}};

Shape rows_of(const Shape& shape) { return shape.with_back(1); }

TEST(NormTwins, LayerNormForward) {
  for (const Shape& shape : shapes)
    for (const DType dtype : data_dtypes) {
      const Shape width{shape.back()};
      CallMaker maker;
      maker.input(shape, dtype).input(width, dtype).input(width, dtype);
      maker.output(shape, dtype).output(rows_of(shape)).output(rows_of(shape));
      expect_twins(maker.finish(64), cpu::layer_norm_forward, cuda::layer_norm_forward);
    }
}

TEST(NormTwins, LayerNormOfStridedRowsAndMixedDtypes) {
  for (const Lie lie : lies) {
    CallMaker maker;
    maker.input({2, 3, 40}, DType::Float32, lie).input({40}).input({40});
    maker.output({2, 3, 40}, DType::BFloat16, lie);
    expect_twins(maker.finish(), cpu::layer_norm_forward, cuda::layer_norm_forward);
  }
}

CallMaker layer_norm_gradient(const Shape& shape, DType dtype, bool has_statistics) {
  const Shape width{shape.back()};
  CallMaker maker;
  maker.input(shape, dtype).input(width, dtype).absent_input(width, dtype);
  maker.absent_output(shape, dtype);
  if (has_statistics) {
    maker.saved(rows_of(shape), Values(static_cast<std::size_t>(numel(rows_of(shape))), 0.125));
    maker.saved(rows_of(shape), Values(static_cast<std::size_t>(numel(rows_of(shape))), 0.75));
  } else {
    maker.absent_output(rows_of(shape)).absent_output(rows_of(shape));
  }
  maker.d_output(shape, dtype).d_input(shape, dtype).d_input(width, dtype).d_input(width, dtype);
  return maker;
}

TEST(NormTwins, LayerNormBackward) {
  for (const Shape& shape : shapes) {
    if (shape.back() == 1) continue;  // without variance 1/σ is 1/√ε: 300 times each error
    for (const DType dtype : data_dtypes)
      for (const bool has_statistics : {true, false})
        expect_twins(layer_norm_gradient(shape, dtype, has_statistics).finish(256),
                     cpu::layer_norm_backward, cuda::layer_norm_backward);
  }
}

// AMP: what autocast leaves in fp32 beside activations of 16 bits.
TEST(NormTwins, BackwardOfMixedDtypes) {
  for (const Shape& shape : {Shape{9, 264}, Shape{3, 2400}, Shape{2, 4104}})
    for (const DType x_dtype : {DType::Float32, DType::BFloat16}) {
      const Shape width{shape.back()};
      CallMaker maker;
      maker.input(shape, x_dtype).input(width).absent_input(width).absent_output(shape);
      maker.absent_output(rows_of(shape)).absent_output(rows_of(shape));
      maker.d_output(shape, DType::BFloat16).d_input(shape, DType::BFloat16);
      maker.d_input(width).d_input(width);
      expect_twins(maker.finish(256), cpu::layer_norm_backward, cuda::layer_norm_backward);
    }
}

// One pass over x and dy, and two small kernels that join the blocks' sums of γ and β; else every
// gradient reads them again.
TEST(NormTwins, LayerNormBackwardReadsItsRowsOnce) {
  static std::size_t kernels = 0;
  const auto counted = [](const Call& call, cuda::Launch& launch) {
    const std::size_t before = emulation::kernels_run();
    cuda::layer_norm_backward(call, launch);
    kernels = emulation::kernels_run() - before;
  };
  expect_twins(layer_norm_gradient({5, 768}, DType::BFloat16, true).finish(256),
               cpu::layer_norm_backward, counted);
  EXPECT_EQ(kernels, 3u);
  expect_twins(layer_norm_gradient({2, 33}, DType::BFloat16, true).finish(256),
               cpu::layer_norm_backward, counted);
  EXPECT_EQ(kernels, 5u);
}

TEST(NormTwins, RmsNorm) {
  for (const Shape& shape : shapes)
    for (const DType dtype : data_dtypes) {
      const Shape width{shape.back()};
      CallMaker up;
      up.input(shape, DType::Float32).input(width, dtype).output(shape, dtype);
      up.output(rows_of(shape)).output(shape, dtype);
      expect_twins(up.finish(64), cpu::rms_norm_forward, cuda::rms_norm_forward);
      for (const bool has_rstd : {true, false}) {
        CallMaker down;
        down.input(shape, dtype).input(width, dtype).absent_output(shape, dtype);
        if (has_rstd)
          down.saved(rows_of(shape), Values(static_cast<std::size_t>(numel(rows_of(shape))), 0.75));
        else
          down.absent_output(rows_of(shape));
        down.d_output(shape, dtype).d_input(shape, dtype).d_input(width, dtype);
        expect_twins(down.finish(256), cpu::rms_norm_backward, cuda::rms_norm_backward);
      }
    }
}

TEST(NormTwins, NormsThatReadTheirOutput) {
  for (const Shape& shape : shapes)
    for (const DType dtype : data_dtypes) {
      CallMaker up;
      up.input(shape, dtype).output(shape, dtype).output(rows_of(shape));
      expect_twins(up.finish(64), cpu::ms_layer_norm_forward, cuda::ms_layer_norm_forward);
      expect_twins(up.finish(64), cpu::ms_rms_norm_forward, cuda::ms_rms_norm_forward);
      CallMaker down;
      down.absent_input(shape, dtype).saved(shape, random_values(shape, 5, 1, dtype), dtype);
      down.saved(rows_of(shape), Values(static_cast<std::size_t>(numel(rows_of(shape))), 1.5));
      down.d_output(shape, dtype).d_input(shape, dtype);
      expect_twins(down.finish(64), cpu::ms_layer_norm_backward, cuda::ms_layer_norm_backward);
      expect_twins(down.finish(64), cpu::ms_rms_norm_backward, cuda::ms_rms_norm_backward);
    }
}

TEST(NormTwins, NotANumberSpoilsItsRowOnly) {
  Values x = random_values({4, 33}, 1);
  x[40] = std::nan("");
  x[70] = std::numeric_limits<double>::infinity();
  CallMaker maker;
  maker.input_of({4, 33}, x, DType::Float32).input({33}).input({33});
  maker.output({4, 33}).output({4, 1}).output({4, 1});
  expect_twins(maker.finish(64), cpu::layer_norm_forward, cuda::layer_norm_forward);
}

TEST(NormTwins, AbsentGradientsAreZero) {
  CallMaker maker;
  maker.input({4, 33}).input({33}).absent_input({33}).absent_output({4, 33});
  maker.saved({4, 1}, Values(4, 0)).saved({4, 1}, Values(4, 1)).absent_d_output({4, 33});
  maker.d_input({4, 33}).d_input({33}).d_input({33});
  expect_twins(maker.finish(0), cpu::layer_norm_backward, cuda::layer_norm_backward);
}

TEST(NormTwins, SavedInEightBits) {
  for (const DType dtype : data_dtypes)
    for (const std::int64_t groups : {3, 11}) {
      const Shape shape{2, 3, 264}, width{264}, rows{2, 3, 1};
      CallMaker layer, rms, ms;
      layer.coded_input(shape, groups, 2).input(width, dtype).absent_input(width, dtype);
      layer.absent_output(shape, dtype).saved(rows, Values(6, 0.5)).saved(rows, Values(6, 0.75));
      layer.d_output(shape, dtype).d_input(shape, dtype);
      layer.d_input(width, dtype).d_input(width, dtype);
      expect_twins(layer.finish(256), cpu::layer_norm_backward, cuda::layer_norm_backward);
      rms.coded_input(shape, groups, 2).input(width, dtype);
      rms.absent_output(shape, dtype).absent_output(rows);  // 1/σ is found from the codes
      rms.d_output(shape, dtype).d_input(shape, dtype).d_input(width, dtype);
      expect_twins(rms.finish(256), cpu::rms_norm_backward, cuda::rms_norm_backward);
      ms.absent_input(shape, dtype).coded_saved(shape, groups, 2).saved(rows, Values(6, 0.75));
      ms.d_output(shape, dtype).d_input(shape, dtype);
      expect_twins(ms.finish(64), cpu::ms_layer_norm_backward, cuda::ms_layer_norm_backward);
    }
}

TEST(NormTwins, MinMaxAreNotedAndCodesWrittenInPassing) {
  for (const DType dtype : data_dtypes)
    for (const Shape& shape : {Shape{2, 3, 264}, Shape{2, 2400}}) {
      const Shape width{shape.back()};
      const auto axis = static_cast<std::int64_t>(shape.rank()) - 1;
      CallMaker layer, rms, ms;
      layer.input(shape, dtype).input(width, dtype).input(width, dtype);
      layer.output(shape, dtype)
          .coded_in_passing(3, axis)
          .output(rows_of(shape))
          .output(rows_of(shape));
      expect_twins(layer.finish(64), cpu::layer_norm_forward, cuda::layer_norm_forward);
      rms.input(shape, dtype).input(width, dtype);
      rms.output(shape, dtype).coded_in_passing(24, axis).output(rows_of(shape));
      expect_twins(rms.finish(64), cpu::rms_norm_forward, cuda::rms_norm_forward);
      ms.input(shape, dtype).output(shape, dtype).coded_in_passing(1, axis).output(rows_of(shape));
      expect_twins(ms.finish(64), cpu::ms_layer_norm_forward, cuda::ms_layer_norm_forward);
    }
}

}  // namespace
}  // namespace tidemark::norm_test
