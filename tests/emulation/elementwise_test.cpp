// The elementwise CUDA kernels, emulated, against their CPU twins.
#include "kernels/elementwise/elementwise.cu"

#include "kernels/accumulate/accumulate.cu"
#include "kernels/cuda/common_launches.cu"
#include "tests/emulation/twin.h"

namespace tidemark::elementwise_test {
namespace {

const std::array awkward = {Shape{1},       Shape{31},       Shape{33},
                            Shape{3, 1023}, Shape{2, 3, 33}, Shape{2, 3, 5, 8}};

TEST(ElementwiseTwins, AddOfEqualShapes) {
  for (const Shape& shape : awkward)
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies) {
        CallMaker maker;
        maker.input(shape, dtype, lie).input(shape, dtype).output(shape, dtype, lie);
        expect_twins(maker.finish(), cpu::add_forward, cuda::add_forward);
      }
}

// In one piece, with an even end, and of more vectors than one round of a block takes; in place.
TEST(ElementwiseTwins, DenseArraysOfManyVectors) {
  const Shape shape{11, 1024};
  for (const DType dtype : data_dtypes) {
    CallMaker maker;
    maker.input(shape, dtype).input(shape, dtype).output(shape, dtype);
    expect_twins(maker.finish(), cpu::add_forward, cuda::add_forward);
    TwinCase in_place = maker.finish();
    in_place.bind = [](std::vector<TestArray>& memory) {
      Call call;
      call.inputs = {memory[0].array(), memory[1].array()}, call.outputs = {memory[0].array()};
      return call;
    };
    expect_twins(in_place, cpu::accumulate, cuda::accumulate);
    CallMaker one;
    one.input(shape, dtype).output(shape, dtype);
    expect_twins(one.finish(0), cpu::cast_forward, cuda::cast_forward);
    expect_twins(one.finish(0), cpu::accumulate, cuda::accumulate);
  }
}

TEST(ElementwiseTwins, MixedDtypesAndBroadcasting) {
  const std::array<std::pair<Shape, Shape>, 4> pairs = {{{{4, 7, 33}, {33}},
                                                         {{4, 7, 33}, {4, 1, 33}},
                                                         {{4, 7, 33}, {1, 7, 1}},
                                                         {{2, 3, 5, 8}, {5, 8}}}};
  for (const auto& [large, small] : pairs)
    for (const DType dtype : data_dtypes) {
      CallMaker add;
      add.input(large, DType::Float32).input(small, dtype).output(large, DType::Float32);
      expect_twins(add.finish(), cpu::add_forward, cuda::add_forward);
      CallMaker mul;
      mul.input(large, dtype).input(small, DType::Float32).output(large, dtype);
      expect_twins(mul.finish(), cpu::mul_forward, cuda::mul_forward);
      CallMaker back;
      back.input(large, dtype).input(small, dtype).absent_output(large, dtype);
      back.d_output(large, dtype).d_input(large, dtype).d_input(small, dtype);
      expect_twins(back.finish(64), cpu::mul_backward, cuda::mul_backward);
      CallMaker sum;
      sum.absent_input(large, dtype).absent_input(small, dtype).absent_output(large, dtype);
      sum.d_output(large, dtype).d_input(large, dtype).d_input(small, dtype);
      expect_twins(sum.finish(64), cpu::add_backward, cuda::add_backward);
    }
}

// Enough rows for several parts, whose sums a second kernel joins.
TEST(ElementwiseTwins, LongSumsAreCutIntoParts) {
  for (const DType dtype : {DType::Float32, DType::BFloat16}) {
    CallMaker columns;
    columns.absent_input({4099, 24}, dtype).absent_input({24}, dtype);
    columns.absent_output({4099, 24}, dtype).d_output({4099, 24}, dtype);
    columns.absent_d_input().d_input({24}, dtype);
    expect_twins(columns.finish(2000), cpu::add_backward, cuda::add_backward);
    CallMaker rows;
    rows.absent_input({3, 20011}, dtype).absent_input({3, 1}, dtype);
    rows.absent_output({3, 20011}, dtype).d_output({3, 20011}, dtype);
    rows.absent_d_input().d_input({3, 1}, dtype);
    expect_twins(rows.finish(4000), cpu::add_backward, cuda::add_backward);
  }
}

// Of any dtypes it goes element by element, where others go in vectors.
TEST(ElementwiseTwins, AnAverageOfMixedDtypes) {
  CallMaker average;
  average.input({40, 64}, DType::BFloat16).input({40, 64}).input({40, 64}, DType::Float16);
  average.output({40, 64}, DType::BFloat16);
  expect_twins(average.finish(), cpu::average_forward, cuda::average_forward);
}

TEST(ElementwiseTwins, ScaleAverageAndCast) {
  for (const DType dtype : data_dtypes) {
    CallMaker scale;
    scale.call.settings.factor = 0.125;
    scale.input({5, 33}, dtype).output({5, 33}, dtype).output({}, DType::Float64);
    expect_twins(scale.finish(), cpu::scale_forward, cuda::scale_forward);
    CallMaker average;
    average.input({5, 33}, dtype).input({5, 33}, dtype, Lie::Reversed).input({5, 33}, dtype);
    average.output({5, 33}, dtype);
    expect_twins(average.finish(), cpu::average_forward, cuda::average_forward);
    CallMaker spread;
    spread.absent_input({5, 33}, dtype).absent_input({5, 33}, dtype).absent_output({5, 33}, dtype);
    spread.d_output({5, 33}, dtype).d_input({5, 33}, dtype).d_input({5, 33}, dtype, Lie::Padded);
    expect_twins(spread.finish(), cpu::average_backward, cuda::average_backward);
    for (const DType to : data_dtypes) {
      CallMaker cast;
      cast.input({5, 33}, dtype, Lie::Padded, 100).output({5, 33}, to);
      expect_twins(cast.finish(0), cpu::cast_forward, cuda::cast_forward);
    }
    CallMaker to_mask;
    to_mask.input({5, 33}, dtype, Lie::Padded).output({5, 33}, DType::Bool);
    expect_twins(to_mask.finish(0), cpu::cast_forward, cuda::cast_forward);
    CallMaker from_mask;
    from_mask.input({5, 33}, DType::Bool, Lie::Reversed).output({5, 33}, dtype);
    expect_twins(from_mask.finish(0), cpu::cast_forward, cuda::cast_forward);
  }
}

TEST(ElementwiseTwins, AbsentGradientsAreZeroAndUnwantedOnesAreLeft) {
  CallMaker maker;
  maker.input({4, 9}).input({9}).absent_output({4, 9}).absent_d_output({4, 9});
  maker.d_input({4, 9}).d_input({9});
  expect_twins(maker.finish(0), cpu::mul_backward, cuda::mul_backward);
  expect_twins(maker.finish(0), cpu::add_backward, cuda::add_backward);
}

TEST(ElementwiseTwins, NotANumberAndInfinityPassThrough) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const DType dtype : data_dtypes) {
    CallMaker maker;
    maker.input_of({8}, {infinity, -infinity, nan, 1, infinity, 0, -0.0, 70000}, dtype);
    maker.input_of({8}, {1, infinity, 2, nan, -infinity, infinity, 0, 1}, dtype);
    maker.output({8}, dtype);
    expect_twins(maker.finish(), cpu::add_forward, cuda::add_forward);
    expect_twins(maker.finish(), cpu::mul_forward, cuda::mul_forward);
  }
}

TEST(AccumulateTwins, SumsInPlaceAndOverLongerInputs) {
  for (const DType dtype : data_dtypes) {
    CallMaker alone;
    alone.input({6, 4, 33}, DType::Float32).output({4, 33}, dtype);
    expect_twins(alone.finish(16), cpu::accumulate, cuda::accumulate);
    CallMaker three;
    three.input({4, 33}, dtype).input({4, 33}, dtype).input({1, 33}, dtype);
    three.output({4, 33}, dtype);
    expect_twins(three.finish(16), cpu::accumulate, cuda::accumulate);
    CallMaker maker;
    maker.input({4, 33}, dtype).input({6, 4, 33}, dtype).output({4, 33}, dtype);
    expect_twins(maker.finish(16), cpu::accumulate, cuda::accumulate);
    TwinCase in_place = maker.finish(16);
    in_place.bind = [](std::vector<TestArray>& memory) {
      Call call;
      call.inputs = {memory[0].array(), memory[1].array()}, call.outputs = {memory[0].array()};
      return call;
    };
    expect_twins(in_place, cpu::accumulate, cuda::accumulate);
    in_place.bind = [](std::vector<TestArray>& memory) {
      Call call;
      call.inputs = {memory[0].array(), memory[0].array()}, call.outputs = {memory[0].array()};
      return call;
    };
    expect_twins(in_place, cpu::accumulate, cuda::accumulate);
  }
}

TEST(AccumulateTwins, FillAndSubtract) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies) {
      CallMaker fill;
      fill.output({3, 4, 33}, dtype, lie);
      expect_twins(fill.finish(0), cpu::fill, cuda::fill);
      CallMaker subtract;
      subtract.input({3, 4, 33}, dtype, lie).input({3, 4, 33}, dtype, lie);
      subtract.output({3, 4, 33}, dtype, lie);
      expect_twins(subtract.finish(), cpu::subtract, cuda::subtract);
    }
}

TEST(ElementwiseTwins, ProductsSavedInEightBits) {
  for (const DType dtype : data_dtypes) {
    const Shape shape{4, 48};
    CallMaker maker;
    maker.coded_input(shape, 2, 1).coded_input(shape, 16, 1).absent_output(shape, dtype);
    maker.d_output(shape, dtype).d_input(shape, dtype).d_input(shape, dtype);
    expect_twins(maker.finish(8), cpu::mul_backward, cuda::mul_backward);
  }
}

TEST(ElementwiseTwins, CodesAreWrittenInPassing) {
  for (const DType dtype : data_dtypes)
    for (const std::int64_t width : {48, 33}) {
      const Shape shape{4, 9, width};
      CallMaker add, mul;
      add.input(shape, dtype).input({width}, dtype).output(shape, dtype).coded_in_passing(3, 2);
      expect_twins(add.finish(8), cpu::add_forward, cuda::add_forward);
      mul.input(shape, dtype).input(shape).output(shape, dtype).coded_in_passing(9, 1);
      expect_twins(mul.finish(8), cpu::mul_forward, cuda::mul_forward);
    }
}

TEST(ElementwiseTwins, MinMaxAreNoted) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies) {
      const Shape shape{4, 9, 48};
      CallMaker add, mul, scale;
      add.input(shape, dtype, lie).input({48}, dtype).output(shape, dtype, lie).watched(2, 2);
      expect_twins(add.finish(8), cpu::add_forward, cuda::add_forward);
      mul.input(shape, dtype, lie).input(shape).output(shape, dtype, lie).watched(16, 2);
      expect_twins(mul.finish(8), cpu::mul_forward, cuda::mul_forward);
      scale.call.settings.factor = 0.3;
      scale.input(shape, dtype, lie).output(shape, dtype, lie).watched(3, 2);
      expect_twins(scale.finish(8), cpu::scale_forward, cuda::scale_forward);
    }
}

}  // namespace
}  // namespace tidemark::elementwise_test
