// y = W(γ⊙z + β) + b as y = W'z + b': the function and its gradients, by finite differences.
#include "profiler/merged_affine.h"

#include <gtest/gtest.h>

#include "simulator/strategies/strategy.h"
#include "traces/trace_builder.h"

namespace tidemark::profiler::merged_affine_test {
namespace {

// z → norm → linear; the rewritten trace has lost the norm's weight and bias.
struct Pair {
  Trace before, after;
};

Pair norm_and_linear() {
  TraceBuilder b("pair", "", {.precision = Precision::Fp32});
  const TensorId x = b.linear("in", b.input("x", {2, 2}, DType::Float32), 2);
  const TensorId y = b.linear("out", b.layer_norm("norm", x, 1e-5), 3);
  const Trace trace = b.finish(b.cross_entropy("loss", y, b.input("targets", {2}, DType::Int64)));
  return {trace, std::get<Trace>(rewrite_norms(trace, {}))};
}

const NamedValues parameters = {{"in.weight", {1, 2, 3, 4}},        {"in.bias", {0, 0}},
                                {"norm.weight", {2, -1}},           {"norm.bias", {0.5, 0.25}},
                                {"out.weight", {1, 2, 3, 4, 5, 6}}, {"out.bias", {1, 1, 1}}};

// Out of z and of parameters of the first form; a sum weighted by `seed` is the loss.
double loss(const NamedValues& p, const std::vector<double>& z, const std::vector<double>& seed) {
  double sum = 0;
  for (std::size_t r = 0; r < 3; ++r) {
    double y = p.at("out.bias")[r];
    for (std::size_t c = 0; c < 2; ++c)
      y += p.at("out.weight")[2 * r + c] * (p.at("norm.weight")[c] * z[c] + p.at("norm.bias")[c]);
    sum += seed[r] * y;
  }
  return sum;
}

TEST(MergedAffine, IsTheSameFunction) {
  const Pair pair = norm_and_linear();
  const NamedValues merged = merge_affine(pair.before, pair.after, parameters);
  const std::vector<double> z = {0.7, -1.1};
  for (std::size_t r = 0; r < 3; ++r) {
    std::vector<double> seed(3);
    seed[r] = 1;
    const double y = merged.at("out.bias")[r] + merged.at("out.weight")[2 * r] * z[0] +
                     merged.at("out.weight")[2 * r + 1] * z[1];
    EXPECT_DOUBLE_EQ(y, loss(parameters, z, seed));
  }
  EXPECT_EQ(merged.at("in.weight"), parameters.at("in.weight"));
}

TEST(MergedAffine, GradientsComeBackToTheFirstForm) {
  const Pair pair = norm_and_linear();
  const std::vector<double> z = {0.7, -1.1}, seed = {1, -2, 0.5};
  NamedValues of_merged = {{"out.bias", seed}, {"out.weight", std::vector<double>(6)}};
  for (std::size_t i = 0; i < 6; ++i) of_merged["out.weight"][i] = seed[i / 2] * z[i % 2];
  const NamedValues found = unmerge_gradients(pair.before, pair.after, parameters, of_merged);
  for (const char* name : {"out.weight", "out.bias", "norm.weight", "norm.bias"})
    for (std::size_t i = 0; i < parameters.at(name).size(); ++i) {
      constexpr double step = 1e-4;
      NamedValues up = parameters, down = parameters;
      up[name][i] += step, down[name][i] -= step;
      const double expected = (loss(up, z, seed) - loss(down, z, seed)) / (2 * step);
      EXPECT_NEAR(found.at(name)[i], expected, 1e-9) << name << " " << i;
    }
}

}  // namespace
}  // namespace tidemark::profiler::merged_affine_test
