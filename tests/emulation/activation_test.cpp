// The CUDA activations, emulated, against their CPU twins.
#include "kernels/activation/activation.cu"

#include "tests/emulation/twin.h"

namespace tidemark::activation_test {
namespace {

struct Pair {
  CpuKernel cpu_forward, cpu_backward;
  CudaKernel cuda_forward, cuda_backward;
};
const std::array plain = {
    Pair{cpu::gelu_forward, cpu::gelu_backward, cuda::gelu_forward, cuda::gelu_backward},
    Pair{cpu::silu_forward, cpu::silu_backward, cuda::silu_forward, cuda::silu_backward}};
const std::array coded = {Pair{cpu::regelu2_forward, cpu::regelu2_backward, cuda::regelu2_forward,
                               cuda::regelu2_backward},
                          Pair{cpu::resilu2_forward, cpu::resilu2_backward, cuda::resilu2_forward,
                               cuda::resilu2_backward}};
// The last one is of whole vectors, and more than the threads of a block have at once.
const std::array awkward = {Shape{1},    Shape{5},     Shape{31},     Shape{33},
                            Shape{1023}, Shape{3, 33}, Shape{4, 1032}};

TEST(ActivationTwins, GeluAndSilu) {
  for (const Pair& pair : plain)
    for (const Shape& shape : awkward)
      for (const DType dtype : data_dtypes)
        for (const bool tanh_approx : {false, true}) {
          CallMaker up;
          up.call.settings.tanh_approx = tanh_approx;
          up.input(shape, dtype, Lie::Dense, 3).output(shape, dtype, Lie::Padded);
          expect_twins(up.finish(16), pair.cpu_forward, pair.cuda_forward);
          CallMaker down;
          down.call.settings.tanh_approx = tanh_approx;
          down.input(shape, dtype, Lie::Dense, 3).absent_output(shape, dtype);
          down.d_output(shape, dtype, Lie::Reversed).d_input(shape, dtype);
          expect_twins(down.finish(32), pair.cpu_backward, pair.cuda_backward);
        }
}

TEST(ActivationTwins, TheNormalDistributionIsExactWithinRoundings) {
  for (int i = -14 * 64; i <= 14 * 64; ++i) {
    const float x = static_cast<float>(i) / 64;
    const double exact = 0.5 * std::erfc(-static_cast<double>(x) / std::sqrt(2.0));
    const double error = std::abs(static_cast<double>(cuda::normal_cdf(x)) - exact);
    EXPECT_LE(error * std::max(1.0, std::abs(static_cast<double>(x))), 2.5e-7) << x;
  }
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(cuda::gelu_of(infinity), infinity);
  EXPECT_TRUE(std::isnan(cuda::gelu_of(-infinity)));
  EXPECT_TRUE(std::isnan(cuda::gelu_of(std::nanf(""))));
}

TEST(ActivationTwins, ThoseThatReadTheirOutputAndTheComposedGelu) {
  for (const DType dtype : data_dtypes) {
    const Shape shape{3, 33};
    CallMaker tanh;
    tanh.input(shape, dtype).output(shape, dtype);
    expect_twins(tanh.finish(), cpu::tanh_forward, cuda::tanh_forward);
    CallMaker tanh_back;
    tanh_back.absent_input(shape, dtype).saved(shape, random_values(shape, 3, 0.3, dtype), dtype);
    tanh_back.d_output(shape, dtype).d_input(shape, dtype);
    expect_twins(tanh_back.finish(), cpu::tanh_backward, cuda::tanh_backward);
    CallMaker sigmoid, relu, sigmoid_back, relu_back;
    sigmoid.input(shape, dtype).output(shape, dtype);
    expect_twins(sigmoid.finish(16), cpu::sigmoid_forward, cuda::sigmoid_forward);
    relu.input(shape, dtype).output(shape, dtype);
    expect_twins(relu.finish(), cpu::relu_forward, cuda::relu_forward);
    for (CallMaker* maker : {&sigmoid_back, &relu_back}) {
      maker->absent_input(shape, dtype).saved(shape, random_values(shape, 3, 0.3, dtype), dtype);
      maker->d_output(shape, dtype).d_input(shape, dtype);
    }
    expect_twins(sigmoid_back.finish(), cpu::sigmoid_backward, cuda::sigmoid_backward);
    expect_twins(relu_back.finish(), cpu::relu_backward, cuda::relu_backward);
    CallMaker composed;
    composed.input(shape, dtype).output(shape, dtype).output(shape, dtype);
    composed.output(shape, dtype).output(shape, dtype);
    expect_twins(composed.finish(16), cpu::gelu_composed_forward, cuda::gelu_composed_forward);
    CallMaker back;
    back.input(shape, dtype).absent_output(shape, dtype);
    for (unsigned seed : {3u, 4u, 5u})
      back.saved(shape, random_values(shape, seed, 0.5, dtype), dtype);
    back.d_output(shape, dtype).d_input(shape, dtype);
    expect_twins(back.finish(16), cpu::gelu_composed_backward, cuda::gelu_composed_backward);
  }
}

TEST(ActivationTwins, CodesOfTwoBits) {
  for (const Pair& pair : coded)
    for (const Shape& shape : awkward)
      for (const DType dtype : data_dtypes)
        for (const Lie lie : lies) {
          const Shape bytes{(numel(shape) + 3) / 4};
          CallMaker up;
          up.input(shape, dtype, lie, 4).output(shape, dtype).output(bytes, DType::UInt8);
          expect_twins(up.finish(16), pair.cpu_forward, pair.cuda_forward);
          CallMaker down;
          down.absent_input(shape, dtype).absent_output(shape, dtype);
          Values codes = random_values(bytes, 7);
          for (double& code : codes) code = std::fmod(std::abs(std::floor(code * 1e3)), 256);
          down.saved(bytes, codes, DType::UInt8);
          down.d_output(shape, dtype, lie).d_input(shape, dtype);
          expect_twins(down.finish(), pair.cpu_backward, pair.cuda_backward);
        }
}

// On a break point, and beside it, the twins agree to the bit.
TEST(ActivationTwins, BreakPointsNotANumberAndInfinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Values x = {-3.1858810036855245,
                    3.190832613414926,
                    -0.001178821281161997,
                    std::nan(""),
                    infinity,
                    -infinity,
                    -3.2,
                    0,
                    -0.0};
  CallMaker up;
  up.input_of({9}, x, DType::Float32).output({9}).output({3}, DType::UInt8);
  expect_twins(up.finish(16), cpu::regelu2_forward, cuda::regelu2_forward);
  CallMaker gelu;
  gelu.input_of({9}, x, DType::Float32).output({9});
  expect_twins(gelu.finish(16), cpu::gelu_forward, cuda::gelu_forward);
  expect_twins(gelu.finish(16), cpu::silu_forward, cuda::silu_forward);
}

TEST(ActivationTwins, AbsentGradientsAreZero) {
  CallMaker maker;
  maker.input({7}).saved({7}, Values(7, 0.5)).saved({2}, Values(2, 1), DType::UInt8);
  maker.absent_d_output({7}).d_input({7});
  const TwinCase test = maker.finish(0);
  expect_twins(test, cpu::gelu_backward, cuda::gelu_backward);
  expect_twins(test, cpu::regelu2_backward, cuda::regelu2_backward);
  expect_twins(test, cpu::tanh_backward, cuda::tanh_backward);
}

// 24 channels: groups of eight, which a vector of eight fills, and of three, which it crosses.
TEST(ActivationTwins, SavedInEightBits) {
  for (const DType dtype : data_dtypes)
    for (const std::int64_t groups : {3, 8}) {
      const Shape shape{5, 24};
      const auto check = [&](CallMaker& maker, CpuKernel on_cpu, CudaKernel on_cuda) {
        maker.d_output(shape, dtype).d_input(shape, dtype);
        expect_twins(maker.finish(16), on_cpu, on_cuda);
      };
      CallMaker gelu, silu, tanh, composed;
      gelu.coded_input(shape, groups, 1).absent_output(shape, dtype);
      check(gelu, cpu::gelu_backward, cuda::gelu_backward);
      silu.coded_input(shape, groups, 1).absent_output(shape, dtype);
      check(silu, cpu::silu_backward, cuda::silu_backward);
      tanh.absent_input(shape, dtype).coded_saved(shape, groups, 1);
      check(tanh, cpu::tanh_backward, cuda::tanh_backward);
      composed.coded_input(shape, groups, 1).absent_output(shape, dtype);
      for (int i = 0; i < 3; ++i) composed.coded_saved(shape, groups, 1);
      check(composed, cpu::gelu_composed_backward, cuda::gelu_composed_backward);
    }
}

TEST(ActivationTwins, MinMaxAreNoted) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : {Lie::Dense, Lie::Reversed})
      for (const std::int64_t groups : {3, 8}) {
        const Shape shape{50, 24};
        CallMaker gelu, silu, tanh, composed;
        gelu.input(shape, dtype, lie).output(shape, dtype, lie).watched(groups, 1);
        expect_twins(gelu.finish(16), cpu::gelu_forward, cuda::gelu_forward);
        silu.input(shape, dtype, lie).output(shape, dtype, lie).watched(groups, 1);
        expect_twins(silu.finish(16), cpu::silu_forward, cuda::silu_forward);
        tanh.input(shape, dtype, lie).output(shape, dtype, lie).watched(groups, 1);
        expect_twins(tanh.finish(16), cpu::tanh_forward, cuda::tanh_forward);
        // In 16 bits the CPU goes on with rounded numbers, as an eager framework does.
        composed.input(shape).output(shape);
        composed.output(shape, DType::Float32, lie).watched(groups, 1);
        composed.output(shape, DType::Float32, lie).watched(groups, 1).output(shape);
        expect_twins(composed.finish(16), cpu::gelu_composed_forward, cuda::gelu_composed_forward);
      }
}

TEST(ActivationTwins, CodesAreWrittenInPassing) {
  for (const DType dtype : data_dtypes)
    for (const Shape& shape : {Shape{50, 24}, Shape{7, 33}}) {
      const std::int64_t groups = shape[1] == 24 ? 8 : 3;
      CallMaker gelu, silu, composed;
      gelu.input(shape, dtype).output(shape, dtype).coded_in_passing(groups, 1);
      expect_twins(gelu.finish(16), cpu::gelu_forward, cuda::gelu_forward);
      silu.input(shape, dtype).output(shape, dtype).coded_in_passing(1, 1);
      expect_twins(silu.finish(16), cpu::silu_forward, cuda::silu_forward);
      composed.input(shape).output(shape).coded_in_passing(groups, 1);
      composed.output(shape).coded_in_passing(groups, 1).output(shape).output(shape);
      expect_twins(composed.finish(16), cpu::gelu_composed_forward, cuda::gelu_composed_forward);
    }
}

// More than meet in a block's shared memory: each thread takes its own to the device's.
TEST(ActivationTwins, MinMaxOfManyGroupsAreNoted) {
  const Shape shape{9, 4 * 80};
  CallMaker gelu;
  gelu.input(shape, DType::BFloat16).output(shape, DType::BFloat16).watched(80, 1);
  expect_twins(gelu.finish(16), cpu::gelu_forward, cuda::gelu_forward);
}

// A thread that meets one group only goes to shared memory once.
TEST(Watch, AThreadStaysInItsGroupWhereItCan) {
  const auto blocks = [](std::int64_t stretch, std::int64_t count, int vector) {
    Groups groups;
    groups.stretch = stretch, groups.count = count;
    return cuda::watching_blocks(1056, 1 << 22, vector, groups);
  };
  for (const auto& [stretch, count] : {std::pair{64, 12}, {64, 48}, {32, 3}, {128, 40}}) {
    const std::int64_t step = std::int64_t{blocks(stretch, count, 8)} * 256 * 8;
    EXPECT_EQ(step % (stretch * count), 0) << stretch << " " << count;
    EXPECT_GT(step, 1000 * 256 * 8);
  }
  EXPECT_EQ(blocks(64, 49999, 8), 1056u);  // no grid of so many is there
  EXPECT_EQ(cuda::watching_blocks(1056, 300, 8, Groups{}), 2u);
}

}  // namespace
}  // namespace tidemark::activation_test
