// Stacks of every depth in every network: one block has nothing to overlap, an odd stack ends on
// the other stream, a long one carries its rounding through every inverse.
#include "tests/profiler/replayed.h"

namespace tidemark::profiler::reversible_stacks_test {
namespace {

// Each block that is inverted (twice the depth and one, in two stages) rounds sums of up to 2^8
// numbers anew, each by at most 2^-24 of itself. Which sums depends on the processor's products.
constexpr double rounding_of_inverse = 0x1p-16;

class ReversibleStacks : public testing::TestWithParam<std::int64_t> {
 protected:
  void expect_right(const Model& model) const {
    SCOPED_TRACE(model.name);
    const StepOptions options{.batch = 2};
    const PlannedStep reversible = planned(model, options, "reversible");
    const NamedValues parameters = initial_parameters(*reversible.trace);
    const Replayed kept = replayed(stored(reversible), *backend_, parameters);
    const Replayed inverted = replayed(reversible, *backend_, parameters);
    const Replayed parallel = replayed(planned(model, options, "pareprop"), *backend_, parameters);
    EXPECT_EQ(inverted.loss, kept.loss);
    const double rounding = rounding_of_inverse * static_cast<double>(2 * GetParam() + 1);
    EXPECT_LT(gradient_difference(inverted.gradients, kept.gradients).overall, rounding);
    const GradientDifference difference =
        gradient_difference(without_zeros(inverted.gradients), without_zeros(kept.gradients));
    EXPECT_LT(difference.largest, rounding) << difference.parameter;
    EXPECT_EQ(parallel.loss, inverted.loss);
    EXPECT_TRUE(parallel.gradients == inverted.gradients);
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend();
};

INSTANTIATE_TEST_SUITE_P(Depth, ReversibleStacks, testing::Values(1, 2, 3, 5, 12),
                         testing::PrintToStringParamName());

TEST_P(ReversibleStacks, OfTransformersInvert) {
  const std::int64_t depth = GetParam();
  for (const Model& model : {small_vit(depth), small_bert(depth), small_roberta(depth),
                             small_gpt2(depth), small_llama(depth)})
    expect_right(model);
}

// Two stacks with a transition between them that keeps its activations.
TEST_P(ReversibleStacks, OfStagesInvert) {
  const std::int64_t depth = GetParam();
  expect_right(small_swin({depth, depth}));
  expect_right(small_mvit({depth, depth + 1}));  // the second stage begins with the transition
}

}  // namespace
}  // namespace tidemark::profiler::reversible_stacks_test
