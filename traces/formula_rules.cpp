// One function per formula, in the words of shape_rules.cpp; dtypes, too, since kernels read bytes.
#include "traces/formula_rules.h"

#include <algorithm>

#include "base/units.h"
#include "traces/formula.h"
#include "traces/shape_rules.h"

namespace tidemark {
namespace {

using namespace operand_bits;

bool holds(Fit& f, int bit, DType dtype, std::string_view what) {
  return f.need(f.has(bit) && f.tensor(bit).dtype == dtype, f.has(bit) ? bit : out0, what);
}
bool names_places(Fit& f, int bit) { return holds(f, bit, DType::Int64, "places, of int64"); }
bool is_number(Fit& f, int bit) {
  return f.need(f.has(bit) && is_floating(f.tensor(bit).dtype), f.has(bit) ? bit : out0,
                "floating-point numbers");
}
bool in_place_of(Fit& f, int input) {
  return f.need(f.tensor(out0).storage == f.tensor(input).storage, out0,
                "a result in the place of its input");
}

// x [rows, n] → the k picked of each row, and their places; or their places alone
bool even_top_k(Fit& f) {
  const int places = f.has(out1) ? out1 : out0;
  return is_number(f, in0) && f.need(f[in0].rank() == 2, in0, "[rows, n]") &&
         f.need(f[out0].rank() == 2 && f[out0][0] == f[in0][0] && f[out0][1] <= f[in0][1], out0,
                "[rows, k] with k up to n") &&
         names_places(f, places) && (!f.has(out1) || (is_number(f, out0) && f.same(out1, f[out0])));
}

// places [..., k] → [..., k, n]
bool one_hot(Fit& f) {
  const std::size_t rank = f[in0].rank();
  return names_places(f, in0) && names_places(f, out0) &&
         f.need(f[out0].rank() == rank + 1 &&
                    std::ranges::equal(f[out0].dims().first(rank), f[in0].dims()),
                out0, "[..., n]");
}

// chosen [tokens, k, n] → (token, which of its k) of each that is 1 at the expert Offset
bool find_visits(Fit& f) {
  const std::int64_t expert = f.whole(AttributeKey::Offset, 0);
  return names_places(f, in0) && names_places(f, out0) &&
         f.need(f[in0].rank() == 3 && expert >= 0 && expert < f[in0][2], in0,
                "[tokens, k, n] with the offset below n") &&
         f.need(f[out0].rank() == 2 && f[out0][1] == 2, out0, "[visits, 2]");
}

bool is_list_of_rows(Fit& f, int bit) {
  return names_places(f, bit) &&
         f.need(f[bit].rank() == 1 || (f[bit].rank() == 2 && f[bit][1] == 2), bit,
                "[places] or [places, 2]");
}

// x [n, width], places → [places, width]
bool index_rows(Fit& f) {
  return is_number(f, in0) && f.need(f[in0].rank() == 2, in0, "[n, width]") && f.has(in1) &&
         is_list_of_rows(f, in1) && is_number(f, out0) && f.same(out0, {f[in1][0], f[in0][1]});
}

// x [n, k], places [visits, 2] → [visits, 1]
bool index_pairs(Fit& f) {
  return is_number(f, in0) && f.need(f[in0].rank() == 2, in0, "[n, k]") && f.has(in1) &&
         is_list_of_rows(f, in1) && f.need(f[in1].rank() == 2, in1, "[visits, 2]") &&
         is_number(f, out0) && f.same(out0, {f[in1][0], 1});
}

// sum [n, width], places, y [places, width] → sum, in its place
bool index_add(Fit& f) {
  return is_number(f, in0) && f.need(f[in0].rank() == 2, in0, "[n, width]") && f.has(in2) &&
         is_list_of_rows(f, in1) && is_number(f, in2) && f.same(in2, {f[in1][0], f[in0][1]}) &&
         f.same(out0, f[in0]) && in_place_of(f, in0);
}

// x, places → what stands there along Axis; other axes of x may repeat
bool gather(Fit& f) {
  const std::int64_t axis = f.whole(AttributeKey::Axis, 0);
  if (!is_number(f, in0) || !names_places(f, in1) || !f.same(out0, f[in1])) return false;
  const Shape &x = f[in0], &places = f[in1];
  bool fits = x.rank() == places.rank() && axis >= 0 && static_cast<std::size_t>(axis) < x.rank();
  for (std::size_t i = 0; fits && i < x.rank(); ++i)
    fits = static_cast<std::int64_t>(i) == axis || x[i] == places[i];
  return f.need(fits, in1, "places along one axis") && is_number(f, out0);
}

bool zeros(Fit& f) { return is_number(f, out0); }

// x → summed over the axis that y lacks, which Axis names, or where y is shorter
bool sum(Fit& f) {
  if (!is_number(f, in0) || !is_number(f, out0)) return false;
  const Shape &x = f[in0], &y = f[out0];
  bool fits = y.rank() == 0 || y.rank() == x.rank();
  for (std::size_t i = 0; fits && i < y.rank(); ++i) fits = y[i] == x[i] || y[i] == 1;
  const std::int64_t axis = f.whole(AttributeKey::Axis, 0);
  if (!fits && y.rank() + 1 == x.rank() && axis >= 0 && static_cast<std::size_t>(axis) < x.rank()) {
    fits = true;
    for (std::size_t i = 0; i < y.rank(); ++i)
      fits = fits && y[i] == x[i < static_cast<std::size_t>(axis) ? i : i + 1];
  }
  return f.need(fits, out0, "the input without one axis, or with shorter ones");
}

// a, b that broadcasts over it → of a's shape
bool quotient(Fit& f) {
  return is_number(f, in0) && is_number(f, in1) && is_number(f, out0) && f.same(out0, f[in0]) &&
         f.need(spreads_over(f[in1].dims(), f[in0].dims()), in1, "what spreads over in0");
}
bool difference(Fit& f) {
  return f.has(in1) ? quotient(f) : is_number(f, in0) && is_number(f, out0) && f.same(out0, f[in0]);
}

// Of a stored weight: so many elements of a dtype, in any shape.
bool holds(Fit& f, int bit, DType dtype, std::int64_t count, std::string_view what) {
  return f.require(f.has(bit), "it lacks a part of its weight") &&
         f.need(f.tensor(bit).dtype == dtype && numel(f[bit]) == count, bit, what);
}

bool is_linear(Fit& f, std::size_t bias) {
  const std::int64_t out = f[out0].rank() > 0 ? f[out0].back() : 0;
  const bool has_bias = f.op().inputs > bias;
  return f.has_rows(in0) && f.has_rows(out0) && f.same(out0, f[in0].with_back(out)) &&
         is_number(f, in0) && is_number(f, out0) &&
         f.need(f[in0].back() <= (std::int64_t{1} << 57) / std::max<std::int64_t>(out, 1), in0,
                "a weight that can be counted") &&
         (!has_bias ||
          (is_number(f, static_cast<int>(bias)) && f.same(static_cast<int>(bias), {out})));
}

// x, codes, factors, numbers (and of coded factors theirs and their numbers), bias → y
bool nf4_linear(Fit& f) {
  const bool nests = f.has(in2) && f.tensor(in2).dtype == DType::UInt8;
  if (!f.has_rows(in0) || !f.has_rows(out0) || !is_linear(f, nests ? 6 : 4)) return false;
  const std::int64_t count = f[in0].back() * f[out0].back(), factors = ceil_div(count, 64);
  constexpr int in4 = 4, in5 = 5;
  return holds(f, in1, DType::UInt8, ceil_div(count, 2), "two codes to a byte") &&
         holds(f, in2, nests ? DType::UInt8 : DType::Float32, factors, "a factor per 64") &&
         holds(f, in3, DType::Float32, 16, "16 numbers") &&
         (!nests || (holds(f, in4, DType::Float32, ceil_div(factors, 256), "a factor per 256") &&
                     holds(f, in5, DType::Float32, 256, "256 numbers")));
}

// x, codes [out, in], factors [out], bias → y
bool int8_linear(Fit& f) {
  if (!is_linear(f, 3)) return false;
  const std::int64_t in = f[in0].back(), out = f[out0].back();
  return holds(f, in1, DType::UInt8, in * out, "a code per element") &&
         holds(f, in2, DType::Float32, out, "a factor per row");
}

bool is_square_of_whole(std::int64_t n) {
  std::int64_t side = 0;
  while (side * side < n && side < (std::int64_t{1} << 20)) ++side;
  return side * side == n;
}

// planes [n, c, h, w], or squares of tokens [n, h·h, c] → the same of another size
bool resampled(Fit& f) {
  const Shape &x = f[in0], &y = f[out0];
  const bool are_planes = x.rank() == 4 && y.rank() == 4 && x[0] == y[0] && x[1] == y[1];
  const bool are_squares = x.rank() == 3 && y.rank() == 3 && x[0] == y[0] && x[2] == y[2] &&
                           is_square_of_whole(x[1]) && is_square_of_whole(y[1]);
  return is_number(f, in0) && is_number(f, out0) &&
         f.need(are_planes || are_squares, out0, "planes, or squares of tokens");
}

bool pairs(Fit& f) {
  return is_number(f, in0) && is_number(f, out0) && f.has_rows(in0) && f.same(out0, f[in0]) &&
         f.need(f[in0].back() % 2 == 0, in0, "an even width");
}

// x [..., d], a table of waves [tokens, d]
bool turned_pairs(Fit& f) {
  return pairs(f) && is_number(f, in1) &&
         f.need(f[in1].rank() >= 2 && f[in1].back() == f[in0].back() &&
                    divides(numel(f[in1]), numel(f[in0])),
                in1, "a table [tokens, d]");
}

// shares [rows, n] → which are not among the groups that are picked
bool hidden_groups(Fit& f) {
  const std::int64_t groups = f.whole(AttributeKey::Groups, 1);
  const std::int64_t picks = f.whole(AttributeKey::Window, 0);
  return is_number(f, in0) && f.need(f[in0].rank() == 2, in0, "[rows, n]") &&
         f.require(divides(groups, f[in0][1]) && picks >= 1 && picks <= f[in0][1],
                   "its groups and window do not fit its shares") &&
         holds(f, out0, DType::Bool, "a mask, of bool") && f.same(out0, f[in0]);
}

// x, mask that spreads over it → of x's shape
bool masked_fill(Fit& f) {
  return is_number(f, in0) && is_number(f, out0) && f.same(out0, f[in0]) &&
         holds(f, in1, DType::Bool, "a mask, of bool") &&
         f.need(spreads_over(f[in1].dims(), f[in0].dims()) && f[in1].rank() == f[in0].rank(), in1,
                "what spreads over in0");
}

// x [rows, n], or anything as one row → places, and the elements in order
bool argsort(Fit& f) {
  const Shape &x = f[in0], &y = f[out0];
  const bool is_line = y.rank() == 1 && y[0] == numel(x);
  const bool is_known = f.tensor(in0).dtype == DType::Int64 || is_floating(f.tensor(in0).dtype);
  return f.need(is_known, in0, "whole or floating-point numbers") && names_places(f, out0) &&
         f.need(is_line || (y == x && x.rank() == 2), out0, "the rows, or one of all elements") &&
         (!f.has(out1) || (f.same(out1, y) && f.need(f.tensor(out1).dtype == f.tensor(in0).dtype,
                                                     out1, "of the dtype of in0")));
}

bool floor_divide(Fit& f) {
  return names_places(f, in0) && names_places(f, out0) && f.same(out0, f[in0]) &&
         f.require(f.whole(AttributeKey::Window, 0) >= 1, "its window is no divisor");
}

// pieces [m, width] → [n, width], from row Offset on
bool join_rows(Fit& f) {
  const Shape& y = f[out0];
  std::int64_t row = f.whole(AttributeKey::Offset, 0);
  if (!is_number(f, out0) || !f.need(y.rank() == 2, out0, "[n, width]")) return false;
  for (int bit = in0; bit < f.op().inputs; ++bit) {
    if (bit == in0 && f.op().inputs > 1 && f[in0] == y) {
      if (!in_place_of(f, in0)) return false;
      continue;
    }
    if (!is_number(f, bit) ||
        !f.need(f[bit].rank() == 2 && f[bit][1] == y[1] && f[bit][0] <= y[0] - row && row >= 0, bit,
                "rows that have room"))
      return false;
    row += f[bit][0];
  }
  return true;
}

// x [n, width], places [n] → [n, width]
bool put_rows(Fit& f) {
  return is_number(f, in0) && is_number(f, out0) && f.need(f[in0].rank() == 2, in0, "[n, width]") &&
         f.same(out0, f[in0]) && names_places(f, in1) && f.same(in1, {f[in0][0]});
}

// y, b that spreads over it, y's kept copy → in the place of y
bool mul_kept(Fit& f) {
  return is_number(f, in1) && is_number(f, in2) && f.same(in2, f[in0]) && f.same(out0, f[in0]) &&
         is_number(f, out0) && in_place_of(f, in0) &&
         f.need(spreads_over(f[in1].dims(), f[in0].dims()), in1, "what spreads over in0");
}

// W [out, in], A [rank, in], B [out, rank] → [out], [in, in], [in, rank], [out, in]
bool dora_norm(Fit& f) {
  const Shape &w = f[in0], &a = f[in1];
  for (const int bit : {in0, in1, in2, out0, out1, out2, out3})
    if (!is_number(f, bit)) return false;
  return f.need(w.rank() == 2, in0, "[out, in]") &&
         f.need(a.rank() == 2 && a[1] == w[1], in1, "[rank, in]") && f.same(in2, {w[0], a[0]}) &&
         f.same(out0, {w[0]}) && f.same(out1, {w[1], w[1]}) && f.same(out2, {w[1], a[0]}) &&
         f.same(out3, w);
}

// x [n, c, length], weight [o, c, k], bias [o] → [n, o, length']
bool conv1d(Fit& f) {
  const Shape &x = f[in0], &w = f[in1], &y = f[out0];
  const std::int64_t stride = f.whole(AttributeKey::Stride, 1);
  const std::int64_t padding = f.whole(AttributeKey::Padding, 0);
  return is_number(f, in0) && is_number(f, in1) && is_number(f, out0) &&
         f.need(x.rank() == 3 && x[1] > 1, in0, "[batch, channels, length] of some channels") &&
         f.need(w.rank() == 3 && w[1] == x[1], in1, "[out, channels, kernel]") &&
         (!f.has(in2) || (is_number(f, in2) && f.same(in2, {w[0]}))) &&
         f.need(stride > 0 && padding >= 0 && x[2] + 2 * padding >= w[2] &&
                    y == Shape{x[0], w[0], (x[2] + 2 * padding - w[2]) / stride + 1},
                out0, "[batch, out, (length + 2·padding − kernel) / stride + 1]");
}

// x → y, and a bit for each element
bool inverted(Fit& f) {
  return is_number(f, in0) && is_number(f, out0) && f.same(out0, f[in0]) &&
         holds(f, out1, DType::UInt8, "bits, in bytes of uint8") &&
         f.same(out1, {(numel(f[in0]) + 7) / 8});
}

struct FormulaRule {
  Formula value;
  OperandCounts inputs, outputs;
  bool (*fits)(Fit&);
};

bool anything(Fit&) { return true; }

constexpr std::array formula_rules = [] {
  using enum Formula;
  constexpr OperandCounts one{1, 1}, two{2, 2}, three{3, 3}, up_to_two{1, 2};
  constexpr OperandCounts any{1, max_operands};
  return std::array{
      FormulaRule{None, {0, max_operands}, any, anything},
      FormulaRule{EvenTopK, one, up_to_two, even_top_k},
      FormulaRule{OneHot, one, one, one_hot},
      FormulaRule{FindVisits, one, one, find_visits},
      FormulaRule{IndexPairs, two, one, index_pairs},
      FormulaRule{IndexAdd, three, one, index_add},
      FormulaRule{IndexRows, two, one, index_rows},
      FormulaRule{Gather, two, one, gather},
      FormulaRule{Zeros, {0, max_operands}, one, zeros},
      FormulaRule{Sum, one, one, sum},
      FormulaRule{Divide, two, one, quotient},
      FormulaRule{Subtract, up_to_two, one, difference},
      FormulaRule{StretchBilinear, one, one, resampled},
      FormulaRule{StretchBicubic, one, one, resampled},
      FormulaRule{AdaptiveMean, one, one, resampled},
      FormulaRule{PadOrCrop, one, one, resampled},
      FormulaRule{Nf4Linear, {4, 7}, one, nf4_linear},
      FormulaRule{Int8Linear, {3, 4}, one, int8_linear},
      FormulaRule{TurnPairs, two, one, turned_pairs},
      FormulaRule{SortPairs, one, one, pairs},
      FormulaRule{HiddenGroups, one, one, hidden_groups},
      FormulaRule{MaskedFill, two, one, masked_fill},
      FormulaRule{Argsort, one, up_to_two, argsort},
      FormulaRule{FloorDivide, one, one, floor_divide},
      FormulaRule{JoinRows, any, one, join_rows},
      FormulaRule{PutRows, two, one, put_rows},
      FormulaRule{MulKept, three, one, mul_kept},
      FormulaRule{DoraNorm, three, {4, 4}, dora_norm},
      FormulaRule{Conv1d, {2, 3}, one, conv1d},
      FormulaRule{InvertedGelu, one, two, inverted},
      FormulaRule{InvertedTanhGelu, one, two, inverted},
      FormulaRule{InvertedSilu, one, two, inverted},
  };
}();
static_assert(is_in_order(formula_rules) && formula_rules.size() == formulas.size());

}  // namespace

bool fits_formula(Fit& fit) {
  const Op& op = fit.op();
  if (index(op.opaque) >= fit.trace().opaque_rows.size()) return true;  // a defect of its own
  const Formula formula = fit.trace().opaque_rows[index(op.opaque)].computes;
  const FormulaRule& rule = formula_rules[static_cast<std::size_t>(formula)];
  const auto counts = [](std::size_t n, OperandCounts of) {
    return n >= of.fewest && n <= of.most;
  };
  if (!fit.require(counts(op.inputs, rule.inputs) && counts(op.outputs, rule.outputs),
                   "it computes something of other operands"))
    return false;
  return rule.fits(fit);
}

}  // namespace tidemark
