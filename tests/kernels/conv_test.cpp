// Convolution and its gradients match sums in double and finite differences; NaN is passed on.
#include "kernels/conv/conv.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::conv_test {
namespace {

struct Sizes {
  std::int64_t images, in, height, width, out, kernel_height, kernel_width;
  std::int64_t stride = 1, padding = 0, groups = 1;

  Shape x() const { return {images, in, height, width}; }
  Shape weight() const { return {out, in / groups, kernel_height, kernel_width}; }
  Shape y() const {
    return {images, out, (height + 2 * padding - kernel_height) / stride + 1,
            (width + 2 * padding - kernel_width) / stride + 1};
  }
  Settings settings() const { return {.stride = stride, .padding = padding, .groups = groups}; }
};

std::size_t at(const Shape& s, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return static_cast<std::size_t>(((a * s[1] + b) * s[2] + c) * s[3] + d);
}

/// Calls body(place in y, in x, in weight) for each product of the sum.
template <typename Body>
void for_products(const Sizes& s, Body&& body) {
  const Shape x = s.x(), w = s.weight(), y = s.y();
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t o = 0; o < y[1]; ++o)
      for (std::int64_t i = 0; i < y[2]; ++i)
        for (std::int64_t j = 0; j < y[3]; ++j)
          for (std::int64_t c = 0; c < w[1]; ++c)
            for (std::int64_t u = 0; u < w[2]; ++u)
              for (std::int64_t v = 0; v < w[3]; ++v) {
                const std::int64_t row = i * s.stride + u - s.padding;
                const std::int64_t column = j * s.stride + v - s.padding;
                if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) continue;
                const std::int64_t channel = o / (y[1] / s.groups) * w[1] + c;
                body(at(y, n, o, i, j), at(x, n, channel, row, column), at(w, o, c, u, v));
              }
}

Values with_bias(const Values& bias, const Sizes& s) {
  const Shape shape = s.y();
  Values y;
  for (std::int64_t i = 0; i < numel(shape); ++i)
    y.push_back(
        bias.empty() ? 0 : bias[static_cast<std::size_t>(i / (shape[2] * shape[3]) % shape[1])]);
  return y;
}

Values convolve(const Values& x, const Values& weight, const Values& bias, const Sizes& s) {
  Values y = with_bias(bias, s);
  for_products(s, [&](auto n, auto i, auto w) { y[n] += x[i] * weight[w]; });
  return y;
}

const std::vector<Sizes>& sizes_to_try() {
  static const std::vector<Sizes> all = {
      {1, 1, 1, 1, 1, 1, 1},
      {2, 3, 7, 9, 5, 3, 3, 1, 1},
      {2, 3, 12, 8, 6, 4, 4, 4},        // patches
      {1, 4, 9, 11, 6, 3, 2, 2, 1, 2},  // groups, kernel not square
      {2, 3, 8, 9, 3, 3, 3, 1, 1, 3},   // depthwise
      {2, 5, 9, 8, 5, 3, 3, 2, 1, 5},   // with stride
      {1, 2, 5, 4, 2, 3, 3, 4, 1, 2},   // stride beyond the kernel
      {1, 2, 5, 6, 4, 1, 1, 1, 0, 2},   // two results of each channel
      {1, 2, 3, 2, 3, 5, 5, 1, 2},      // kernel beyond the image
      {1, 31, 33, 31, 33, 1, 1},
      {1, 120, 11, 100, 2, 3, 3, 1, 1},  // several tiles of columns
  };
  return all;
}

class ConvTest : public testing::TestWithParam<std::tuple<DType, Lie>> {
 protected:
  const DType dtype = std::get<0>(GetParam());
  const Lie lie = std::get<1>(GetParam());
  cpu::Workspace workspace;

  double tolerance(double terms) const {
    return epsilon_of(dtype) + 8 * std::sqrt(terms) * 0x1p-24;
  }
};

TEST_P(ConvTest, ForwardMatchesDouble) {
  for (const Sizes& s : sizes_to_try()) {
    TestArray x(s.x(), random_values(s.x(), 1), dtype, lie);
    TestArray weight(s.weight(), random_values(s.weight(), 2), dtype, lie);
    TestArray bias({s.out}, random_values({s.out}, 3), dtype), y(s.y(), dtype, lie);
    cpu::conv2d_forward(forward(OpKind::Conv2d, {x.array(), weight.array(), bias.array()},
                                {y.array()}, s.settings()),
                        workspace);
    const double terms = static_cast<double>(numel(s.weight()) / s.out);
    const Values wanted = convolve(x.values(), weight.values(), bias.values(), s);
    EXPECT_LE(max_error(y.values(), wanted, std::sqrt(terms)), tolerance(terms));
    EXPECT_TRUE(y.is_intact());
    cpu::conv2d_forward(
        forward(OpKind::Conv2d, {x.array(), weight.array()}, {y.array()}, s.settings()), workspace);
    EXPECT_LE(max_error(y.values(), convolve(x.values(), weight.values(), {}, s), std::sqrt(terms)),
              tolerance(terms));
  }
}

TEST_P(ConvTest, BackwardMatchesDouble) {
  for (const Sizes& s : sizes_to_try()) {
    TestArray x(s.x(), random_values(s.x(), 1), dtype, lie);
    TestArray weight(s.weight(), random_values(s.weight(), 2), dtype, lie);
    TestArray dy(s.y(), random_values(s.y(), 3), dtype, lie);
    TestArray dx(s.x(), dtype, lie), dw(s.weight(), dtype, lie), db({s.out}, dtype);
    cpu::conv2d_backward(
        backward(OpKind::Conv2d, {x.array(), weight.array(), absent({s.out}, dtype)},
                 {absent(s.y(), dtype)}, {dy.array()}, {dx.array(), dw.array(), db.array()},
                 s.settings()),
        workspace);
    const Values vx = x.values(), vw = weight.values(), error = dy.values();
    Values wanted_x(vx.size()), wanted_w(vw.size()), wanted_b(static_cast<std::size_t>(s.out));
    for_products(s, [&](auto n, auto i, auto w) {
      wanted_x[i] += error[n] * vw[w];
      wanted_w[w] += error[n] * vx[i];
    });
    const auto plane = static_cast<std::size_t>(s.y()[2] * s.y()[3]);
    for (std::size_t n = 0; n < error.size(); ++n)
      wanted_b[n / plane % wanted_b.size()] += error[n];
    const double of_x = static_cast<double>(numel(s.weight()) / s.in);
    const double of_w = static_cast<double>(numel(s.y()) / s.out);
    EXPECT_LE(max_error(dx.values(), wanted_x, std::sqrt(of_x)), tolerance(of_x));
    EXPECT_LE(max_error(dw.values(), wanted_w, std::sqrt(of_w)), tolerance(of_w));
    EXPECT_LE(max_error(db.values(), wanted_b, std::sqrt(of_w)), tolerance(of_w));
    EXPECT_TRUE(dx.is_intact() && dw.is_intact() && db.is_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvTest,
                         testing::Combine(testing::ValuesIn(data_dtypes), testing::ValuesIn(lies)));

TEST(Conv, GradientsMatchFiniteDifferences) {
  for (const Sizes& s : {Sizes{1, 2, 4, 4, 2, 3, 3, 2, 1}, Sizes{1, 2, 4, 4, 2, 3, 3, 1, 1, 2}}) {
    const Values x = random_values(s.x(), 1), w = random_values(s.weight(), 2);
    const Values dy = random_values(s.y(), 3);
    cpu::Workspace workspace;
    TestArray ax(s.x(), x), aw(s.weight(), w), ady(s.y(), dy), dx(s.x()), dw(s.weight());
    cpu::conv2d_backward(backward(OpKind::Conv2d, {ax.array(), aw.array()}, {absent(s.y())},
                                  {ady.array()}, {dx.array(), dw.array()}, s.settings()),
                         workspace);
    const auto of_x = [&](const Values& v) { return convolve(v, aw.values(), {}, s); };
    const auto of_w = [&](const Values& v) { return convolve(ax.values(), v, {}, s); };
    EXPECT_LE(max_error(dx.values(), numeric_gradient(of_x, x, dy)), 2e-6);
    EXPECT_LE(max_error(dw.values(), numeric_gradient(of_w, w, dy)), 2e-6);
  }
}

TEST(Conv, WritesOnlyWantedGradients) {
  for (const std::int64_t groups : {1, 2}) {
    const Sizes s{1, 2, 4, 4, 2, 3, 3, 1, 1, groups};
    cpu::Workspace workspace;
    TestArray x(s.x(), random_values(s.x(), 1)), w(s.weight(), random_values(s.weight(), 2));
    TestArray dy(s.y(), random_values(s.y(), 3)), dx(s.x()), dw(s.weight()), all_dx(s.x()),
        all_dw(s.weight());
    const auto run = [&](Array in, Array weight, Array error, std::vector<Array> wanted) {
      cpu::conv2d_backward(backward(OpKind::Conv2d, {in, weight}, {absent(s.y())}, {error},
                                    std::move(wanted), s.settings()),
                           workspace);
    };
    run(x.array(), w.array(), dy.array(), {all_dx.array(), all_dw.array()});
    run(absent(s.x()), w.array(), dy.array(), {dx.array(), absent(s.weight())});
    run(x.array(), absent(s.weight()), dy.array(), {absent(s.x()), dw.array()});
    EXPECT_EQ(dx.values(), all_dx.values());
    EXPECT_EQ(dw.values(), all_dw.values());
    run(x.array(), w.array(), absent(s.y()), {dx.array(), dw.array()});
    EXPECT_EQ(dx.values(), Values(dx.values().size()));
    EXPECT_EQ(dw.values(), Values(dw.values().size()));
  }
}

TEST(Conv, PropagatesNan) {
  for (const std::int64_t groups : {1, 2}) {
    const Sizes s{1, 2, 3, 3, 2, 3, 3, 1, 0, groups};
    cpu::Workspace workspace;
    Values poisoned = random_values(s.x(), 1);
    poisoned[0] = std::nan("");
    TestArray x(s.x(), poisoned), w(s.weight(), random_values(s.weight(), 2)), y(s.y());
    cpu::conv2d_forward(forward(OpKind::Conv2d, {x.array(), w.array()}, {y.array()}, s.settings()),
                        workspace);
    EXPECT_TRUE(std::isnan(y.values()[0]));
    EXPECT_EQ(std::isnan(y.values()[1]), groups == 1);
  }
}

}  // namespace
}  // namespace tidemark::conv_test
