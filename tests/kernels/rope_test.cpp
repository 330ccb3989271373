// The rotation matches transformers' rotate_half() in double, and its backward is the transpose.
#include "kernels/rope/rope.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::rope_test {
namespace {

struct Sizes {
  Shape x, table;
};

const std::vector<Sizes>& sizes_to_try() {
  static const std::vector<Sizes> all = {{{1, 1, 1, 2}, {1, 2}},       {{2, 3, 31, 34}, {31, 34}},
                                         {{2, 3, 31, 34}, {31, 17}},   {{1, 2, 33, 6}, {1, 33, 6}},
                                         {{2, 1, 1023, 2}, {1023, 1}}, {{5, 64}, {5, 64}}};
  return all;
}

/// transformers' rotate_half(): x1, x2 → −x2, x1, of halves or of neighbours. A table of half as
/// many columns has one for each pair.
Values rotate(const Values& x, const Values& cosine, const Values& sine, const Sizes& s,
              bool neighbours = false) {
  const auto d = static_cast<std::size_t>(s.x.back()), half = d / 2;
  const auto columns = static_cast<std::size_t>(s.table.back());
  const std::size_t rows = cosine.size() / columns;
  Values y(x.size());
  for (std::size_t n = 0; n < x.size(); ++n) {
    const std::size_t row = n / d, i = n % d, step = neighbours ? 1 : half;
    const bool is_first = neighbours ? i % 2 == 0 : i < half;
    const std::size_t column = columns == d ? i : neighbours ? i / 2 : i % half;
    const std::size_t entry = row % rows * columns + column;
    const double partner = is_first ? -x[n + step] : x[n - step];
    y[n] = x[n] * cosine[entry] + partner * sine[entry];
  }
  return y;
}

class RopeTest : public testing::TestWithParam<std::tuple<DType, DType, Lie, bool>> {
 protected:
  const DType dtype = std::get<0>(GetParam()), result = std::get<1>(GetParam());
  const Lie lie = std::get<2>(GetParam());
  const bool neighbours = std::get<3>(GetParam());
  const Settings settings{.neighbours = neighbours};
  cpu::Workspace workspace;
};

TEST_P(RopeTest, MatchesDouble) {
  for (const Sizes& s : sizes_to_try()) {
    TestArray x(s.x, random_values(s.x, 1), dtype, lie), y(s.x, result, lie);
    TestArray c(s.table, random_values(s.table, 2), result, lie);
    TestArray sine(s.table, random_values(s.table, 3), result, lie);
    cpu::rope_forward(
        forward(OpKind::Rope, {x.array(), c.array(), sine.array()}, {y.array()}, settings),
        workspace);
    EXPECT_LE(max_error(y.values(), rotate(x.values(), c.values(), sine.values(), s, neighbours)),
              epsilon_of(result) + 2e-6);
    EXPECT_TRUE(y.is_intact());
  }
}

TEST_P(RopeTest, BackwardIsTheTranspose) {
  // <dy, R x> = <Rᵀ dy, x> for all x; the sums run over the rows, each of which turns alone.
  for (const Sizes& s : sizes_to_try()) {
    TestArray c(s.table, random_values(s.table, 2), result, lie);
    TestArray sine(s.table, random_values(s.table, 3), result, lie);
    TestArray dy(s.x, random_values(s.x, 4), result, lie), dx(s.x, dtype, lie);
    cpu::rope_backward(backward(OpKind::Rope, {absent(s.x, dtype), c.array(), sine.array()},
                                {absent(s.x, result)}, {dy.array()}, {dx.array()}, settings),
                       workspace);
    const Values errors = dy.values(), got = dx.values(), x = random_values(s.x, 5);
    const Values y = rotate(x, c.values(), sine.values(), s, neighbours);
    const auto d = static_cast<std::size_t>(s.x.back());
    for (std::size_t first = 0; first < x.size(); first += d) {
      double through_y = 0, through_x = 0, size = 1;
      for (std::size_t i = first; i < first + d; ++i) {
        through_y += errors[i] * y[i], through_x += got[i] * x[i];
        size += std::abs(got[i] * x[i]);
      }
      EXPECT_NEAR(through_x, through_y, (epsilon_of(dtype) + 2e-6) * size);
    }
    EXPECT_TRUE(dx.is_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(All, RopeTest,
                         testing::Combine(testing::ValuesIn(data_dtypes),
                                          testing::Values(DType::Float32, DType::BFloat16),
                                          testing::ValuesIn(lies), testing::Bool()));

TEST(Rope, GradientMatchesFiniteDifferences) {
  const Sizes s{{1, 2, 3, 6}, {3, 6}};
  cpu::Workspace workspace;
  TestArray c(s.table, random_values(s.table, 2)), sine(s.table, random_values(s.table, 3));
  TestArray dy(s.x, random_values(s.x, 4)), dx(s.x);
  cpu::rope_backward(backward(OpKind::Rope, {absent(s.x), c.array(), sine.array()}, {absent(s.x)},
                              {dy.array()}, {dx.array()}),
                     workspace);
  const auto f = [&](const Values& x) { return rotate(x, c.values(), sine.values(), s); };
  EXPECT_LE(max_error(dx.values(), numeric_gradient(f, random_values(s.x, 1), dy.values())), 1e-6);
}

TEST(Rope, AnAbsentErrorIsZeroAndNanStays) {
  cpu::Workspace workspace;
  TestArray c({1, 2}, {1, 1}), sine({1, 2}, {0, 0}), dx({1, 2});
  cpu::rope_backward(backward(OpKind::Rope, {absent({1, 2}), c.array(), sine.array()},
                              {absent({1, 2})}, {absent({1, 2})}, {dx.array()}),
                     workspace);
  EXPECT_EQ(dx.values(), Values(2));
  TestArray x({1, 2}, {std::nan(""), 1}), y({1, 2});
  cpu::rope_forward(forward(OpKind::Rope, {x.array(), c.array(), sine.array()}, {y.array()}),
                    workspace);
  EXPECT_TRUE(std::isnan(y.values()[0]) && std::isnan(y.values()[1]));  // NaN · 0 too
}

}  // namespace
}  // namespace tidemark::rope_test
