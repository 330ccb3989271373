// One function per form of op states how the shapes of its operands go together.
#include "traces/shape_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/exchange_axis.h"
#include "traces/formula_rules.h"
#include "traces/shape_fit.h"

namespace tidemark {
namespace {

using namespace operand_bits;

Dims batch_of(const Shape& matrix) { return matrix.dims().first(matrix.rank() - 2); }

// x [..., in], weight [out, in], bias [out] → [..., out]
bool linear(Fit& f) {
  return f.has_rows(in0) &&
         f.need(f[in1].rank() == 2 && f[in1][1] == f[in0].back(), in1, "[out, in]") &&
         f.same_if_present(in2, {f[in1][0]}) && f.same(out0, f[in0].with_back(f[in1][0]));
}

// [..., m, k] × [..., k, n] → [..., m, n]
bool matmul(Fit& f) {
  const Shape &a = f[in0], &b = f[in1], &y = f[out0];
  return f.need(a.rank() >= 2, in0, "[..., m, k]") &&
         f.need(b.rank() >= 2 && b.back(1) == a.back(), in1, "[..., k, n]") &&
         f.need(y.rank() >= 2 && y.back(1) == a.back(1) && y.back() == b.back(), out0,
                "[..., m, n]") &&
         f.need(broadcasts(batch_of(a), batch_of(b), batch_of(y)), out0,
                "the batch dimensions of both inputs");
}

// x [batch, in, h, w], weight [out, in / groups, kh, kw], bias [out] → [batch, out, h', w']
bool conv2d(Fit& f) {
  constexpr std::string_view result =
      "[batch, out, height, width] with (n + 2·padding − kernel) / stride + 1 for n";
  const Shape &x = f[in0], &w = f[in1], &y = f[out0];
  const std::int64_t stride = f.whole(AttributeKey::Stride, 1);
  const std::int64_t padding = f.whole(AttributeKey::Padding, 0);
  const std::int64_t groups = f.whole(AttributeKey::Groups, 1);
  const auto fits = [&](std::size_t i) {
    const std::int64_t padded = x[i] + 2 * padding;
    return padded >= w[i] && y[i] == (padded - w[i]) / stride + 1;
  };
  return f.need(x.rank() == 4 && stride > 0 && padding >= 0 && divides(groups, x[1]), in0,
                "[batch, in, height, width], and whole stride, padding and groups") &&
         f.need(w.rank() == 4 && w[1] == x[1] / groups && divides(groups, w[0]), in1,
                "[out, in / groups, kernel, kernel]") &&
         f.same_if_present(in2, {w[0]}) &&
         f.need(y.rank() == 4 && y[0] == x[0] && y[1] == w[0] && fits(2) && fits(3), out0, result);
}

// q [batch, heads, tokens, d], k [batch, key heads, keys, d], v [batch, key heads, keys, e], bias
// → [batch, heads, tokens, e], log-sum-exp
bool flash_attention(Fit& f) {
  const Shape &q = f[in0], &k = f[in1], &v = f[in2];
  return f.need(q.rank() == 4, in0, "[batch, heads, tokens, d]") &&
         f.need(k.rank() == 4 && k[0] == q[0] && divides(k[1], q[1]) && k[3] == q[3], in1,
                "[batch, key heads, keys, d] with heads a multiple of key heads") &&
         f.need(v.rank() == 4 && v.with_back(k[3]) == k, in2, "the same heads and keys as in1") &&
         f.need(!f.has(in3) || spreads_over(f[in3].dims(), Shape{q[0], q[1], q[2], k[2]}.dims()),
                f.has(in3) ? in3 : in0, "a bias for [batch, heads, tokens, keys]") &&
         f.same(out0, q.with_back(v[3])) &&
         f.need(!f.has(out1) ||
                    (f[out1].rank() == 3 && f[out1].with_back(q[2]) == Shape{q[0], q[1], q[2]} &&
                     f[out1].back() >= q[2]),
                f.has(out1) ? out1 : out0, "[batch, heads, tokens or more]");
}

// x [..., c], γ [c], β [c] → y, and statistics with one element per row
bool norm(Fit& f) {
  if (!f.has_rows(in0)) return false;
  const Shape &x = f[in0], row = x.with_back(1);
  return f.same_if_present(in1, {x.back()}) && f.same_if_present(in2, {x.back()}) &&
         f.same(out0, x) && f.same_if_present(out1, row) && f.same_if_present(out2, row);
}

// x [..., c], γ [c] → y, 1/rms with one element per row, normalized x
bool rms_norm(Fit& f) {
  if (!f.has_rows(in0)) return false;
  const Shape& x = f[in0];
  return f.same_if_present(in1, {x.back()}) && f.same(out0, x) &&
         f.same_if_present(out1, x.with_back(1)) && f.same_if_present(out2, x);
}

bool elementwise(Fit& f) {
  for (int bit = out0; f.has(bit); ++bit)
    if (!f.same(bit, f[in0])) return false;
  return true;
}

bool with_codes(Fit& f) {
  return f.same(out0, f[in0]) &&
         f.need(f.tensor(out1).dtype == DType::UInt8 && numel(f[out1]) == (numel(f[in0]) + 3) / 4,
                out1, "uint8 with two bits per element, four to a byte,");
}

bool broadcast(Fit& f) {
  return broadcasts(f[in0].dims(), f[in1].dims(), f[out0].dims()) ||
         f.need(false, out0, fmt::format("what in1 {} broadcasts to", to_text(f[in1])));
}

bool scale(Fit& f) { return f.same(out0, f[in0]) && f.same_if_present(out1, {}); }

bool average(Fit& f) {
  for (int bit = in1; bit < out0 && f.has(bit); ++bit)
    if (!f.same(bit, f[in0])) return false;
  return f.same(out0, f[in0]);
}

bool drop_path(Fit& f) {
  return f.has_rows(in0) && f.same(out0, f[in0]) &&
         f.need(divides(numel(f[out1]), f[in0][0]), out1, "one element per sample");
}

bool rope(Fit& f) {
  const Shape &x = f[in0], &table = f[in1];
  return f.has_rows(in0) && f.has_rows(in1) &&
         f.need((table.back() == x.back() || 2 * table.back() == x.back()) &&
                    divides(numel(table) / table.back(), numel(x) / x.back()),
                in1, "a table [..., tokens, d] or [..., tokens, d/2]") &&
         f.same(in2, table) && f.same(out0, x);
}

bool view(Fit& f) { return f.need(numel(f[out0]) == numel(f[in0]), out0, "as many elements"); }

/// A copy may be one of a slice, without the view of it in between.
bool part_of(Fit& f) {
  return f.need(numel(f[out0]) <= numel(f[in0]), out0, "at most as many elements");
}

std::int64_t sum_of_elements(const Fit& f, std::span<const TensorId> ids) {
  std::int64_t sum = 0;  // below 16 · 2^57
  for (const TensorId id : ids) sum += numel(f.shape(id));
  return sum;
}

bool split(Fit& f) {
  return f.need(sum_of_elements(f, f.outputs()) == numel(f[in0]), out0,
                "outputs with as many elements together");
}

// Along one axis the inputs add up; along the others they are equal, or spread (one class token
// for the whole batch).
bool joins_along(const Fit& f, std::size_t axis) {
  const Shape& y = f[out0];
  std::int64_t sum = 0;
  for (const TensorId id : f.inputs()) {
    const Shape& x = f.shape(id);
    if (x.rank() != y.rank()) return false;
    for (std::size_t i = 0; i < y.rank(); ++i)
      if (i != axis && x[i] != y[i] && x[i] != 1) return false;
    sum += x[axis];
  }
  return sum == y[axis];
}

bool concat(Fit& f) {
  bool joins = sum_of_elements(f, f.inputs()) == numel(f[out0]);
  for (std::size_t axis = 0; !joins && axis < f[out0].rank(); ++axis) joins = joins_along(f, axis);
  return f.need(joins, out0, "the inputs joined along one axis");
}

bool repeat_heads(Fit& f) {
  const Shape &x = f[in0], &y = f[out0];
  bool repeats = x.rank() == y.rank() && x.rank() >= 2;
  for (std::size_t i = 0; repeats && i < x.rank(); ++i)
    repeats = i == 1 ? divides(x[i], y[i]) : x[i] == y[i];
  return f.need(repeats, out0, "the same shape with a multiple of the heads, dimension 1,");
}

// ids [...], table [rows, width] → [..., width]
bool embedding(Fit& f) {
  const Shape &ids = f[in0], &table = f[in1], &y = f[out0];
  return f.need(!is_floating(f.tensor(in0).dtype), in0, "indices, of an integer dtype") &&
         f.need(table.rank() == 2, in1, "a table [rows, width]") &&
         f.need(y.rank() == ids.rank() + 1 && y.back() == table.back() &&
                    std::ranges::equal(y.dims().first(ids.rank()), ids.dims()),
                out0, "a row of the table in1 per index");
}

bool mean_pool(Fit& f) {
  return f.need(divides(numel(f[out0]), numel(f[in0])), out0,
                "a number of elements that divides the input's");
}

bool max_pool(Fit& f) { return part_of(f) && (!f.has(out1) || f.same(out1, f[out0])); }

// Are the shapes equal but for one dimension, in which `whole` has that of `part` times the ranks?
bool is_part_of(const Fit& f, int part, int whole, std::int64_t ranks) {
  const Shape &small = f[part], &large = f[whole];
  if (small.rank() != large.rank()) return false;
  int cut = 0;
  for (std::size_t i = 0; i < small.rank(); ++i) {
    if (small[i] == large[i]) continue;
    if (small[i] * ranks != large[i]) return false;
    ++cut;
  }
  return cut == 1;
}

bool exchanges_parts(Fit& f, int part, int whole) {
  const Axis axis = exchange_axis(f.trace(), f.op());
  if (axis == Axis::Context && passes_keys_around(f.step()))
    return f.need(is_part_of(f, part, whole, parts_of_ring), out0,
                  "one dimension that differs by the two parts that are there of a ring");
  if (moves_visits(f.trace(), f.op()))
    return f.need(is_part_of(f, part, whole, f.step().mesh.ranks_of_expert()), out0,
                  "one dimension that differs by the ranks that cut an expert");
  return f.need(is_part_of(f, part, whole, f.step().mesh[axis]), out0,
                fmt::format("one dimension that differs by the {} ranks of the mesh",
                            axes[static_cast<std::size_t>(axis)].name));
}

bool gathers(Fit& f) { return exchanges_parts(f, in0, out0); }
bool scatters(Fit& f) { return exchanges_parts(f, out0, in0); }

bool receive(Fit& f) { return f.same(in0, {}); }
bool send(Fit& f) { return f.same(out0, {}); }

// logits [rows, part], targets [rows] → loss [], softmax [rows, part], two numbers per row
bool vocabulary_loss(Fit& f) {
  const Dims dims = f[in0].dims();
  return f.has_rows(in0) && f.same(in1, Shape(dims.first(dims.size() - 1))) &&
         f.need(!is_floating(f.tensor(in1).dtype), in1, "class numbers, of an integer dtype") &&
         f.same(out0, {}) && f.same(out1, f[in0]) && f.same(out2, f[in1]) && f.same(out3, f[in1]);
}

// log-probabilities [rows, classes], targets [rows] → loss [], total weight []
bool nll_loss(Fit& f) {
  const Dims dims = f[in0].dims();
  return f.has_rows(in0) && f.same(in1, Shape(dims.first(dims.size() - 1))) &&
         f.need(!is_floating(f.tensor(in1).dtype), in1, "class numbers, of an integer dtype") &&
         f.same(out0, {}) && f.same_if_present(out1, {});
}

// Of its shapes is known what its formula asks for.
bool opaque(Fit& f) { return fits_formula(f); }

struct ShapeRule {
  OpKind value;
  OperandCounts inputs, outputs;
  bool (*fits)(Fit&);
};

constexpr std::array shape_rules = [] {
  using enum OpKind;
  constexpr OperandCounts one{1, 1}, two{2, 2}, three{3, 3}, up_to_two{1, 2}, up_to_three{1, 3};
  constexpr OperandCounts two_or_three{2, 3}, any{1, max_operands};
  return std::array{
      ShapeRule{Linear, two_or_three, one, linear},
      ShapeRule{MatMul, two, one, matmul},
      ShapeRule{Conv2d, two_or_three, one, conv2d},
      ShapeRule{FlashAttention, {3, 4}, up_to_two, flash_attention},
      ShapeRule{LayerNorm, up_to_three, up_to_three, norm},
      ShapeRule{RmsNorm, up_to_two, up_to_three, rms_norm},
      ShapeRule{MsLayerNorm, one, up_to_two, norm},
      ShapeRule{MsRmsNorm, one, up_to_two, norm},
      ShapeRule{Gelu, one, one, elementwise},
      ShapeRule{GeluComposed, one, {4, 4}, elementwise},
      ShapeRule{Silu, one, one, elementwise},
      ShapeRule{Tanh, one, one, elementwise},
      ShapeRule{Sigmoid, one, one, elementwise},
      ShapeRule{Relu, one, one, elementwise},
      ShapeRule{ReGelu2, one, two, with_codes},
      ShapeRule{ReSilu2, one, two, with_codes},
      ShapeRule{Softmax, one, one, elementwise},
      ShapeRule{LogSoftmax, one, one, elementwise},
      ShapeRule{Add, two, one, broadcast},
      ShapeRule{Mul, two, one, broadcast},
      ShapeRule{Scale, one, up_to_two, scale},
      ShapeRule{Average, any, one, average},
      ShapeRule{Dropout, one, two, elementwise},
      ShapeRule{DropPath, one, two, drop_path},
      ShapeRule{Cast, one, one, elementwise},
      ShapeRule{Rope, three, one, rope},
      ShapeRule{View, one, one, view},
      ShapeRule{Select, one, one, part_of},
      ShapeRule{Split, one, any, split},
      ShapeRule{Copy, one, one, part_of},
      ShapeRule{Concat, any, one, concat},
      ShapeRule{RepeatHeads, one, one, repeat_heads},
      ShapeRule{Embedding, two, one, embedding},
      ShapeRule{MeanPool, one, one, mean_pool},
      ShapeRule{MaxPool, one, up_to_two, max_pool},
      ShapeRule{Replicate, one, one, elementwise},
      ShapeRule{AllReduce, one, one, elementwise},
      ShapeRule{AllGather, one, one, gathers},
      ShapeRule{ReduceScatter, one, one, scatters},
      ShapeRule{Scatter, one, one, scatters},
      ShapeRule{Receive, one, one, receive},
      ShapeRule{Send, one, one, send},
      ShapeRule{NllLoss, two, up_to_two, nll_loss},
      ShapeRule{VocabularyLoss, two, {4, 4}, vocabulary_loss},
      ShapeRule{Opaque, {0, max_operands}, any, opaque},
  };
}();
static_assert(is_in_order(shape_rules) && shape_rules.size() == op_rows.size());

std::string count_defect(std::string_view what, std::size_t found, OperandCounts need) {
  if (found >= need.fewest && found <= need.most) return {};
  return need.fewest == need.most
             ? fmt::format("found {} {}; need {}", found, what, need.fewest)
             : fmt::format("found {} {}; need {} to {}", found, what, need.fewest, need.most);
}

const ShapeRule& rule_of(OpKind kind) { return shape_rules[static_cast<std::size_t>(kind)]; }

}  // namespace

OperandCounts input_counts(OpKind kind) { return rule_of(kind).inputs; }
OperandCounts output_counts(OpKind kind) { return rule_of(kind).outputs; }

std::string operand_label(int bit) {
  return bit < out0 ? fmt::format("in{}", bit) : fmt::format("out{}", bit - out0);
}

std::string shape_defect(const Trace& trace, const Op& op) {
  const ShapeRule& rule = rule_of(op.kind);
  if (std::string defect = count_defect("inputs", op.inputs, rule.inputs); !defect.empty())
    return defect;
  if (std::string defect = count_defect("outputs", op.outputs, rule.outputs); !defect.empty())
    return defect;
  Fit fit(trace, op);
  rule.fits(fit);
  return fit.defect();
}

}  // namespace tidemark
