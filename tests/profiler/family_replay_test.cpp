// Networks with opaque ops that have formulas: their memory is what was predicted, and what runs
// again gives the same bits.
#include <gmock/gmock.h>

#include "analysis/report.h"
#include "tests/profiler/replayed.h"
#include "tests/support/small_families.h"

namespace tidemark::profiler::family_replay_test {
namespace {

constexpr std::array precisions = {Precision::Fp32, Precision::Bf16, Precision::AmpBf16};

std::shared_ptr<const Trace> network_of(const SmallStep& step, Precision precision) {
  StepOptions options = step.options;
  options.batch = 2, options.precision = precision;
  return std::make_shared<Trace>(build_trace(step.model, options));
}

Evaluation evaluated(std::shared_ptr<const Trace> trace, std::string_view strategy) {
  return evaluate(std::move(trace), parse_strategy(strategy), find_device("a100-80gb"),
                  {.capacity = Bytes{std::int64_t{1} << 40}});
}

void expect_as_predicted(const Evaluation& predicted, Backend& backend) {
  Replay replay(predicted.planned, backend);
  EXPECT_EQ(replay.arena_memory(), predicted.report.planned);
  load(replay, initial_parameters(*predicted.planned.trace));
  const ReplayedStep step = replay.step({.seed = 7});
  EXPECT_TRUE(std::isfinite(step.loss));
  const Peak most = peak(predicted.schedule, step.timeline);
  EXPECT_EQ(most.bytes, predicted.report.live_peak);
  EXPECT_EQ(most.by_category, predicted.report.at_peak);
}

void expect_same_bits(const std::shared_ptr<const Trace>& trace, Backend& backend) {
  const NamedValues parameters = initial_parameters(*trace);
  const Replayed vanilla =
      replayed(plan_step(trace, parse_strategy("vanilla")), backend, parameters);
  EXPECT_EQ(std::ssize(vanilla.gradients),
            std::ranges::count_if(trace->tensors, &Tensor::trainable));
  for (const auto& [name, gradient] : vanilla.gradients)
    EXPECT_TRUE(std::isfinite(norm_of(gradient))) << name;
  for (const std::string_view strategy : {"checkpoint", "overlap+checkpoint", "offload"}) {
    const PlannedStep planned = plan_step(trace, parse_strategy(strategy));
    if (!planned.refusal.empty()) continue;  // offload: a stage of one block
    SCOPED_TRACE(strategy);
    const Replayed other = replayed(planned, backend, parameters);
    EXPECT_EQ(other.loss, vanilla.loss);
    EXPECT_EQ(other.gradients, vanilla.gradients);
  }
}

void expect_all(const SmallStep& step) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  for (const Precision precision : precisions) {
    SCOPED_TRACE(testing::Message() << step.model.name << ' ' << to_string(precision));
    const auto trace = network_of(step, precision);
    for (const std::string_view strategy : {"vanilla", "checkpoint", "mesa"}) {
      const Evaluation predicted = evaluated(trace, strategy);
      SCOPED_TRACE(strategy);
      if (predicted.report.applies) expect_as_predicted(predicted, *backend);
    }
    expect_same_bits(trace, *backend);
  }
}

class FamilyReplay : public testing::TestWithParam<SmallStep> {};

INSTANTIATE_TEST_SUITE_P(Small, FamilyReplay, testing::ValuesIn(small_steps_with_formulas()),
                         [](const auto& of) {
                           std::string name = short_name(of.param.model);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(FamilyReplay, IsAsPredictedAndChangesNoBit) { expect_all(GetParam()); }

TEST(FamilyReplay, AdaptersOnBasesInFewBits) {
  for (const BaseWeights base : {BaseWeights::Nf4, BaseWeights::Nf4Double, BaseWeights::Int8})
    expect_all({small_llama(2), small_qlora(base)});
}

// All experts get tokens, and so gradients.
TEST(FamilyReplay, EveryExpertLearns) {
  const auto trace = network_of({small_mixtral(), {}}, Precision::Fp32);
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const Replayed vanilla =
      replayed(plan_step(trace, parse_strategy("vanilla")), *backend, initial_parameters(*trace));
  for (int expert = 0; expert < 5; ++expert)
    for (const char* weight : {"gate", "up", "down"}) {
      const std::string name = fmt::format("blocks.1.mlp.experts.{}.{}.weight", expert, weight);
      ASSERT_TRUE(vanilla.gradients.contains(name)) << name;
      EXPECT_GT(norm_of(vanilla.gradients.at(name)), 0) << name;
    }
  EXPECT_GT(norm_of(vanilla.gradients.at("blocks.1.mlp.router.weight")), 0);
}

}  // namespace
}  // namespace tidemark::profiler::family_replay_test
