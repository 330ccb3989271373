// The optimizers beside AdamW and plain SGD against their formulas in double, over several steps.
#include <cmath>

#include "kernels/dynamic_map.h"
#include "kernels/optimizer/optimizer.h"
#include "tests/kernels/kernel_test.h"

namespace tidemark::cpu::update_test {
namespace {

constexpr double rate = 1e-2, decay = 0.1;
constexpr int steps = 3;

Values gradient_of(const Shape& shape, int step) {
  return random_values(shape, 20 + static_cast<unsigned>(step));
}

/// The parameter after some steps.
Values updated(Optimizer optimizer, const Shape& shape, std::int64_t state_numbers,
               bool l2_decay = false) {
  Workspace workspace;
  workspace.state.learning_rate = rate, workspace.state.weight_decay = decay;
  TestArray p(shape, random_values(shape, 1), DType::Float32);
  TestArray state({state_numbers}, Values(static_cast<std::size_t>(state_numbers)));
  for (int t = 0; t < steps; ++t) {
    TestArray g(shape, gradient_of(shape, t), DType::Float32, Lie::Reversed);
    Call call;
    call.pass = Pass::Update, call.optimizer = optimizer, call.settings.l2_decay = l2_decay;
    call.inputs = {g.array()}, call.outputs = {p.array(), state.array()};
    workspace.state.number = t;
    update(call, workspace);
  }
  EXPECT_TRUE(p.is_intact() && state.is_intact());
  return p.values();
}

/// One element's: (p, g, t, its own state of two numbers).
using Rule = std::function<void(double&, double, int, std::array<double, 2>&)>;

void expect_rule(Optimizer optimizer, const Rule& rule, double tolerance = 2e-6,
                 bool l2_decay = false) {
  const Shape shape{5, 33};
  Values p = random_values(shape, 1);
  std::vector<std::array<double, 2>> state(p.size());
  for (int t = 0; t < steps; ++t) {
    const Values g = gradient_of(shape, t);
    for (std::size_t i = 0; i < p.size(); ++i) rule(p[i], g[i], t + 1, state[i]);
  }
  const std::int64_t numbers = row_of(optimizer).states * numel(shape);
  EXPECT_LE(max_error(updated(optimizer, shape, numbers, l2_decay), p), tolerance)
      << row_of(optimizer).name;
}

TEST(Update, SgdWithMomentumAndDecay) {
  expect_rule(
      Optimizer::SgdMomentum,
      [](double& p, double g, int, auto& s) {
        s[0] = 0.9 * s[0] + g + decay * p;
        p -= rate * s[0];
      },
      2e-6, true);
}

TEST(Update, AdagradAndRmsProp) {
  expect_rule(Optimizer::Adagrad, [](double& p, double g, int, auto& s) {
    s[0] += g * g;
    p -= rate * g / (std::sqrt(s[0]) + 1e-10);
  });
  expect_rule(Optimizer::RmsProp, [](double& p, double g, int, auto& s) {
    s[0] = 0.99 * s[0] + 0.01 * g * g;
    p -= rate * g / (std::sqrt(s[0]) + 1e-8);
  });
}

TEST(Update, LionStepsByTheSign) {
  for (const Optimizer optimizer : {Optimizer::Lion, Optimizer::Lion32bit})
    expect_rule(optimizer, [](double& p, double g, int, auto& s) {
      const double step = 0.9 * s[0] + 0.1 * g;
      p = p * (1 - rate * decay) - rate * (step > 0 ? 1 : -1);
      s[0] = 0.99 * s[0] + 0.01 * g;
    });
}

void adam(double& p, double g, int t, std::array<double, 2>& s) {
  s[0] = 0.9 * s[0] + 0.1 * g;
  s[1] = 0.999 * s[1] + 0.001 * g * g;
  const double root = std::sqrt(s[1] / (1 - std::pow(0.999, t))) + 1e-8;
  p = (p - rate / (1 - std::pow(0.9, t)) * s[0] / root) * (1 - rate * decay);
}

TEST(Update, AdamWThatDecaysBehindItsStep) { expect_rule(Optimizer::AdamW32bit, adam, 5e-6); }

// Codes of eight bits are near the numbers that they stand for, and steps nearly those of fp32.
TEST(Update, StatesInEightBits) {
  const Shape shape{17, 256};
  for (const Optimizer optimizer : {Optimizer::AdamW8bit, Optimizer::Lion8bit}) {
    const bool is_adam = optimizer == Optimizer::AdamW8bit;
    const std::int64_t numbers = is_adam ? 2 : 1, blocks = 17;
    Workspace workspace;
    workspace.state.learning_rate = rate, workspace.state.weight_decay = decay;
    TestArray p(shape, random_values(shape, 1), DType::Float32);
    TestArray state({numbers * (4 * blocks + numel(shape))},
                    Values(static_cast<std::size_t>(numbers * (4 * blocks + numel(shape)))),
                    DType::UInt8);
    Values exact = p.values();
    std::vector<std::array<double, 2>> moments(exact.size());
    double moved = 0, apart = 0;
    for (int t = 0; t < steps; ++t) {
      const Values g = gradient_of(shape, t);
      TestArray gradient(shape, g);
      Call call;
      call.pass = Pass::Update, call.optimizer = optimizer;
      call.inputs = {gradient.array()}, call.outputs = {p.array(), state.array()};
      workspace.state.number = t;
      update(call, workspace);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        if (is_adam) {
          adam(exact[i], g[i], t + 1, moments[i]);
        } else {
          const double step = 0.9 * moments[i][0] + 0.1 * g[i];
          exact[i] = exact[i] * (1 - rate * decay) - rate * (step > 0 ? 1 : -1);
          moments[i][0] = 0.99 * moments[i][0] + 0.01 * g[i];
        }
      }
    }
    const Values begin = random_values(shape, 1), found = p.values();
    for (std::size_t i = 0; i < exact.size(); ++i) {
      moved += std::pow(exact[i] - begin[i], 2);
      apart += std::pow(exact[i] - found[i], 2);
    }
    EXPECT_LT(std::sqrt(apart / moved), 0.1) << row_of(optimizer).name;
    EXPECT_GT(apart, 0) << row_of(optimizer).name;
  }
}

TEST(Update, TheMapOfCodesIsThatOfItsPaper) {
  const auto with_signs = dynamic_map(true), without = dynamic_map(false);
  EXPECT_TRUE(std::ranges::is_sorted(with_signs) && std::ranges::is_sorted(without));
  EXPECT_EQ(std::ranges::count(with_signs, 0.0f), 1);
  EXPECT_EQ(with_signs.back(), 1.0f);
  EXPECT_EQ(without.front(), 0.0f);
  EXPECT_NEAR(with_signs.front(), -0.99296875, 1e-7);  // −(0.1 + 0.9 · 63.5/64)
  EXPECT_NEAR(without[1], 3.25e-7, 1e-12);             // 1e-6 · (0.1 + 0.9 · 0.25)
  EXPECT_EQ(nearest_code(without, 0.0f), 0u);
  EXPECT_EQ(nearest_code(without, 2.0f), 255u);
}

Values adafactor(const Shape& shape, bool is_torch) {
  Values p = random_values(shape, 1);
  const auto rows = static_cast<std::size_t>(shape[0]),
             columns = static_cast<std::size_t>(shape[1]);
  Values row(rows), column(columns);
  const auto rms = [](const Values& x) {
    double sum = 0;
    for (const double v : x) sum += v * v;
    return std::sqrt(sum / static_cast<double>(x.size()));
  };
  const double least = is_torch ? 0x1p-23 : 0, added = is_torch ? 0 : 1e-30;
  for (int t = 1; t <= steps; ++t) {
    Values g = gradient_of(shape, t - 1);
    const double fresh = std::pow(t, -0.8);
    for (std::size_t r = 0; r < rows; ++r) {
      double mean = 0;
      for (std::size_t c = 0; c < columns; ++c)
        mean += (std::pow(g[r * columns + c], 2) + added) / static_cast<double>(columns);
      row[r] += fresh * (mean - row[r]);
    }
    for (std::size_t c = 0; c < columns; ++c) {
      double mean = 0;
      for (std::size_t r = 0; r < rows; ++r)
        mean += (std::pow(g[r * columns + c], 2) + added) / static_cast<double>(rows);
      column[c] += fresh * (mean - column[c]);
    }
    double all = 0;
    for (const double x : row) all += x / static_cast<double>(rows);
    double size = is_torch ? std::min(rate, 1 / std::sqrt(t)) * std::max(1e-3, rms(p)) : rate;
    for (std::size_t i = 0; i < g.size(); ++i)
      g[i] /= std::sqrt(
          std::max(row[i / columns] * column[i % columns] / std::max(all, least), least * least));
    size /= std::max(1.0, rms(g));
    for (std::size_t i = 0; i < g.size(); ++i) p[i] = p[i] * (1 - rate * decay) - size * g[i];
  }
  return p;
}

TEST(Update, AdafactorKeepsMeansByRowAndColumn) {
  const Shape shape{9, 31};
  for (const Optimizer optimizer : {Optimizer::Adafactor, Optimizer::AdafactorTransformers})
    EXPECT_LE(max_error(updated(optimizer, shape, 9 + 31),
                        adafactor(shape, optimizer == Optimizer::Adafactor)),
              5e-6)
        << row_of(optimizer).name;
}

// Steps that bf16 alone would round away add up in the copy.
TEST(Update, MastersAddUpSmallSteps) {
  Workspace workspace;
  workspace.state.learning_rate = 1e-4, workspace.state.weight_decay = 0;
  TestArray p(Shape{2}, {1, 1}, DType::BFloat16), state(Shape{6}, Values(6, 7));
  state.set({7, 7, 0, 0, 0, 0});
  for (int t = 0; t < 100; ++t) {
    TestArray g(Shape{2}, {1, -1}, DType::BFloat16);
    Call call;
    call.pass = Pass::Update, call.settings.masters = true;
    call.inputs = {g.array()}, call.outputs = {p.array(), state.array()};
    workspace.state.number = t;
    update(call, workspace);
  }
  EXPECT_NEAR(state.values()[0], 0.99, 1e-4);
  EXPECT_NEAR(p.values()[0], 0.99, 0x1p-8);
  EXPECT_NEAR(p.values()[1], 1.01, 0x1p-7);
}

TEST(Update, LeavesAllAsItIsWhereNothingIsUpdated) {
  Workspace workspace;
  workspace.state.updates = false;
  TestArray p(Shape{2}, {1, 2}), g(Shape{2}, {1, 1}), state(Shape{4}, {1, 2, 3, 4});
  Call call;
  call.pass = Pass::Update, call.inputs = {g.array()}, call.outputs = {p.array(), state.array()};
  update(call, workspace);
  EXPECT_EQ(p.values(), (Values{1, 2}));
  EXPECT_EQ(state.values(), (Values{1, 2, 3, 4}));
}

}  // namespace
}  // namespace tidemark::cpu::update_test
