// Means match double, maxima and their places are exact, and errors go back to where they belong.
#include "kernels/pooling/pooling.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::pooling_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class PoolingTest : public testing::TestWithParam<std::tuple<DType, Lie>> {
 protected:
  const DType dtype = std::get<0>(GetParam());
  const Lie lie = std::get<1>(GetParam());
  cpu::Workspace workspace;
};

const std::vector<Shape>& mean_shapes() {
  static const std::vector<Shape> all = {
      {1, 1, 1}, {2, 31, 33}, {3, 1023, 5}, {2, 3, 5, 7}, {1, 1, 1023}};
  return all;
}

TEST_P(PoolingTest, MeanMatchesDouble) {
  for (const Shape& shape : mean_shapes()) {
    const auto c = static_cast<std::size_t>(shape.back());
    const auto images = static_cast<std::size_t>(shape[0]);
    TestArray x(shape, random_values(shape, 1), dtype, lie);
    TestArray y({shape[0], shape.back()}, dtype, lie);
    cpu::mean_pool_forward(forward(OpKind::MeanPool, {x.array()}, {y.array()}), workspace);
    const Values values = x.values();
    const std::size_t rows = values.size() / c / images;
    Values wanted(images * c);
    for (std::size_t n = 0; n < values.size(); ++n)
      wanted[n / (rows * c) * c + n % c] += values[n] / static_cast<double>(rows);
    EXPECT_LE(max_error(y.values(), wanted), epsilon_of(dtype) + 1e-6);
    EXPECT_TRUE(y.is_intact());
  }
}

TEST_P(PoolingTest, MeanBackwardSpreadsTheError) {
  for (const Shape& shape : mean_shapes()) {
    const auto c = static_cast<std::size_t>(shape.back());
    const Shape pooled{shape[0], shape.back()};
    TestArray dy(pooled, random_values(pooled, 1), dtype, lie), dx(shape, dtype, lie);
    cpu::mean_pool_backward(backward(OpKind::MeanPool, {absent(shape, dtype)},
                                     {absent(pooled, dtype)}, {dy.array()}, {dx.array()}),
                            workspace);
    const Values errors = dy.values();
    Values wanted(static_cast<std::size_t>(numel(shape)));
    const std::size_t rows = wanted.size() / errors.size();
    for (std::size_t n = 0; n < wanted.size(); ++n)
      wanted[n] = errors[n / (rows * c) * c + n % c] / static_cast<double>(rows);
    EXPECT_LE(max_error(dx.values(), wanted, 1e-3), epsilon_of(dtype) + 1e-6);
    EXPECT_TRUE(dx.is_intact());
  }
}

struct MaxSizes {
  Shape x;
  std::int64_t window, stride, padding;

  Settings settings() const { return {.window = window, .stride = stride, .padding = padding}; }
  Shape y() const {
    const auto out = [&](std::int64_t n) { return (n + 2 * padding - window) / stride + 1; };
    return {x[0], x[1], out(x[2]), out(x[3])};
  }
};

const std::vector<MaxSizes>& max_sizes() {
  static const std::vector<MaxSizes> all = {{{1, 1, 1, 1}, 1, 1, 0},
                                            {{2, 3, 8, 9}, 3, 2, 1},
                                            {{1, 2, 31, 33}, 2, 2, 0},
                                            {{2, 1, 7, 5}, 3, 1, 1},
                                            {{1, 1, 3, 1023}, 3, 4, 1}};
  return all;
}

/// By definition: value and place of each maximum.
struct Maxima {
  Values y, places;
};

Maxima maxima(const Values& x, const MaxSizes& s) {
  Maxima result;
  const Shape y = s.y();
  for (std::int64_t plane = 0; plane < y[0] * y[1]; ++plane)
    for (std::int64_t i = 0; i < y[2]; ++i)
      for (std::int64_t j = 0; j < y[3]; ++j) {
        double best = -infinity, place = -1;
        for (std::int64_t u = 0; u < s.window; ++u)
          for (std::int64_t v = 0; v < s.window; ++v) {
            const std::int64_t row = i * s.stride + u - s.padding;
            const std::int64_t column = j * s.stride + v - s.padding;
            if (row < 0 || row >= s.x[2] || column < 0 || column >= s.x[3]) continue;
            const std::int64_t at = row * s.x[3] + column;
            const double value = x[static_cast<std::size_t>(plane * s.x[2] * s.x[3] + at)];
            if (place < 0 || value > best || std::isnan(value))
              best = value, place = static_cast<double>(at);
          }
        result.y.push_back(best), result.places.push_back(place);
      }
  return result;
}

TEST_P(PoolingTest, MaxIsExact) {
  for (const MaxSizes& s : max_sizes()) {
    TestArray x(s.x, random_values(s.x, 1), dtype, lie), y(s.y(), dtype, lie);
    TestArray places(s.y(), DType::Int64, lie);
    cpu::max_pool_forward(
        forward(OpKind::MaxPool, {x.array()}, {y.array(), places.array()}, s.settings()),
        workspace);
    const Maxima wanted = maxima(x.values(), s);
    EXPECT_EQ(y.values(), wanted.y);
    EXPECT_EQ(places.values(), wanted.places);
    EXPECT_TRUE(y.is_intact() && places.is_intact());
  }
}

TEST_P(PoolingTest, MaxBackwardGoesToThePlaces) {
  for (const MaxSizes& s : max_sizes()) {
    const Maxima of_x = maxima(random_values(s.x, 1), s);
    TestArray places(s.y(), of_x.places, DType::Int64, lie);
    TestArray dy(s.y(), random_values(s.y(), 2), dtype, lie), dx(s.x, dtype, lie);
    cpu::max_pool_backward(
        backward(OpKind::MaxPool, {absent(s.x, dtype)}, {absent(s.y(), dtype), places.array()},
                 {dy.array()}, {dx.array()}, s.settings()),
        workspace);
    const Values errors = dy.values();
    Values wanted(static_cast<std::size_t>(numel(s.x)));
    const std::size_t out_area = static_cast<std::size_t>(s.y()[2] * s.y()[3]);
    const std::size_t area = static_cast<std::size_t>(s.x[2] * s.x[3]);
    for (std::size_t n = 0; n < errors.size(); ++n)
      wanted[n / out_area * area + static_cast<std::size_t>(of_x.places[n])] += errors[n];
    EXPECT_LE(max_error(dx.values(), wanted), epsilon_of(dtype) + 1e-6);
    EXPECT_TRUE(dx.is_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(All, PoolingTest,
                         testing::Combine(testing::ValuesIn(data_dtypes), testing::ValuesIn(lies)));

TEST(Pooling, GradientsMatchFiniteDifferences) {
  cpu::Workspace workspace;
  const MaxSizes s{{1, 1, 5, 5}, 3, 2, 1};
  const Values values = random_values(s.x, 1), errors = random_values(s.y(), 2);
  TestArray x(s.x, values), y(s.y()), places(s.y(), DType::Int64), dy(s.y(), errors), dx(s.x);
  cpu::max_pool_forward(
      forward(OpKind::MaxPool, {x.array()}, {y.array(), places.array()}, s.settings()), workspace);
  cpu::max_pool_backward(backward(OpKind::MaxPool, {absent(s.x)}, {absent(s.y()), places.array()},
                                  {dy.array()}, {dx.array()}, s.settings()),
                         workspace);
  const auto f = [&](const Values& v) { return maxima(v, s).y; };
  EXPECT_LE(max_error(dx.values(), numeric_gradient(f, values, errors)), 1e-6);
}

TEST(Pooling, TheFirstOfEqualsCountsAndNanWins) {
  cpu::Workspace workspace;
  const Settings settings{.window = 2, .stride = 2};
  const auto place = [&](const Values& window) {
    TestArray x({1, 1, 2, 2}, window), y({1, 1, 1, 1}), at({1, 1, 1, 1}, DType::Int64);
    cpu::max_pool_forward(forward(OpKind::MaxPool, {x.array()}, {y.array(), at.array()}, settings),
                          workspace);
    return at.values()[0];
  };
  const double nan = std::nan("");
  EXPECT_EQ(place({1, 2, 2, 0}), 1);
  EXPECT_EQ(place({-infinity, -infinity, -infinity, -infinity}), 0);
  EXPECT_EQ(place({1, nan, 2, infinity}), 1);
  EXPECT_EQ(place({nan, 1, nan, 2}), 2);
}

TEST(Pooling, PlacesMayBeAbsent) {
  cpu::Workspace workspace;
  TestArray x({1, 1, 2, 2}, {1, 4, 3, 2}), y({1, 1, 1, 1});
  cpu::max_pool_forward(
      forward(OpKind::MaxPool, {x.array()}, {y.array()}, {.window = 2, .stride = 2}), workspace);
  EXPECT_EQ(y.values(), Values{4});
}

TEST(Pooling, AnAbsentErrorIsZero) {
  cpu::Workspace workspace;
  TestArray dx({1, 2, 3}), plane({1, 1, 2, 2}), places({1, 1, 1, 1}, Values{0}, DType::Int64);
  cpu::mean_pool_backward(backward(OpKind::MeanPool, {absent({1, 2, 3})}, {absent({1, 3})},
                                   {absent({1, 3})}, {dx.array()}),
                          workspace);
  EXPECT_EQ(dx.values(), Values(6));
  cpu::max_pool_backward(
      backward(OpKind::MaxPool, {absent({1, 1, 2, 2})}, {absent({1, 1, 1, 1}), places.array()},
               {absent({1, 1, 1, 1})}, {plane.array()}, {.window = 2, .stride = 2}),
      workspace);
  EXPECT_EQ(plane.values(), Values(4));
}

}  // namespace
}  // namespace tidemark::pooling_test
