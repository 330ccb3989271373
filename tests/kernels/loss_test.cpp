// Negative log-likelihood: the mean over rows that count, and where its gradient goes.
#include "kernels/loss/loss.h"

#include "base/error.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::loss_test {
namespace {

Shape without_back(const Shape& shape) { return Shape(shape.dims().first(shape.rank() - 1)); }

Values random_targets(std::int64_t rows, std::int64_t classes) {
  std::mt19937 random(3);
  Values targets;
  for (std::int64_t i = 0; i < rows; ++i)
    targets.push_back(i % 5 == 3 ? -100
                                 : static_cast<double>(random() % static_cast<unsigned>(classes)));
  return targets;
}

TEST(NllLoss, IsTheMeanOverRowsThatCount) {
  Workspace workspace;
  for (const Shape& shape : {Shape{1, 10}, Shape{31, 1}, Shape{2, 33, 7}, Shape{4, 1023}})
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies)
        for (const bool keeps_weight : {true, false}) {
          const std::int64_t rows = numel(shape) / shape.back();
          const Values targets = random_targets(rows, shape.back());
          TestArray x(shape, random_values(shape, 1), dtype, lie),
              t(without_back(shape), targets, DType::Int64, lie), loss(Shape{}), weight(Shape{}),
              dx(shape, dtype, lie), dy(Shape{}, {2});
          std::vector<Array> outputs = {loss.array()};
          if (keeps_weight) outputs.push_back(weight.array());
          nll_loss_forward(forward(OpKind::NllLoss, {x.array(), t.array()}, outputs), workspace);
          double total = 0, count = 0;
          const Values values = x.values();
          const auto classes = static_cast<std::size_t>(shape.back());
          Values gradient(values.size());
          for (std::size_t i = 0; i < targets.size(); ++i) {
            if (targets[i] == -100) continue;
            total -= values[i * classes + static_cast<std::size_t>(targets[i])], ++count;
            gradient[i * classes + static_cast<std::size_t>(targets[i])] = -2;
          }
          for (double& value : gradient) value /= count;
          ASSERT_LE(max_error(loss.values(), {total / count}), 1e-6);
          if (keeps_weight) {
            EXPECT_EQ(weight.values(), Values{count});
          }
          nll_loss_backward(backward(OpKind::NllLoss, {absent(shape), t.array()}, outputs,
                                     {dy.array()}, {dx.array()}),
                            workspace);
          ASSERT_LE(max_error(dx.values(), gradient), epsilon_of(dtype) + 1e-7);
          ASSERT_TRUE(dx.is_intact());
        }
}

TEST(NllLoss, WithoutARowThatCountsItIsNaN) {
  Workspace workspace;
  TestArray x(Shape{2, 3}, Values(6, -1)), t(Shape{2}, {-100, -100}, DType::Int64), loss(Shape{}),
      weight(Shape{});
  nll_loss_forward(forward(OpKind::NllLoss, {x.array(), t.array()}, {loss.array(), weight.array()}),
                   workspace);
  EXPECT_TRUE(std::isnan(loss.values()[0]));
  EXPECT_EQ(weight.values(), Values{0});
}

TEST(NllLoss, NotANumberCountsOnlyWhereItIsTheTarget) {
  Workspace workspace;
  TestArray x(Shape{1, 3}, {NAN, -1, -2}), good(Shape{1}, {1}, DType::Int64),
      bad(Shape{1}, {0}, DType::Int64), loss(Shape{});
  nll_loss_forward(forward(OpKind::NllLoss, {x.array(), good.array()}, {loss.array()}), workspace);
  EXPECT_EQ(loss.values(), Values{1});
  nll_loss_forward(forward(OpKind::NllLoss, {x.array(), bad.array()}, {loss.array()}), workspace);
  EXPECT_TRUE(std::isnan(loss.values()[0]));
}

TEST(NllLoss, TargetsThatAreNoClassAreNamed) {
  Workspace workspace;
  TestArray x(Shape{2, 3}, Values(6, -1)), loss(Shape{}), dx(Shape{2, 3});
  for (const double wrong : {3.0, -1.0}) {
    TestArray t(Shape{2}, {0, wrong}, DType::Int64);
    try {
      nll_loss_forward(forward(OpKind::NllLoss, {x.array(), t.array()}, {loss.array()}), workspace);
      FAIL();
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("of row 1 is no class: 0 to 2"), std::string::npos);
    }
  }
}

TEST(NllLoss, WithoutGradientOfTheLossItIsZero) {
  Workspace workspace;
  TestArray t(Shape{2}, {0, 1}, DType::Int64), dx(Shape{2, 3});
  nll_loss_backward(
      backward(OpKind::NllLoss, {absent({2, 3}), t.array()}, {absent()}, {absent()}, {dx.array()}),
      workspace);
  EXPECT_EQ(dx.values(), Values(6, 0));
}

}  // namespace
}  // namespace tidemark::cpu::loss_test
