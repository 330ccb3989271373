// AdamW and SGD against PyTorch's formulas in double, over several steps.
#include "kernels/optimizer/optimizer.h"

#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::optimizer_test {
namespace {

Call update_of(TestArray& gradient, TestArray& parameter, const Array& state) {
  Call call;
  call.pass = Pass::Update;
  call.inputs = {gradient.array()}, call.outputs = {parameter.array(), state};
  return call;
}

void expect_adamw(const Shape& shape, DType dtype, Lie lie) {
  Workspace workspace;
  StepState& s = workspace.state;
  s.learning_rate = 0.01, s.weight_decay = 0.1;
  const auto count = static_cast<std::size_t>(numel(shape));
  TestArray p(shape, random_values(shape, 1), dtype, lie),
      state(Shape{2, static_cast<std::int64_t>(count)}, Values(2 * count, 0), dtype);
  Values exact = p.values(), m(count), v(count);
  for (int step = 0; step < 5; ++step) {
    s.number = step;
    TestArray g(shape, random_values(shape, static_cast<unsigned>(10 + step)), dtype, Lie::Padded);
    const Values gradient = g.values();
    for (std::size_t i = 0; i < count; ++i) {
      exact[i] -= s.learning_rate * s.weight_decay * exact[i];
      m[i] = s.beta1 * m[i] + (1 - s.beta1) * gradient[i];
      v[i] = s.beta2 * v[i] + (1 - s.beta2) * gradient[i] * gradient[i];
      const double correction1 = 1 - std::pow(s.beta1, step + 1);
      const double correction2 = 1 - std::pow(s.beta2, step + 1);
      exact[i] -= s.learning_rate / correction1 * m[i] /
                  (std::sqrt(v[i]) / std::sqrt(correction2) + s.epsilon);
    }
    update(update_of(g, p, state.array()), workspace);
  }
  // 16-bit states lose some digits each step; five steps of 0.01 move little.
  const double lost = dtype == DType::Float32 ? 0 : 10 * epsilon_of(dtype);
  ASSERT_LE(max_error(p.values(), exact), 2e-6 + lost);
  Values moments = m;
  moments.insert(moments.end(), v.begin(), v.end());
  ASSERT_LE(max_error(state.values(), moments), 1e-6 + lost);
  ASSERT_TRUE(p.is_intact() && state.is_intact());
}

TEST(Optimizer, AdamWIsPyTorchs) {
  for (const Shape& shape : {Shape{1}, Shape{31}, Shape{33, 3}, Shape{3, 1023}})
    for (const DType dtype : data_dtypes)
      for (const Lie lie : lies) expect_adamw(shape, dtype, lie);
}

TEST(Optimizer, FirstStepMovesByTheLearningRate) {
  Workspace workspace;
  workspace.state.weight_decay = 0;
  TestArray p(Shape{4}, {1, 1, 1, 1}), g(Shape{4}, {3, -1e-3, 1e4, 0}),
      state(Shape{8}, Values(8, 0));
  update(update_of(g, p, state.array()), workspace);
  EXPECT_LE(max_error(p.values(), {0.999, 1.001, 0.999, 1}), 1e-6);
}

TEST(Optimizer, SgdIsPyTorchsAndNeedsNoState) {
  Workspace workspace;
  StepState& s = workspace.state;
  s.learning_rate = 0.1, s.weight_decay = 0.01;
  for (const DType dtype : data_dtypes)
    for (const Lie lie : lies) {
      const Shape shape{5, 3, 33};
      TestArray p(shape, random_values(shape, 1), dtype, lie),
          g(shape, random_values(shape, 2), dtype, Lie::Reversed);
      Values exact = p.values();
      const Values gradient = g.values();
      for (std::size_t i = 0; i < exact.size(); ++i)
        exact[i] -= 0.1 * (gradient[i] + 0.01 * exact[i]);
      Call call = update_of(g, p, absent({0}));
      call.outputs.pop_back(), call.optimizer = Optimizer::Sgd;
      update(call, workspace);
      EXPECT_LE(max_error(p.values(), exact), epsilon_of(dtype) + 1e-6);
      EXPECT_TRUE(p.is_intact());
    }
}

TEST(Optimizer, NotANumberStaysInItsElement) {
  Workspace workspace;
  TestArray p(Shape{3}, {1, 1, 1}), g(Shape{3}, {0, NAN, 0}), state(Shape{6}, Values(6, 0));
  update(update_of(g, p, state.array()), workspace);
  EXPECT_FALSE(std::isnan(p.values()[0]));
  EXPECT_TRUE(std::isnan(p.values()[1]));
  EXPECT_FALSE(std::isnan(p.values()[2]));
}

TEST(Optimizer, ManyParametersAreUpdatedAsOneByOne) {
  for (const bool is_adamw : {true, false}) {
    Workspace workspace;
    std::vector<TestArray> alone, together, gradients;
    Call call;
    call.pass = Pass::Update;
    call.optimizer = is_adamw ? Optimizer::AdamW : Optimizer::Sgd;
    for (unsigned i = 0; i < 3; ++i) {
      const Shape shape{3 + 40 * static_cast<std::int64_t>(i)}, twice{2 * shape[0]};
      gradients.emplace_back(shape, random_values(shape, i), DType::Float32);
      for (auto* const arrays : {&alone, &together}) {
        arrays->emplace_back(shape, random_values(shape, 10 + i), DType::Float32);
        arrays->emplace_back(twice, Values(static_cast<std::size_t>(twice[0]), 0.5));
      }
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const Array state = is_adamw ? alone[2 * i + 1].array() : Array{};
      Call one = update_of(gradients[i], alone[2 * i], state);
      one.optimizer = call.optimizer;
      call.inputs.push_back(gradients[i].array());
      call.outputs.push_back(together[2 * i].array());
      if (is_adamw) call.outputs.push_back(together[2 * i + 1].array());
      if (!is_adamw) one.outputs.pop_back();
      update(one, workspace);
    }
    update(call, workspace);
    for (std::size_t i = 0; i < alone.size(); ++i)
      EXPECT_EQ(alone[i].values(), together[i].values()) << i;
  }
}

}  // namespace
}  // namespace tidemark::cpu::optimizer_test
