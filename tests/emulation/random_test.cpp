// CUDA kernels that draw random numbers, emulated, against their CPU twins: dropout, stochastic
// depth and Mesa's 8 bits draw the same numbers, so masks and codes are equal.
#include "kernels/dropout/dropout.cu"
#include "kernels/mesa/mesa.cu"
#include "tests/emulation/twin.h"

namespace tidemark::random_test {
namespace {

const std::array awkward = {Shape{1}, Shape{31}, Shape{3, 1023}, Shape{2, 3, 33}, Shape{4, 64}};

StepState fourth_step() {
  StepState state;
  state.number = 3, state.seed = 1234567;
  return state;
}

TEST(DropoutTwins, SameMaskInEveryLayout) {
  for (const Shape& shape : awkward)
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies) {
        CallMaker up;
        up.call.settings.probability = 0.3, up.call.key = 77, up.test.state = fourth_step();
        up.input(shape, dtype, lie).output(shape, dtype).output(shape, DType::Bool, lie);
        expect_twins(up.finish(1), cpu::dropout_forward, cuda::dropout_forward);
        CallMaker down;
        down.call.settings.probability = 0.3;
        Values mask = random_values(shape, 3);
        for (double& kept : mask) kept = kept > 0 ? 1 : 0;
        down.absent_input(shape, dtype).absent_output(shape, dtype);
        down.saved(shape, mask, DType::Bool).d_output(shape, dtype, lie).d_input(shape, dtype);
        expect_twins(down.finish(1), cpu::dropout_backward, cuda::dropout_backward);
      }
}

TEST(DropoutTwins, DropsEverythingOrNothingAtTheEnds) {
  for (const double probability : {0.0, 1.0}) {
    CallMaker maker;
    maker.call.settings.probability = probability;
    maker.input({33}).output({33}).output({33}, DType::Bool);
    expect_twins(maker.finish(1), cpu::dropout_forward, cuda::dropout_forward);
  }
}

TEST(DropPathTwins, OneNumberPerSample) {
  for (const DType dtype : data_dtypes)
    for (const std::int64_t samples : {6, 3}) {
      CallMaker up;
      up.call.settings.probability = 0.4, up.call.key = 5, up.test.state = fourth_step();
      up.input({6, 5, 33}, dtype).output({6, 5, 33}, dtype).output({samples, 1, 1}, dtype);
      expect_twins(up.finish(1), cpu::drop_path_forward, cuda::drop_path_forward);
      CallMaker down;
      down.absent_input({6, 5, 33}, dtype).absent_output({6, 5, 33}, dtype);
      Values mask(static_cast<std::size_t>(samples), 2);
      mask[1] = 0;
      down.saved({samples, 1, 1}, mask, dtype);
      down.d_output({6, 5, 33}, dtype).d_input({6, 5, 33}, dtype);
      expect_twins(down.finish(1), cpu::drop_path_backward, cuda::drop_path_backward);
    }
}

/// A call whose quantizer's ranges are one more array of the case, the last one.
TwinCase with_ranges(CallMaker& maker, std::int64_t groups, std::int64_t axis, bool wraps,
                     int bits = 8) {
  Values old;
  for (std::int64_t g = 0; g < groups; ++g)
    for (const double x : {4.0, -2.0, 0.0, 0.0}) old.push_back(x);
  TwinCase test = maker.finish(0);
  test.memory.emplace_back(Shape{groups, 4}, old);
  test.state = fourth_step();
  test.bind = [bind = test.bind, groups, axis, wraps, bits](std::vector<TestArray>& memory) {
    Call call = bind(memory);
    call.key = 99;
    call.quantizer = {.groups = groups,
                      .group_axis = axis,
                      .ranges = elements<GroupRange>(memory.back().array()),
                      .wraps = wraps,
                      .bits = bits};
    return call;
  };
  return test;
}

TEST(MesaTwins, RangesAndCodesAreEqual) {
  struct Case {
    Shape shape;
    std::int64_t groups, axis;
  };
  const std::array cases = {Case{{2, 5, 64}, 4, 2}, Case{{2, 5, 33}, 3, 2},
                            Case{{2, 4, 9, 16}, 4, 1}, Case{{3, 1023}, 1, 1},
                            Case{{64, 300}, 2, 1}};
  for (const Case& c : cases)
    for (const DType dtype : data_dtypes)
      for (const Lie lie : {Lie::Dense, Lie::Swapped})
        for (const std::int64_t step : {0, 3})
          for (const int bits : {2, 4, 8}) {
            CallMaker maker;
            maker.input(c.shape, dtype, lie).output(c.shape, DType::UInt8);
            TwinCase test = with_ranges(maker, c.groups, c.axis, step != 0, bits);
            test.state.number = step;
            expect_twins(test, cpu::quantize, cuda::quantize);
          }
}

/// The same delayed, its codes written in passing or not, its extremes noted or not.
TwinCase delayed(CallMaker& maker, std::int64_t groups, std::int64_t axis, int bits) {
  TwinCase test = with_ranges(maker, groups, axis, false, bits);
  test.bind = [bind = test.bind](std::vector<TestArray>& memory) {
    Call call = bind(memory);
    call.quantizer.delayed = true;
    return call;
  };
  return test;
}

TEST(MesaTwins, DelayedRangesAndCodesAreEqual) {
  for (const auto& [shape, groups] : {std::pair{Shape{2, 5, 64}, 4},
                                      {Shape{2, 5, 33}, 3},
                                      {Shape{3, 1023}, 1},
                                      {Shape{5, 4 * 80}, 80}})
    for (const DType dtype : data_dtypes)
      for (const Lie lie : {Lie::Dense, Lie::Swapped})
        for (const std::int64_t step : {0, 3})
          for (const int bits : {4, 8}) {
            CallMaker maker;
            maker.input(shape, dtype, lie).output(shape, DType::UInt8);
            const auto axis = static_cast<std::int64_t>(shape.rank()) - 1;
            TwinCase test = delayed(maker, groups, axis, bits);
            test.state.number = step;
            expect_twins(test, cpu::quantize, cuda::quantize);
          }
}

// Noted extremes move the range; where none are, it stays; and the first step forgets them.
TEST(MesaTwins, RangesMoveAlike) {
  for (const std::int64_t step : {0, 3})
    for (const bool is_noted : {true, false}) {
      CallMaker maker;
      maker.input({2, 64}, DType::BFloat16).output({2, 64}, DType::UInt8);
      TwinCase test = delayed(maker, 4, 1, 8);
      test.state.number = step;
      for (std::int64_t g = 0; is_noted && g < 4; ++g) {
        auto* const ranges = elements<GroupRange>(test.memory.back().array());
        ranges[g].least = order_key(1.5f), ranges[g].most = order_key(2.2f + static_cast<float>(g));
      }
      expect_twins(test, cpu::move_range, cuda::move_range);
    }
}

TEST(MesaTwins, ManyPartsGiveTheSameMinMax) {
  CallMaker maker;
  maker.input({40, 1024}).output({40, 1024}, DType::UInt8);
  expect_twins(with_ranges(maker, 2, 1, false), cpu::quantize, cuda::quantize);
}

TEST(MesaTwins, DequantizeIsEqual) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : {Lie::Dense, Lie::Reversed})
      for (const std::int64_t groups : {4, 1, 32})  // vectors lie in one group, or across them
        for (const int bits : {2, 4, 8}) {
          CallMaker maker;
          maker.coded_input({2, 5, 64}, groups, 2, bits).output({2, 5, 64}, dtype, lie);
          expect_twins(maker.finish(0), cpu::dequantize, cuda::dequantize);
        }
}

TEST(MesaTwins, ConstantsAndBrokenValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double odd : {1.0, std::nan(""), infinity, -infinity}) {
    Values x(64, 1);
    x[40] = odd;
    CallMaker maker;
    maker.input_of({64}, x, DType::Float32).output({64}, DType::UInt8);
    TwinCase test = with_ranges(maker, 2, 0, false);
    test.state.number = 0;
    expect_twins(test, cpu::quantize, cuda::quantize);
  }
}

}  // namespace
}  // namespace tidemark::random_test
