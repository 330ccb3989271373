// A plan of exact actions changes when and where a saved tensor lives, never its value: whatever
// check(trace, plan) accepts, far from what any strategy would ask for, real kernels compute
// vanilla's loss and gradients with it, to the bit, on one stream or two.
#include "tests/profiler/replayed.h"
#include "tests/simulator/random_step.h"

namespace tidemark::profiler::any_plan_property_test {
namespace {

constexpr std::uint64_t first_seed = 404;

// Keep, Recompute and Offload, in any mixture.
Plan random_exact_plan(const Trace& trace, Dice& dice) {
  Plan plan = random_plan(trace, dice);
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (plan.decisions[t].action == Action::Quantize ||
        plan.decisions[t].action == Action::Reconstruct)
      decide(plan, static_cast<TensorId>(t), Action::Keep, "drawn");
  plan.quirks.batched_weight_gradient = false;  // sums in another order
  return plan;
}

struct Drawn {
  int accepted = 0, offloading = 0, recomputing = 0, overlapping = 0;
};

void count(const Plan& plan, Drawn& drawn) {
  const auto has = [&](Action action) {
    return std::ranges::find(plan.decisions, action, &Decision::action) != plan.decisions.end();
  };
  ++drawn.accepted;
  drawn.offloading += has(Action::Offload);
  drawn.recomputing += has(Action::Recompute);
  drawn.overlapping += plan.overlap && has(Action::Recompute);
}

TEST(AnyExactPlan, ReplaysToVanillasBits) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Drawn drawn;
  std::uint64_t seed = first_seed;
  for (const Model& model : small_models()) {
    const auto trace = std::make_shared<const Trace>(
        build_trace(model, {.batch = 2, .attention = Attention::Math}));
    const NamedValues parameters = initial_parameters(*trace);
    const Replayed vanilla = replayed({trace, keep_everything(*trace), ""}, *backend, parameters);
    for (const int enough = drawn.accepted + 20; drawn.accepted < enough;) {
      ASSERT_LT(++seed, first_seed + 5000);  // most plans are refused: whole networks are delicate
      Dice dice(seed);
      const Plan plan = random_exact_plan(*trace, dice);
      if (!check(*trace, plan).empty()) continue;
      SCOPED_TRACE(testing::Message() << model.name << ", seed " << seed);
      const Replayed other = replayed({trace, plan, ""}, *backend, parameters);
      ASSERT_EQ(other.loss, vanilla.loss);
      ASSERT_TRUE(other.gradients == vanilla.gradients);
      count(plan, drawn);
    }
  }
  // Not a test of nothing.
  EXPECT_GT(drawn.offloading, 50);
  EXPECT_GT(drawn.recomputing, 50);
  EXPECT_GT(drawn.overlapping, 20);
}

}  // namespace
}  // namespace tidemark::profiler::any_plan_property_test
