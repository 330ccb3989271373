// Norms against formulas in double and finite differences of those.
#include "kernels/norm/norm.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::norm_test {
namespace {

constexpr double epsilon = 1e-5;
constexpr Settings settings{.epsilon = epsilon};

struct Exact {
  Values y, mean, rstd, normalized;
};

// By the definition, row by row. Without γ and β: 1 and 0.
Exact exact_norm(const Values& x, std::size_t n, bool is_centered, const Values& gamma = {},
                 const Values& beta = {}) {
  Exact exact;
  for (std::size_t row = 0; row < x.size(); row += n) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < n; ++i) mean += x[row + i] / static_cast<double>(n);
    if (!is_centered) mean = 0;
    for (std::size_t i = 0; i < n; ++i)
      square += (x[row + i] - mean) * (x[row + i] - mean) / static_cast<double>(n);
    const double rstd = 1 / std::sqrt(square + epsilon);
    exact.mean.push_back(mean), exact.rstd.push_back(rstd);
    for (std::size_t i = 0; i < n; ++i) {
      exact.normalized.push_back((x[row + i] - mean) * rstd);
      exact.y.push_back(exact.normalized.back() * (gamma.empty() ? 1 : gamma[i]) +
                        (beta.empty() ? 0 : beta[i]));
    }
  }
  return exact;
}

struct Case {
  Shape shape;
  DType x_type, y_type, parameter_type;
  Lie lie;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::array mixes = {std::array{DType::Float32, DType::Float32, DType::Float32},
                            std::array{DType::Float32, DType::BFloat16, DType::Float32},
                            std::array{DType::BFloat16, DType::BFloat16, DType::BFloat16},
                            std::array{DType::Float16, DType::Float32, DType::Float16}};
  for (const Shape& shape :
       {Shape{1}, Shape{3, 31}, Shape{2, 3, 33}, Shape{2, 1023}, Shape{40, 17}})
    for (const auto& mix : mixes)
      for (const Lie lie : lies) all.push_back({shape, mix[0], mix[1], mix[2], lie});
  return all;
}

Shape row_shape(const Case& c) { return {c.shape.back()}; }
std::size_t width(const Case& c) { return static_cast<std::size_t>(c.shape.back()); }

Values random_x(const Case& c) {
  Values x = random_values(c.shape, 1, 2);
  for (double& value : x) value += 3;  // a mean that matters
  return x;
}

TEST(LayerNorm, ForwardIsTheFormula) {
  Workspace workspace;
  for (const Case& c : cases())
    for (const bool keeps_statistics : {true, false}) {
      const Shape row = row_shape(c), one = c.shape.with_back(1);
      TestArray x(c.shape, random_x(c), c.x_type, c.lie), y(c.shape, c.y_type, c.lie),
          gamma(row, random_values(row, 2), c.parameter_type),
          beta(row, random_values(row, 3), c.parameter_type), mean(one), rstd(one);
      std::vector<Array> outputs = {y.array()};
      if (keeps_statistics) outputs.insert(outputs.end(), {mean.array(), rstd.array()});
      layer_norm_forward(
          forward(OpKind::LayerNorm, {x.array(), gamma.array(), beta.array()}, outputs, settings),
          workspace);
      const Exact exact = exact_norm(x.values(), width(c), true, gamma.values(), beta.values());
      ASSERT_LE(max_error(y.values(), exact.y), epsilon_of(c.y_type) + 1e-5) << to_text(c.shape);
      ASSERT_TRUE(y.is_intact());
      if (!keeps_statistics) continue;
      ASSERT_LE(max_error(mean.values(), exact.mean), 1e-6);
      ASSERT_LE(max_error(rstd.values(), exact.rstd), c.shape.back() == 1 ? 1e-4 : 1e-5);
    }
}

TEST(LayerNorm, BackwardIsTheDerivativeWithAndWithoutStatistics) {
  Workspace workspace;
  for (const Case& c : cases()) {
    if (c.shape.back() == 1) continue;  // its gradient is 0 up to what ε leaves: checked below
    const Shape row = row_shape(c), one = c.shape.with_back(1);
    TestArray x(c.shape, random_x(c), c.x_type, c.lie), y(c.shape, c.y_type),
        gamma(row, random_values(row, 2), c.parameter_type), mean(one), rstd(one),
        beta(row, Values(width(c)), c.parameter_type);
    layer_norm_forward(forward(OpKind::LayerNorm, {x.array(), gamma.array(), beta.array()},
                               {y.array(), mean.array(), rstd.array()}, settings),
                       workspace);
    TestArray dy(c.shape, random_values(c.shape, 4), c.y_type, c.lie);
    Values first;
    for (const bool keeps_statistics : {true, false}) {
      TestArray dx(c.shape, c.x_type, c.lie), d_gamma(row, c.parameter_type),
          d_beta(row, c.parameter_type);
      std::vector<Array> outputs = {absent(c.shape, c.y_type)};
      if (keeps_statistics) outputs.insert(outputs.end(), {mean.array(), rstd.array()});
      layer_norm_backward(
          backward(OpKind::LayerNorm, {x.array(), gamma.array(), absent(row)}, outputs,
                   {dy.array()}, {dx.array(), d_gamma.array(), d_beta.array()}, settings),
          workspace);
      const auto by_x = [&](const Values& at) {
        return exact_norm(at, width(c), true, gamma.values()).y;
      };
      const auto by_gamma = [&](const Values& at) {
        return exact_norm(x.values(), width(c), true, at).y;
      };
      if (numel(c.shape) < 1000) {
        ASSERT_LE(
            max_error(dx.values(), numeric_row_gradient(by_x, x.values(), dy.values(), width(c))),
            epsilon_of(c.x_type) + 1e-5);
      }
      if (numel(c.shape) < 1000) {
        ASSERT_LE(max_error(d_gamma.values(),
                            numeric_gradient(by_gamma, gamma.values(), dy.values(), 1e-2)),
                  epsilon_of(c.parameter_type) + 1e-5);
      }
      Values wanted(width(c));
      const Values given = dy.values();
      for (std::size_t i = 0; i < given.size(); ++i) wanted[i % width(c)] += given[i];
      ASSERT_LE(max_error(d_beta.values(), wanted), epsilon_of(c.parameter_type) + 1e-6);
      ASSERT_TRUE(dx.is_intact());
      if (first.empty()) first = dx.values();
      ASSERT_EQ(dx.values(), first);  // computed anew, the statistics are the same
    }
  }
}

TEST(LayerNorm, ConstantRowsAndMissingGradients) {
  Workspace workspace;
  TestArray x(Shape{2, 5}, Values(10, 7)), gamma(Shape{5}, Values(5, 2)),
      beta(Shape{5}, Values(5, -1)), y(Shape{2, 5}), dx(Shape{2, 5}), d_beta(Shape{5});
  layer_norm_forward(
      forward(OpKind::LayerNorm, {x.array(), gamma.array(), beta.array()}, {y.array()}, settings),
      workspace);
  EXPECT_EQ(y.values(), Values(10, -1));
  layer_norm_backward(
      backward(OpKind::LayerNorm, {x.array(), gamma.array(), absent({5})}, {absent({2, 5})},
               {absent({2, 5})}, {dx.array(), absent({5}), d_beta.array()}, settings),
      workspace);
  EXPECT_EQ(dx.values(), Values(10, 0));
  EXPECT_EQ(d_beta.values(), Values(5, 0));
  // dβ alone: nothing was saved
  TestArray dy(Shape{2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  layer_norm_backward(
      backward(OpKind::LayerNorm, {absent({2, 5}), absent({5}), absent({5})}, {absent({2, 5})},
               {dy.array()}, {absent({2, 5}), absent({5}), d_beta.array()}, settings),
      workspace);
  EXPECT_EQ(d_beta.values(), (Values{7, 9, 11, 13, 15}));
}

TEST(LayerNorm, NotANumberSpoilsItsRowOnly) {
  Workspace workspace;
  const double inf = std::numeric_limits<double>::infinity();
  TestArray x(Shape{3, 3}, {1, NAN, 2, 1, inf, 2, 1, 2, 3}), gamma(Shape{3}, {1, 1, 1}),
      beta(Shape{3}, {0, 0, 0}), y(Shape{3, 3});
  layer_norm_forward(
      forward(OpKind::LayerNorm, {x.array(), gamma.array(), beta.array()}, {y.array()}, settings),
      workspace);
  const double r = 1 / std::sqrt(2.0 / 3 + epsilon);
  EXPECT_LE(max_error(y.values(), {NAN, NAN, NAN, NAN, NAN, NAN, -r, 0, r}), 1e-6);
}

// Thousands of rows: the sums for γ and β keep their digits.
TEST(LayerNorm, ParameterGradientsOfManyRows) {
  Workspace workspace;
  const std::int64_t rows = 20'000;
  const Shape shape{rows, 2};
  Values values(static_cast<std::size_t>(2 * rows));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? 1 : -1;
  TestArray x(shape, values), gamma(Shape{2}, {1, 1}),
      dy(shape, Values(values.size(), static_cast<double>(1.1f))), d_gamma(Shape{2}),
      d_beta(Shape{2});
  layer_norm_backward(
      backward(OpKind::LayerNorm, {x.array(), gamma.array(), absent({2})}, {absent(shape)},
               {dy.array()}, {absent(shape), d_gamma.array(), d_beta.array()}, settings),
      workspace);
  EXPECT_LE(max_error(d_beta.values(), Values(2, static_cast<double>(1.1f) * rows)), 1e-7);
  const double each = static_cast<double>(1.1f) / std::sqrt(1 + epsilon) * rows;
  EXPECT_LE(max_error(d_gamma.values(), {each, -each}), 2e-7);
}

TEST(RmsNorm, ForwardRoundsTheNormalizedRowAsStored) {
  Workspace workspace;
  for (const Case& c : cases()) {
    const Shape row = row_shape(c), one = c.shape.with_back(1);
    TestArray x(c.shape, random_x(c), c.x_type, c.lie), gamma(row, random_values(row, 2)),
        rstd(one);
    const Exact exact = exact_norm(x.values(), width(c), false, gamma.values());
    for (const std::size_t outputs : {1u, 2u, 3u}) {
      TestArray y(c.shape, DType::Float32, c.lie), normalized(c.shape, c.y_type, c.lie);
      std::vector<Array> all = {y.array(), rstd.array(), normalized.array()};
      all.resize(outputs);
      rms_norm_forward(forward(OpKind::RmsNorm, {x.array(), gamma.array()}, all, settings),
                       workspace);
      const double rounding = outputs == 3 ? epsilon_of(c.y_type) * 2 : 0;
      ASSERT_LE(max_error(y.values(), exact.y), rounding * 4 + 1e-5);
      ASSERT_TRUE(y.is_intact());
      if (outputs < 3) continue;
      ASSERT_LE(max_error(normalized.values(), exact.normalized), rounding + 1e-5);
      ASSERT_LE(max_error(rstd.values(), exact.rstd), 1e-5);
      const Values z = normalized.values(), g = gamma.values(), got = y.values();
      for (std::size_t i = 0; i < z.size(); ++i)
        ASSERT_NEAR(got[i], z[i] * g[i % width(c)], 1e-6 * std::abs(got[i]));
      // An absent output still says where y is rounded: a second forward gives the same bits.
      TestArray again(c.shape, DType::Float32, c.lie);
      rms_norm_forward(forward(OpKind::RmsNorm, {x.array(), gamma.array()},
                               {again.array(), absent(one), absent(c.shape, c.y_type)}, settings),
                       workspace);
      ASSERT_EQ(again.values(), y.values());
    }
  }
}

TEST(RmsNorm, BackwardIsTheDerivative) {
  Workspace workspace;
  for (const Case& c : cases()) {
    if (numel(c.shape) > 1000) continue;
    const Shape row = row_shape(c), one = c.shape.with_back(1);
    for (const bool keeps_statistics : {true, false}) {
      TestArray x(c.shape, random_x(c), c.x_type, c.lie),
          gamma(row, random_values(row, 2), c.parameter_type),
          dy(c.shape, random_values(c.shape, 4), c.y_type, c.lie), y(c.shape), rstd(one),
          dx(c.shape, c.x_type, c.lie), d_gamma(row, c.parameter_type);
      rms_norm_forward(
          forward(OpKind::RmsNorm, {x.array(), gamma.array()}, {y.array(), rstd.array()}, settings),
          workspace);
      std::vector<Array> outputs = {absent(c.shape)};
      if (keeps_statistics) outputs.push_back(rstd.array());
      rms_norm_backward(backward(OpKind::RmsNorm, {x.array(), gamma.array()}, outputs, {dy.array()},
                                 {dx.array(), d_gamma.array()}, settings),
                        workspace);
      const auto by_x = [&](const Values& at) {
        return exact_norm(at, width(c), false, gamma.values()).y;
      };
      const auto by_gamma = [&](const Values& at) {
        return exact_norm(x.values(), width(c), false, at).y;
      };
      ASSERT_LE(
          max_error(dx.values(), numeric_row_gradient(by_x, x.values(), dy.values(), width(c))),
          epsilon_of(c.x_type) + 1e-5);
      ASSERT_LE(max_error(d_gamma.values(),
                          numeric_gradient(by_gamma, gamma.values(), dy.values(), 1e-2)),
                epsilon_of(c.parameter_type) + 1e-5);
    }
  }
}

TEST(MsNorm, ForwardAndOutputBasedBackward) {
  Workspace workspace;
  for (const Case& c : cases())
    for (const bool is_centered : {true, false}) {
      if (numel(c.shape) > 1000 || c.shape.back() == 1) continue;
      const Shape one = c.shape.with_back(1);
      const OpKind kind = is_centered ? OpKind::MsLayerNorm : OpKind::MsRmsNorm;
      TestArray x(c.shape, random_x(c), c.x_type, c.lie), y(c.shape, c.y_type, c.lie), rstd(one),
          dy(c.shape, random_values(c.shape, 4), c.y_type), dx(c.shape, c.x_type, c.lie);
      (is_centered ? ms_layer_norm_forward : ms_rms_norm_forward)(
          forward(kind, {x.array()}, {y.array(), rstd.array()}, settings), workspace);
      const Exact exact = exact_norm(x.values(), width(c), is_centered);
      ASSERT_LE(max_error(y.values(), exact.y), epsilon_of(c.y_type) + 1e-5);
      ASSERT_LE(max_error(rstd.values(), exact.rstd), 1e-5);
      (is_centered ? ms_layer_norm_backward : ms_rms_norm_backward)(
          backward(kind, {absent(c.shape, c.x_type)}, {y.array(), rstd.array()}, {dy.array()},
                   {dx.array()}, settings),
          workspace);
      const auto by_x = [&](const Values& at) { return exact_norm(at, width(c), is_centered).y; };
      // y's own rounding enters: twice the mean of |dy·y|.
      ASSERT_LE(
          max_error(dx.values(), numeric_row_gradient(by_x, x.values(), dy.values(), width(c))),
          epsilon_of(c.x_type) + 4 * epsilon_of(c.y_type) + 1e-5);
      ASSERT_TRUE(y.is_intact() && dx.is_intact());
    }
}

// arXiv 2406.16282, section 4: γ and β can be merged into the linear that follows.
TEST(MsNorm, EqualsTheExactNormWithMergedAffine) {
  Workspace workspace;
  const Shape shape{7, 33}, one{7, 1}, row{33};
  TestArray x(shape, random_values(shape, 1)), gamma(row, random_values(row, 2)),
      beta(row, random_values(row, 3)), y(shape), z(shape), rstd(one);
  layer_norm_forward(
      forward(OpKind::LayerNorm, {x.array(), gamma.array(), beta.array()}, {y.array()}, settings),
      workspace);
  ms_layer_norm_forward(
      forward(OpKind::MsLayerNorm, {x.array()}, {z.array(), rstd.array()}, settings), workspace);
  Values merged = z.values();
  for (std::size_t i = 0; i < merged.size(); ++i)
    merged[i] = merged[i] * gamma.values()[i % 33] + beta.values()[i % 33];
  EXPECT_LE(max_error(y.values(), merged), 1e-6);
}

}  // namespace
}  // namespace tidemark::cpu::norm_test
