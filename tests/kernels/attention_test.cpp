// Fused attention against its definition in double, which makes the whole matrix of weights.
#include "kernels/attention/attention.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::attention_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Sizes {
  std::int64_t batches, heads, key_heads, tokens, keys, d, e;
  bool causal = false;
  std::int64_t window = 0;
  Shape bias{};  ///< rank 0 = none

  Shape q() const { return {batches, heads, tokens, d}; }
  Shape k() const { return {batches, key_heads, keys, d}; }
  Shape v() const { return {batches, key_heads, keys, e}; }
  Shape y() const { return {batches, heads, tokens, e}; }
  Shape lse() const { return {batches, heads, tokens}; }
  Settings settings() const { return {.causal = causal, .window = window}; }
};

std::size_t at(const Shape& shape, std::array<std::int64_t, 4> index) {
  const std::size_t missing = 4 - shape.rank();
  std::int64_t place = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    place = place * shape[axis] + index[axis + missing] % shape[axis];
  return static_cast<std::size_t>(place);
}

struct Operands {
  Values q, k, v, bias;
};

/// Weights of one row of scores, and its log-sum-exp.
struct WeightRow {
  Values weights;
  double lse;
};

WeightRow weights_of(const Operands& o, const Sizes& s, std::int64_t b, std::int64_t h,
                     std::int64_t i) {
  WeightRow row{Values(static_cast<std::size_t>(s.keys), -infinity), -infinity};
  const std::int64_t kh = h / (s.heads / s.key_heads);
  double largest = -infinity, sum = 0;
  for (std::int64_t j = 0; j < s.keys; ++j) {
    if ((s.causal && j > i) || (s.window > 0 && j <= i - s.window)) continue;
    double score = 0;
    for (std::int64_t c = 0; c < s.d; ++c)
      score += o.q[at(s.q(), {b, h, i, c})] * o.k[at(s.k(), {b, kh, j, c})];
    score /= std::sqrt(static_cast<double>(s.d));
    if (!o.bias.empty()) score += o.bias[at(s.bias, {b, h, i, j})];
    row.weights[static_cast<std::size_t>(j)] = score;
    largest = std::max(largest, score);
  }
  for (double& weight : row.weights)
    sum += weight = largest == -infinity ? 0 : std::exp(weight - largest);
  for (double& weight : row.weights) weight = sum == 0 ? 0 : weight / sum;
  row.lse = largest + std::log(sum);
  return row;
}

template <typename Body>
void for_score_rows(const Sizes& s, Body&& body) {
  for (std::int64_t b = 0; b < s.batches; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t i = 0; i < s.tokens; ++i) body(b, h, i, h / (s.heads / s.key_heads));
}

struct Result {
  Values y, lse;
};

Result attention(const Operands& o, const Sizes& s) {
  Result result{Values(static_cast<std::size_t>(numel(s.y()))), {}};
  for_score_rows(s, [&](auto b, auto h, auto i, auto kh) {
    const WeightRow row = weights_of(o, s, b, h, i);
    result.lse.push_back(row.lse);
    for (std::int64_t j = 0; j < s.keys; ++j)
      for (std::int64_t c = 0; c < s.e; ++c)
        result.y[at(s.y(), {b, h, i, c})] +=
            row.weights[static_cast<std::size_t>(j)] * o.v[at(s.v(), {b, kh, j, c})];
  });
  return result;
}

/// By the chain rule through the softmax.
Operands gradients(const Operands& o, const Values& dy, const Sizes& s) {
  Operands d{Values(o.q.size()), Values(o.k.size()), Values(o.v.size()), Values(o.bias.size())};
  const double scale = 1 / std::sqrt(static_cast<double>(s.d));
  for_score_rows(s, [&](auto b, auto h, auto i, auto kh) {
    const Values weights = weights_of(o, s, b, h, i).weights;
    Values dweights(weights.size());
    double mean = 0;
    for (std::int64_t j = 0; j < s.keys; ++j) {
      const auto n = static_cast<std::size_t>(j);
      for (std::int64_t c = 0; c < s.e; ++c) {
        const double error = dy[at(s.y(), {b, h, i, c})];
        dweights[n] += error * o.v[at(s.v(), {b, kh, j, c})];
        d.v[at(s.v(), {b, kh, j, c})] += weights[n] * error;
      }
      mean += weights[n] * dweights[n];
    }
    for (std::int64_t j = 0; j < s.keys; ++j) {
      const auto n = static_cast<std::size_t>(j);
      const double error = weights[n] * (dweights[n] - mean);
      if (!o.bias.empty()) d.bias[at(s.bias, {b, h, i, j})] += error;
      for (std::int64_t c = 0; c < s.d; ++c) {
        d.q[at(s.q(), {b, h, i, c})] += scale * error * o.k[at(s.k(), {b, kh, j, c})];
        d.k[at(s.k(), {b, kh, j, c})] += scale * error * o.q[at(s.q(), {b, h, i, c})];
      }
    }
  });
  return d;
}

/// The kernel's operands and results in memory.
struct Arrays {
  Arrays(const Sizes& sizes, DType dtype, Lie lie)
      : s(sizes),
        q(s.q(), random_values(s.q(), 1), dtype, lie),
        k(s.k(), random_values(s.k(), 2), dtype, lie),
        v(s.v(), random_values(s.v(), 3), dtype, lie),
        bias(s.bias, random_values(s.bias, 4), dtype, lie),
        dy(s.y(), random_values(s.y(), 5), dtype, lie),
        y(s.y(), dtype, lie),
        dq(s.q(), dtype, lie),
        dk(s.k(), dtype, lie),
        dv(s.v(), dtype, lie),
        dbias(s.bias, dtype, lie),
        lse(s.lse()) {}

  bool has_bias() const { return s.bias.rank() > 0; }
  std::vector<Array> inputs() {
    std::vector<Array> all = {q.array(), k.array(), v.array()};
    if (has_bias()) all.push_back(bias.array());
    return all;
  }
  std::vector<Array> gradients() {
    std::vector<Array> all = {dq.array(), dk.array(), dv.array()};
    if (has_bias()) all.push_back(dbias.array());
    return all;
  }
  Operands values() const {
    return {q.values(), k.values(), v.values(), has_bias() ? bias.values() : Values{}};
  }
  void run_forward() {
    cpu::flash_attention_forward(
        forward(OpKind::FlashAttention, inputs(), {y.array(), lse.array()}, s.settings()),
        workspace);
  }
  void run_backward(const Array& saved_lse, const std::vector<Array>& wanted) {
    cpu::flash_attention_backward(backward(OpKind::FlashAttention, inputs(), {y.array(), saved_lse},
                                           {dy.array()}, wanted, s.settings()),
                                  workspace);
  }

  Sizes s;
  cpu::Workspace workspace;
  TestArray q, k, v, bias, dy, y, dq, dk, dv, dbias, lse;
};

const std::vector<Sizes>& sizes_to_try() {
  static const std::vector<Sizes> all = {
      {1, 1, 1, 1, 1, 1, 1},
      {2, 3, 3, 31, 33, 8, 8},
      {1, 4, 2, 17, 17, 16, 16, true},      // grouped key heads
      {1, 2, 1, 33, 40, 7, 5, false},       // values of another width
      {1, 2, 2, 150, 150, 4, 4, true},      // several tiles
      {1, 2, 1, 150, 140, 4, 4, true, 20},  // tiles that nobody sees
      {1, 1, 1, 260, 257, 2, 2},
      {1, 1, 1, 9, 1023, 3, 3},
      {2, 2, 2, 12, 12, 4, 4, false, 0, {2, 2, 12, 12}},     // a bias for each score
      {2, 2, 1, 140, 135, 4, 4, true, 0, {1, 2, 140, 135}},  // summed over batches
      {4, 2, 2, 9, 10, 4, 4, false, 0, {2, 1, 9, 10}},       // windows: two masks, twice
      {2, 2, 2, 9, 300, 4, 4, false, 0, {2, 1, 1, 300}},     // one row for all
      {1, 2, 2, 9, 10, 4, 4, false, 0, {9, 1}},              // one column for all
  };
  return all;
}

class AttentionTest : public testing::TestWithParam<std::tuple<DType, Lie>> {
 protected:
  const DType dtype = std::get<0>(GetParam());
  const Lie lie = std::get<1>(GetParam());

  /// How tiles join depends neither on where they lie nor on dtypes: several of them in two lies,
  /// and once in each dtype, are enough.
  bool skips(const Sizes& s) const {
    return s.tokens > 100 && lie != Lie::Padded && (lie != Lie::Swapped || dtype != DType::Float32);
  }
};

TEST_P(AttentionTest, ForwardMatchesDouble) {
  for (const Sizes& s : sizes_to_try()) {
    if (skips(s)) continue;
    Arrays a(s, dtype, lie);
    a.run_forward();
    const Result wanted = attention(a.values(), s);
    EXPECT_LE(max_error(a.y.values(), wanted.y), epsilon_of(dtype) + 2e-6);
    EXPECT_LE(max_error(a.lse.values(), wanted.lse), 2e-6);
    EXPECT_TRUE(a.y.is_intact());
  }
}

// The saved y is rounded, so Σ dy · y carries its rounding into every error of the row.
TEST_P(AttentionTest, BackwardMatchesDouble) {
  for (const Sizes& s : sizes_to_try()) {
    if (skips(s)) continue;
    Arrays a(s, dtype, lie);
    a.run_forward();
    a.run_backward(a.lse.array(), a.gradients());
    const Operands wanted = gradients(a.values(), a.dy.values(), s);
    const double tolerance = 4 * epsilon_of(dtype) + 1e-5;
    EXPECT_LE(max_error(a.dq.values(), wanted.q), tolerance);
    EXPECT_LE(max_error(a.dk.values(), wanted.k), tolerance);
    EXPECT_LE(max_error(a.dv.values(), wanted.v), tolerance);
    if (a.has_bias()) {
      EXPECT_LE(max_error(a.dbias.values(), wanted.bias), tolerance);
    }
    EXPECT_TRUE(a.dq.is_intact() && a.dk.is_intact() && a.dv.is_intact() && a.dbias.is_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionTest,
                         testing::Combine(testing::ValuesIn(data_dtypes), testing::ValuesIn(lies)));

TEST(Attention, FormulasMatchFiniteDifferences) {
  const Sizes s{1, 2, 1, 3, 4, 2, 3, true, 3, {2, 1, 4}};
  Operands o{random_values(s.q(), 1), random_values(s.k(), 2), random_values(s.v(), 3),
             random_values(s.bias, 4)};
  const Values dy = random_values(s.y(), 5);
  const Operands d = gradients(o, dy, s);
  const auto of = [&](Values Operands::*member) {
    return numeric_gradient(
        [&, member](const Values& x) {
          Operands moved = o;
          moved.*member = x;
          return attention(moved, s).y;
        },
        o.*member, dy);
  };
  EXPECT_LE(max_error(d.q, of(&Operands::q)), 1e-8);
  EXPECT_LE(max_error(d.k, of(&Operands::k)), 1e-8);
  EXPECT_LE(max_error(d.v, of(&Operands::v)), 1e-8);
  EXPECT_LE(max_error(d.bias, of(&Operands::bias)), 1e-8);
}

TEST(Attention, ALostLogSumExpIsMadeAgain) {
  const Sizes s{1, 2, 1, 300, 300, 4, 4, true};
  Arrays with(s, DType::Float32, Lie::Dense), without(s, DType::Float32, Lie::Dense);
  with.run_forward(), without.run_forward();
  with.run_backward(with.lse.array(), with.gradients());
  without.run_backward(absent(s.lse()), without.gradients());
  EXPECT_EQ(with.dq.values(), without.dq.values());
  EXPECT_EQ(with.dk.values(), without.dk.values());
  EXPECT_EQ(with.dv.values(), without.dv.values());
}

TEST(Attention, WritesOnlyWantedGradients) {
  const Sizes s{1, 2, 2, 12, 12, 4, 4, false, 0, {1, 1, 12, 12}};
  Arrays all(s, DType::Float32, Lie::Dense);
  all.run_forward();
  all.run_backward(all.lse.array(), all.gradients());
  for (std::size_t which = 0; which < 4; ++which) {
    Arrays one(s, DType::Float32, Lie::Dense);
    one.run_forward();
    std::vector<Array> wanted = one.gradients();
    for (std::size_t k = 0; k < 4; ++k)
      if (k != which) wanted[k].data = nullptr;
    one.run_backward(one.lse.array(), wanted);
    const std::array<std::pair<TestArray*, TestArray*>, 4> pairs = {
        {{&one.dq, &all.dq}, {&one.dk, &all.dk}, {&one.dv, &all.dv}, {&one.dbias, &all.dbias}}};
    EXPECT_EQ(pairs[which].first->values(), pairs[which].second->values()) << which;
  }
}

TEST(Attention, AnAbsentErrorIsZero) {
  Arrays a({1, 1, 1, 3, 3, 2, 2}, DType::Float32, Lie::Dense);
  cpu::flash_attention_backward(
      backward(OpKind::FlashAttention, a.inputs(), {a.y.array(), a.lse.array()}, {absent(a.s.y())},
               a.gradients()),
      a.workspace);
  EXPECT_EQ(a.dq.values(), Values(6));
  EXPECT_EQ(a.dk.values(), Values(6));
  EXPECT_EQ(a.dv.values(), Values(6));
}

// The first row sees nothing; the others are as if it were not there.
TEST(Attention, ARowThatSeesNothingIsZero) {
  const Sizes s{1, 1, 1, 4, 5, 2, 2, false, 0, {4, 5}};
  Arrays a(s, DType::Float32, Lie::Dense);
  Values bias = random_values(s.bias, 4);
  std::fill_n(bias.begin(), 5, -infinity);
  a.bias.set(bias);
  a.run_forward();
  const Result wanted = attention(a.values(), s);
  EXPECT_EQ(a.y.values()[0], 0);
  EXPECT_EQ(a.lse.values()[0], -infinity);
  EXPECT_LE(max_error(a.y.values(), wanted.y), 1e-6);
  a.run_backward(a.lse.array(), a.gradients());
  const Operands d = gradients(a.values(), a.dy.values(), s);
  EXPECT_EQ(a.dq.values()[0], 0);
  EXPECT_LE(max_error(a.dq.values(), d.q), 1e-5);
  EXPECT_LE(max_error(a.dk.values(), d.k), 1e-5);
  EXPECT_LE(max_error(a.dbias.values(), d.bias), 1e-5);
}

TEST(Attention, NanAndInfinityMakeTheirRowNan) {
  for (const double poison : {std::nan(""), infinity}) {
    const Sizes s{1, 1, 1, 3, 300, 2, 2};
    Arrays a(s, DType::Float32, Lie::Dense);
    Values q = a.q.values();
    q[2] = poison;  // of row 1
    a.q.set(q);
    a.run_forward();
    const Values y = a.y.values();
    EXPECT_TRUE(std::isfinite(y[0]) && std::isfinite(y[5]));
    EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]));
    EXPECT_TRUE(std::isnan(a.lse.values()[1]));
  }
}

TEST(Attention, SurvivesLargeScores) {
  const Sizes s{1, 1, 1, 5, 300, 2, 2};
  Arrays a(s, DType::Float32, Lie::Dense);
  a.q.set(random_values(s.q(), 1, 1e3));
  a.k.set(random_values(s.k(), 2, 1e3));
  a.run_forward();
  for (const double y : a.y.values()) EXPECT_TRUE(std::isfinite(y));
  EXPECT_LE(max_error(a.lse.values(), attention(a.values(), s).lse), 1e-6);
}

// Scratch must not grow with t · s.
TEST(Attention, NeverMakesTheWholeMatrix) {
  Arrays a({1, 1, 1, 2048, 2048, 1, 1}, DType::Float32, Lie::Dense);
  a.run_forward();
  a.run_backward(a.lse.array(), a.gradients());
  EXPECT_LE(a.workspace.taken(), 1u << 20);
}

}  // namespace
}  // namespace tidemark::attention_test
