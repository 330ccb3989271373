// The CUDA kernels of formulas, emulated, against their CPU twins.
#include "kernels/arithmetic/arithmetic.cu"
#include "kernels/conv1d/conv1d.cu"
#include "kernels/dora/dora.cu"
#include "kernels/lookup/lookup.cu"
#include "kernels/pairs/pairs.cu"
#include "kernels/resample/resample.cu"
#include "kernels/routing/routing.cu"
#include "kernels/sorting/sorting.cu"
#include "tests/emulation/twin.h"

namespace tidemark::formula_test {
namespace {

Values wholes_below(const Shape& shape, std::int64_t end, unsigned seed) {
  std::mt19937 random(seed);
  Values values(static_cast<std::size_t>(numel(shape)));
  for (double& x : values) x = static_cast<double>(random() % static_cast<unsigned>(end));
  return values;
}

/// Numbers below `end`, none twice.
Values different(std::int64_t count, std::int64_t end, unsigned seed) {
  Values all(static_cast<std::size_t>(end));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<double>(i);
  std::shuffle(all.begin(), all.end(), std::mt19937(seed));
  all.resize(static_cast<std::size_t>(count));
  return all;
}

CallMaker of(Formula formula, Pass pass = Pass::Forward) {
  CallMaker maker;
  maker.call.kind = OpKind::Opaque, maker.call.formula = formula, maker.call.pass = pass;
  return maker;
}

TEST(RoutingTwins, EvenTopK) {
  for (const std::int64_t k : {1, 2, 5})
    for (const DType dtype : data_dtypes)
      for (const Lie lie : {Lie::Dense, Lie::Padded, Lie::Reversed}) {
        CallMaker up = of(Formula::EvenTopK);
        up.input({33, 5}, dtype, lie).output({33, k}, dtype, lie).output({33, k}, DType::Int64);
        const TwinCase forward = up.finish(0);
        expect_twins(forward, cpu::even_top_k_forward, cuda::even_top_k_forward);
        const Values places = run_emulated(forward, cuda::even_top_k_forward)[2].values();
        CallMaker down = of(Formula::EvenTopK, Pass::Backward);
        down.absent_input({33, 5}, dtype).absent_output({33, k}, dtype);
        down.saved({33, k}, places, DType::Int64);
        down.d_output({33, k}, dtype).absent_d_output().d_input({33, 5}, dtype, lie);
        expect_twins(down.finish(0), cpu::even_top_k_backward, cuda::even_top_k_backward);
      }
  CallMaker only_places = of(Formula::EvenTopK);
  only_places.input({7, 4}).output({7, 3}, DType::Int64);
  expect_twins(only_places.finish(0), cpu::even_top_k_forward, cuda::even_top_k_forward);
}

TEST(RoutingTwins, OneHotAndTheVisitsOfAnExpert) {
  constexpr std::int64_t tokens = 300, k = 2, experts = 3;
  Values places(tokens * k), chosen(tokens * k * experts);
  for (std::size_t v = 0; v < places.size(); ++v) {
    places[v] = static_cast<double>(v % experts);
    chosen[v * experts + v % experts] = 1;
  }
  CallMaker hot = of(Formula::OneHot);
  hot.input_of({tokens, k}, places, DType::Int64, Lie::Padded);
  hot.output({tokens, k, experts}, DType::Int64);
  expect_twins(hot.finish(0), cpu::one_hot_forward, cuda::one_hot_forward);
  for (const Lie lie : {Lie::Dense, Lie::Reversed}) {
    CallMaker find = of(Formula::FindVisits);
    find.call.settings.offset = 1;
    find.input_of({tokens, k, experts}, chosen, DType::Int64, lie);
    find.output({tokens * k / experts, 2}, DType::Int64, lie);
    expect_twins(find.finish(0), cpu::find_visits_forward, cuda::find_visits_forward);
  }
  CallMaker narrow = of(Formula::FindVisits);
  narrow.input_of({tokens, k, experts}, chosen, DType::Int64).output({9, 2}, DType::Int64);
  EXPECT_THROW(run_emulated(narrow.finish(0), cuda::find_visits_forward), std::runtime_error);
}

TEST(RoutingTwins, PairsAndSumsInPlace) {
  for (const DType dtype : data_dtypes)
    for (const Lie lie : {Lie::Dense, Lie::Padded}) {
      const Values tokens = different(9, 12, 3);
      Values pairs;
      for (const double token : tokens) pairs.push_back(token), pairs.push_back(token > 5 ? 1 : 0);
      CallMaker up = of(Formula::IndexPairs);
      up.input({12, 2}, dtype, lie).input_of({9, 2}, pairs, DType::Int64).output({9, 1}, dtype);
      expect_twins(up.finish(0), cpu::index_pairs_forward, cuda::index_pairs_forward);
      CallMaker down = of(Formula::IndexPairs, Pass::Backward);
      down.absent_input({12, 2}, dtype).input_of({9, 2}, pairs, DType::Int64);
      down.absent_output({9, 1}, dtype).d_output({9, 1}, dtype).d_input({12, 2}, dtype, lie);
      expect_twins(down.finish(0), cpu::index_pairs_backward, cuda::index_pairs_backward);

      CallMaker add = of(Formula::IndexAdd);
      add.absent_input({12, 33}, dtype).input_of({9, 2}, pairs, DType::Int64);
      add.input({9, 33}, dtype, lie);
      add.saved({12, 33}, random_values({12, 33}, 5, 1, dtype), dtype, lie);
      expect_twins(add.finish(1), cpu::index_add_forward, cuda::index_add_forward);
      CallMaker back = of(Formula::IndexAdd, Pass::Backward);
      back.absent_input({12, 33}, dtype).input_of({9, 2}, pairs, DType::Int64);
      back.absent_input({9, 33}, dtype).absent_output({12, 33}, dtype);
      back.d_output({12, 33}, dtype).absent_d_input().absent_d_input().d_input({9, 33}, dtype, lie);
      expect_twins(back.finish(0), cpu::index_add_backward, cuda::index_add_backward);
    }
}

TEST(LookupTwins, RowsByOneOfTwoColumns) {
  for (const DType dtype : data_dtypes) {
    const Values pairs = wholes_below({9, 2}, 12, 7);
    CallMaker up = of(Formula::IndexRows);
    up.input({12, 33}, dtype).input_of({9, 2}, pairs, DType::Int64).output({9, 33}, dtype);
    expect_twins(up.finish(0), cpu::index_rows_forward, cuda::index_rows_forward);
    CallMaker down = of(Formula::IndexRows, Pass::Backward);
    down.absent_input({12, 33}, dtype).input_of({9, 2}, pairs, DType::Int64);
    down.absent_output({9, 33}, dtype).d_output({9, 33}, dtype).d_input({12, 33}, dtype);
    expect_twins(down.finish(8), cpu::index_rows_backward, cuda::index_rows_backward);
  }
}

TEST(LookupTwins, ElementsAlongAnyAxis) {
  for (const std::int64_t axis : {0, 1, 2})
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies) {
        Shape x{3, 4, 5}, y = x;
        y = axis == 0 ? Shape{7, 4, 5} : axis == 1 ? Shape{3, 7, 5} : Shape{3, 4, 7};
        const Values places = wholes_below(y, x[static_cast<std::size_t>(axis)], 5);
        CallMaker up = of(Formula::Gather);
        up.call.settings.axis = axis;
        up.input(x, dtype, lie).input_of(y, places, DType::Int64, lie).output(y, dtype);
        expect_twins(up.finish(0), cpu::gather_forward, cuda::gather_forward);
        CallMaker down = of(Formula::Gather, Pass::Backward);
        down.call.settings.axis = axis;
        down.input(x, dtype).input_of(y, places, DType::Int64).absent_output(y, dtype);
        down.d_output(y, dtype, lie).d_input(x, dtype, lie);
        expect_twins(down.finish(8), cpu::gather_backward, cuda::gather_backward);
      }
}

TEST(ArithmeticTwins, Sums) {
  struct Case {
    Shape x, y;
    std::int64_t axis;
  };
  for (const Case& c : {Case{{31, 5}, {31, 1}, 0}, Case{{4, 3, 33}, {4, 33}, 1},
                        Case{{4, 3, 33}, {4, 3}, 2}, Case{{9, 7}, {}, 0}})
    for (const DType dtype : data_dtypes)
      for (const Lie lie : {Lie::Dense, Lie::Swapped, Lie::Padded}) {
        CallMaker up = of(Formula::Sum);
        up.call.settings.axis = c.axis;
        up.input(c.x, dtype, lie).output(c.y, dtype);
        expect_twins(up.finish(16), cpu::sum_forward, cuda::sum_forward);
        CallMaker down = of(Formula::Sum, Pass::Backward);
        down.call.settings.axis = c.axis;
        down.absent_input(c.x, dtype).absent_output(c.y, dtype).d_output(c.y, dtype);
        down.d_input(c.x, dtype, lie);
        expect_twins(down.finish(0), cpu::sum_backward, cuda::sum_backward);
      }
}

TEST(ArithmeticTwins, QuotientsAndDifferences) {
  for (const Shape& b : {Shape{4, 33}, Shape{4, 1}, Shape{33}})
    for (const DType dtype : data_dtypes) {
      const Shape a{4, 33};
      Values divisors = random_values(b, 3, 1, dtype);
      for (double& x : divisors) x = x < 0 ? x - 1 : x + 1;
      for (const bool divides : {true, false}) {
        CallMaker up = of(divides ? Formula::Divide : Formula::Subtract);
        up.input(a, dtype, Lie::Padded).input_of(b, divisors, dtype).output(a, dtype);
        expect_twins(up.finish(2), divides ? cpu::divide_forward : cpu::subtract_forward,
                     divides ? cuda::divide_forward : cuda::subtract_forward);
        CallMaker down = of(up.call.formula, Pass::Backward);
        down.input(a, dtype).input_of(b, divisors, dtype).absent_output(a, dtype);
        down.d_output(a, dtype).d_input(a, dtype).d_input(b, dtype);
        expect_twins(down.finish(64), divides ? cpu::divide_backward : cpu::subtract_backward,
                     divides ? cuda::divide_backward : cuda::subtract_backward);
      }
    }
  CallMaker less = of(Formula::Subtract);
  less.input({5, 7}).output({5, 7});
  expect_twins(less.finish(1), cpu::subtract_forward, cuda::subtract_forward);
  CallMaker zeros = of(Formula::Zeros);
  zeros.absent_input({3}).output({5, 7}, DType::BFloat16, Lie::Padded);
  expect_twins(zeros.finish(0), cpu::zeros_forward, cuda::zeros_forward);
}

TEST(PairTwins, TurnedAndSorted) {
  for (const std::int64_t d : {2, 6, 64})
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies) {
        const Shape x{2, 3, 5, d};
        CallMaker turn = of(Formula::TurnPairs);
        turn.input(x, dtype, lie).input({5, d}).output(x, dtype, lie);
        expect_twins(turn.finish(), cpu::turn_pairs_forward, cuda::turn_pairs_forward);
        CallMaker back = of(Formula::TurnPairs, Pass::Backward);
        back.absent_input(x, dtype).input({5, d}).absent_output(x, dtype);
        back.d_output(x, dtype, lie).d_input(x, dtype);
        expect_twins(back.finish(), cpu::turn_pairs_backward, cuda::turn_pairs_backward);
        CallMaker sort = of(Formula::SortPairs);
        sort.input(x, dtype, lie).output(x, dtype, lie);
        expect_twins(sort.finish(0), cpu::sort_pairs_forward, cuda::sort_pairs_forward);
        CallMaker unsort = of(Formula::SortPairs, Pass::Backward);
        unsort.absent_input(x, dtype).absent_output(x, dtype).d_output(x, dtype, lie);
        unsort.d_input(x, dtype);
        expect_twins(unsort.finish(0), cpu::sort_pairs_backward, cuda::sort_pairs_backward);
      }
}

TEST(SortingTwins, GroupsAndMasks) {
  for (const std::int64_t picks : {1, 2, 5}) {
    CallMaker groups = of(Formula::HiddenGroups);
    groups.call.settings.window = picks, groups.call.settings.groups = 3;
    groups.absent_input({31, 6}).output({31, 6}, DType::Bool, Lie::Padded);
    expect_twins(groups.finish(0), cpu::hidden_groups_forward, cuda::hidden_groups_forward);
  }
  for (const Shape& mask : {Shape{2, 3, 5, 7}, Shape{2, 1, 5, 7}})
    for (const DType dtype : data_dtypes) {
      const Shape x{2, 3, 5, 7};
      CallMaker up = of(Formula::MaskedFill);
      up.call.settings.factor = -5;
      up.input(x, dtype, Lie::Swapped).input_of(mask, wholes_below(mask, 2, 3), DType::Bool);
      up.output(x, dtype);
      expect_twins(up.finish(0), cpu::masked_fill_forward, cuda::masked_fill_forward);
      CallMaker down = of(Formula::MaskedFill, Pass::Backward);
      down.absent_input(x, dtype).input_of(mask, wholes_below(mask, 2, 3), DType::Bool);
      down.absent_output(x, dtype).d_output(x, dtype).d_input(x, dtype, Lie::Swapped);
      expect_twins(down.finish(0), cpu::masked_fill_backward, cuda::masked_fill_backward);
    }
}

TEST(SortingTwins, OrdersOfRowsAndOfAll) {
  CallMaker all = of(Formula::Argsort);
  all.input_of({31, 3}, wholes_below({31, 3}, 5, 3), DType::Int64).output({93}, DType::Int64);
  expect_twins(all.finish(0), cpu::argsort_forward, cuda::argsort_forward);
  CallMaker rows = of(Formula::Argsort);
  rows.input({3, 33}, DType::BFloat16, Lie::Padded).output({3, 33}, DType::Int64);
  rows.output({3, 33}, DType::BFloat16);
  expect_twins(rows.finish(0), cpu::argsort_forward, cuda::argsort_forward);
  CallMaker places = of(Formula::Argsort);
  places.input_of({3, 33}, wholes_below({3, 33}, 9, 4), DType::Int64);
  places.output({3, 33}, DType::Int64).output({3, 33}, DType::Int64);
  expect_twins(places.finish(0), cpu::argsort_forward, cuda::argsort_forward);
  CallMaker divide = of(Formula::FloorDivide);
  divide.call.settings.window = 3;
  divide.input_of({31}, wholes_below({31}, 90, 5), DType::Int64).output({31}, DType::Int64);
  expect_twins(divide.finish(0), cpu::floor_divide_forward, cuda::floor_divide_forward);
}

TEST(SortingTwins, RowsJoinedAndPutBack) {
  for (const DType dtype : data_dtypes) {
    CallMaker join = of(Formula::JoinRows);
    join.input({2, 33}, dtype).input({5, 33}, dtype, Lie::Padded).output({7, 33}, dtype);
    expect_twins(join.finish(0), cpu::join_rows_forward, cuda::join_rows_forward);
    CallMaker apart = of(Formula::JoinRows, Pass::Backward);
    apart.absent_input({2, 33}, dtype).absent_input({5, 33}, dtype).absent_output({7, 33}, dtype);
    apart.d_output({7, 33}, dtype).d_input({2, 33}, dtype).d_input({5, 33}, dtype);
    expect_twins(apart.finish(0), cpu::join_rows_backward, cuda::join_rows_backward);
    CallMaker last = of(Formula::JoinRows, Pass::Backward);  // of which the first is no piece
    last.call.settings.offset = 4;
    last.absent_input({7, 33}, dtype).absent_input({3, 33}, dtype).absent_output({7, 33}, dtype);
    last.d_output({7, 33}, dtype).absent_d_input().d_input({3, 33}, dtype);
    expect_twins(last.finish(0), cpu::join_rows_backward, cuda::join_rows_backward);
    const Values order = different(9, 9, 3);
    CallMaker put = of(Formula::PutRows);
    put.input({9, 33}, dtype, Lie::Padded).input_of({9}, order, DType::Int64);
    put.output({9, 33}, dtype);
    expect_twins(put.finish(0), cpu::put_rows_forward, cuda::put_rows_forward);
    CallMaker take = of(Formula::PutRows, Pass::Backward);
    take.absent_input({9, 33}, dtype).input_of({9}, order, DType::Int64);
    take.absent_output({9, 33}, dtype).d_output({9, 33}, dtype).d_input({9, 33}, dtype);
    expect_twins(take.finish(0), cpu::put_rows_backward, cuda::put_rows_backward);
  }
}

TEST(SortingTwins, ProductsOfWhatWasKept) {
  const Shape x{4, 3, 33};
  CallMaker up = of(Formula::MulKept);
  up.absent_input(x).input({4, 3, 1}).input(x).output(x);
  expect_twins(up.finish(1), cpu::mul_kept_forward, cuda::mul_kept_forward);
  CallMaker down = of(Formula::MulKept, Pass::Backward);
  down.absent_input(x).input({4, 3, 1}).input(x).absent_output(x).d_output(x);
  down.d_input(x).d_input({4, 3, 1});
  expect_twins(down.finish(64), cpu::mul_kept_backward, cuda::mul_kept_backward);
}

TEST(Conv1dTwins, ForwardAndBackward) {
  struct Case {
    std::int64_t length, stride, padding;
  };
  for (const Case& c : {Case{9, 1, 1}, Case{9, 2, 1}, Case{8, 2, 1}, Case{5, 1, 0}})
    for (const DType dtype : data_dtypes) {
      const double ulps = dtype == DType::Float32 ? 64 : 2;
      const Shape x{2, 3, c.length}, w{5, 3, 3};
      const Shape y{2, 5, (c.length + 2 * c.padding - 3) / c.stride + 1};
      CallMaker up = of(Formula::Conv1d);
      up.call.settings.stride = c.stride, up.call.settings.padding = c.padding;
      up.input(x, dtype, Lie::Swapped).input(w, dtype).input({5}, dtype).output(y, dtype);
      expect_twins(up.finish(ulps), cpu::conv1d_forward, cuda::conv1d_forward);
      CallMaker down = of(Formula::Conv1d, Pass::Backward);
      down.call.settings = up.call.settings;
      down.input(x, dtype).input(w, dtype).absent_input({5}, dtype).absent_output(y, dtype);
      down.d_output(y, dtype, Lie::Padded).d_input(x, dtype, Lie::Swapped).d_input(w, dtype);
      down.d_input({5}, dtype);
      expect_twins(down.finish(ulps), cpu::conv1d_backward, cuda::conv1d_backward);
    }
}

TEST(DoraTwins, NormsOfAdaptedRows) {
  for (const DType dtype : data_dtypes) {
    CallMaker maker = of(Formula::DoraNorm);
    maker.input({7, 33}, dtype).input({2, 33}, dtype).input({7, 2}, dtype);
    maker.output({7}, dtype).output({33, 33}, dtype).output({33, 2}, dtype).output({7, 33}, dtype);
    expect_twins(maker.finish(8), cpu::dora_norm_forward, cuda::dora_norm_forward);
  }
}

TEST(ResampleTwins, LargerAndSmallerPlanes) {
  struct Case {
    std::int64_t from, to;
  };
  for (const Formula formula : {Formula::StretchBilinear, Formula::StretchBicubic,
                                Formula::AdaptiveMean, Formula::PadOrCrop})
    for (const Case& c : {Case{5, 5}, Case{4, 9}, Case{9, 4}, Case{1, 3}, Case{14, 7}})
      for (const DType dtype : data_dtypes) {
        const Shape x{2, 3, c.from, c.from + 1}, y{2, 3, c.to, c.to + 2};
        CallMaker up = of(formula);
        up.input(x, dtype, Lie::Padded).output(y, dtype, Lie::Swapped);
        expect_twins(up.finish(16), cpu::resample_forward, cuda::resample_forward);
        CallMaker down = of(formula, Pass::Backward);
        down.absent_input(x, dtype).absent_output(y, dtype).d_output(y, dtype);
        down.d_input(x, dtype, Lie::Swapped);
        expect_twins(down.finish(16), cpu::resample_backward, cuda::resample_backward);
      }
  CallMaker tokens = of(Formula::StretchBicubic);  // squares of them
  tokens.input({2, 16, 5}).output({2, 49, 5});
  expect_twins(tokens.finish(16), cpu::resample_forward, cuda::resample_forward);
}

}  // namespace
}  // namespace tidemark::formula_test
