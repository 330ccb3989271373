// Whole networks on real kernels: what a strategy may change, and what it must not.
#include <gmock/gmock.h>

#include "analysis/report.h"
#include "profiler/replay_report.h"
#include "tests/profiler/replayed.h"

namespace tidemark::profiler::replay_test {
namespace {

StepOptions step_of(Precision precision, std::optional<Attention> attention = {}) {
  return {.batch = 2, .precision = precision, .attention = attention};
}

std::string name_of(const testing::TestParamInfo<Model>& info) { return short_name(info.param); }

class Network : public testing::TestWithParam<Model> {
 protected:
  Trace trace(const StepOptions& step = step_of(Precision::Fp32)) const {
    return build_trace(GetParam(), step);
  }
  PlannedStep plan(std::string_view strategy, const StepOptions& step) const {
    return plan_step(std::make_shared<Trace>(trace(step)), parse_strategy(strategy));
  }
  Replayed run(const PlannedStep& step) {
    return replayed(step, *backend_, initial_parameters(*step.trace));
  }
  Replayed run(std::string_view strategy, const StepOptions& step = step_of(Precision::Fp32)) {
    const PlannedStep planned = plan(strategy, step);
    EXPECT_EQ(planned.refusal, "") << strategy;
    return run(planned);
  }

  // GPT-2's GELU is several kernels in vanilla, which round in between, and one in the 2-bit form.
  bool composes_gelu() const { return GetParam().family == "gpt2"; }

  std::unique_ptr<Backend> backend_ = make_cpu_backend();
};

INSTANTIATE_TEST_SUITE_P(Small, Network, testing::ValuesIn(small_models()), name_of);

TEST_P(Network, HasALossNearChanceAndAGradientPerParameter) {
  const Trace network = trace();
  const Replayed vanilla = run("vanilla");
  const bool is_vision = network.step.image || network.tensors[0].name == "images";
  EXPECT_NEAR(vanilla.loss, std::log(is_vision ? 10 : 61), 1);
  const auto trainable = std::ranges::count_if(network.tensors, &Tensor::trainable);
  EXPECT_EQ(std::ssize(vanilla.gradients), trainable);
  for (const auto& [name, gradient] : vanilla.gradients)
    EXPECT_TRUE(std::isfinite(norm_of(gradient))) << name;
}

// What a calibration asks for: the same memory, and values that a step can bear.
TEST_P(Network, StepsWithAFewNumbersAgainAndAgain) {
  ReplayScenario scenario;
  scenario.trace = std::make_shared<const Trace>(trace());
  scenario.strategy = parse_strategy("lowmemorybp");
  scenario.device = find_device("a100-80gb");
  scenario.steps = 1, scenario.warm_up = 0, scenario.checks_gradients = false;
  scenario.repeats_values = true;
  const ReplayEvaluation evaluation = replay(scenario, *backend_);
  if (!evaluation.report.applies) return;
  EXPECT_TRUE(std::isfinite(evaluation.report.losses.at(0)));
  EXPECT_EQ(evaluation.report.measured.planned, evaluation.report.predicted.planned);
}

TEST_P(Network, WritesAPartUntilTheTensorIsFull) {
  Replay replay(plan("vanilla", step_of(Precision::Fp32)), *backend_);
  const TensorId id = TensorId{static_cast<std::uint32_t>(
      std::ranges::find(replay.trace().tensors, Category::Parameter, &Tensor::category) -
      replay.trace().tensors.begin())};
  const auto size = static_cast<std::size_t>(tidemark::size(replay.trace()[id]).count);
  const std::vector<std::byte> part = {std::byte{1}, std::byte{2}, std::byte{3}};
  replay.write_again_and_again(id, part);
  std::vector<std::byte> found(size);
  replay.read(id, found.data());
  for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(found[i], part[i % 3]) << i;
}

// The k-th tensor that is there before the step, whatever it is called.
NamedValues by_place(const Trace& trace, const NamedValues& values) {
  NamedValues placed;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (const auto found = values.find(trace.tensors[t].name); found != values.end())
      placed[std::to_string(t)] = found->second;
  return placed;
}

// No name means anything to a replay: not a tensor's, not an op's, not the model's.
TEST_P(Network, IsTheSameUnderOtherNames) {
  const StepOptions step = step_of(Precision::Fp32, Attention::Math);
  Trace renamed = trace(step);
  renamed.model = renamed.family = "";
  for (std::size_t t = 0; t < renamed.tensors.size(); ++t)
    renamed.tensors[t].name = renamed.names.add("t" + std::to_string(t));
  for (std::size_t o = 0; o < renamed.ops.size(); ++o)
    renamed.ops[o].name = renamed.names.add(std::to_string(o));
  for (std::size_t b = 0; b < renamed.blocks.size(); ++b)
    renamed.blocks[b].name = renamed.names.add(std::to_string(b));
  const auto other = std::make_shared<const Trace>(renamed);
  for (const std::string_view strategy : {"vanilla", "checkpoint", "mesa"}) {
    const PlannedStep usual = plan(strategy, step);
    const PlannedStep nameless = plan_step(other, parse_strategy(strategy));
    const Replayed a = run(usual), b = run(nameless);
    EXPECT_EQ(a.loss, b.loss) << strategy;
    EXPECT_EQ(by_place(*usual.trace, a.gradients), by_place(*nameless.trace, b.gradients))
        << strategy;
  }
}

// ... and gradients that are not all zero, from the loss to the first layer.
TEST_P(Network, TrainsWithEachOfItsHeads) {
  for (const Head head : heads_of(GetParam().config)) {
    StepOptions step = step_of(Precision::Fp32);
    step.head = head, step.dropout = 0;
    const Replayed vanilla = run("vanilla", step);
    EXPECT_TRUE(std::isfinite(vanilla.loss)) << to_string(head);
    const Trace network = trace(step);
    EXPECT_EQ(std::ssize(vanilla.gradients),
              std::ranges::count_if(network.tensors, &Tensor::trainable))
        << to_string(head);
    const auto has_numbers = [&](std::string_view name) {
      const auto found = vanilla.gradients.find(std::string(name));
      return found != vanilla.gradients.end() && norm_of(found->second) > 0;
    };
    const bool is_vision = network.tensors[0].name == "images";
    EXPECT_TRUE(has_numbers(is_vision ? "patch_embed.weight" : "embed.weight")) << to_string(head);
    EXPECT_EQ(run("checkpoint", step).gradients, vanilla.gradients) << to_string(head);
  }
}

TEST_P(Network, FlashAndMathAttentionAreTheSameFunction) {
  StepOptions with_scores = step_of(Precision::Fp32, Attention::Math);
  with_scores.dropout = 0;  // its keys are numbers of ops, of which the two forms differ
  StepOptions fused = with_scores;
  fused.attention = Attention::Flash;
  const Replayed math = run("vanilla", with_scores), flash = run("vanilla", fused);
  EXPECT_NEAR(math.loss, flash.loss, 1e-6);
  const GradientDifference difference = gradient_difference(flash.gradients, math.gradients);
  EXPECT_LT(difference.largest, 1e-4) << difference.parameter;
}

// What runs again gives the same bits, on one stream or two.
TEST_P(Network, CheckpointingIsBitIdentical) {
  for (const Precision precision : {Precision::Fp32, Precision::Bf16, Precision::AmpFp16}) {
    const StepOptions step = step_of(precision, Attention::Math);
    const Replayed vanilla = run("vanilla", step);
    for (const std::string_view strategy : {"checkpoint", "checkpoint:every=2", "checkpoint:sqrt",
                                            "checkpoint:selective", "overlap+checkpoint"}) {
      SCOPED_TRACE(std::string(strategy) + " " + std::string(to_string(precision)));
      const PlannedStep planned = plan(strategy, step);
      if (!planned.refusal.empty()) continue;  // selective: MViT's pooled attention
      const Replayed other = run(planned);
      EXPECT_EQ(other.loss, vanilla.loss);
      EXPECT_EQ(other.gradients, vanilla.gradients);
    }
  }
}

// What waits in the host's memory comes back as it was, and micro-batches of the same data add up
// to as many times its gradient.
TEST_P(Network, OffloadAndMicroBatchesChangeNoBit) {
  StepOptions step = step_of(Precision::Fp32);
  Replayed twice = run("vanilla", step);
  for (auto& [name, gradient] : twice.gradients)
    for (double& number : gradient) number *= 2;
  step.accumulate.count = 2;
  const Replayed vanilla = run("vanilla", step);
  EXPECT_EQ(vanilla.loss, twice.loss);
  EXPECT_LT(gradient_difference(vanilla.gradients, twice.gradients).largest, 1e-6);
  for (const std::string_view strategy :
       {"checkpoint", "offload", "offload:every=2,prefetch=0", "checkpoint+overlap+offload"}) {
    SCOPED_TRACE(strategy);
    const PlannedStep planned = plan(strategy, step);
    if (!planned.refusal.empty()) continue;  // offload: a network of one block
    const Replayed other = run(planned);
    EXPECT_EQ(other.loss, vanilla.loss);
    EXPECT_EQ(other.gradients, vanilla.gradients);
  }
}

TEST_P(Network, ReversibleGradientsAreThoseOfStoredActivationsUpToRounding) {
  const PlannedStep reversible = plan("reversible", step_of(Precision::Fp32));
  const Replayed inverted = run(reversible), kept = run(stored(reversible));
  EXPECT_EQ(inverted.loss, kept.loss);
  EXPECT_LT(gradient_difference(inverted.gradients, kept.gradients).largest, 1e-4);
}

TEST_P(Network, TheSecondStreamChangesNoBit) {
  if (const PlannedStep step = plan("reversible", step_of(Precision::Fp32));
      !step.refusal.empty()) {
    // GPT-NeoX runs both branches at once.
    EXPECT_THAT(step.refusal, testing::HasSubstr("no block has two residual branches"));
    return;
  }
  const Replayed reversible = run("reversible");
  for (const std::string_view strategy : {"pareprop", "pareprop:hoist"}) {
    const Replayed parallel = run(strategy);
    EXPECT_EQ(parallel.loss, reversible.loss);
    EXPECT_EQ(parallel.gradients, reversible.gradients) << strategy;
  }
}

TEST_P(Network, TheForwardStaysExactWhereOnlyTheBackwardIsApproximate) {
  const Replayed vanilla = run("vanilla");
  for (const std::string_view strategy :
       {"mesa", "mesa:released", "mesa:delayed", "mesa:bits=4", "mesa:bits=2",
        "mesa:bits=2,group=8", "mesa:delayed,bits=4", "fp8-activations", "approx-bp"}) {
    SCOPED_TRACE(strategy);
    const Replayed other = run(strategy);
    if (strategy == "approx-bp" && composes_gelu())
      EXPECT_NEAR(other.loss, vanilla.loss, 1e-6);
    else
      EXPECT_EQ(other.loss, vanilla.loss);
    const NamedValues reference = without_zeros(vanilla.gradients);
    NamedValues found = other.gradients;
    std::erase_if(found, [&](const auto& g) { return !reference.contains(g.first); });
    const GradientDifference difference = gradient_difference(found, reference);
    EXPECT_FALSE(difference.bit_identical);
    // Eight bits are near; two bits are a step where x is near 0, as in a network that has not
    // learned. Parameters whose gradients come before that of any activation stay exact.
    if (!std::ranges::count(std::array<std::string_view, 4>{"mesa", "mesa:released", "mesa:delayed",
                                                            "fp8-activations"},
                            strategy))
      continue;
    EXPECT_LT(difference.largest, 0.2) << difference.parameter;
  }
}

/// Gradients of the last of some steps, each of which has data of its own, and none an update.
NamedValues gradients_on_new_data(const PlannedStep& step, Backend& backend, int steps) {
  Replay replay(step, backend);
  replay.keep_gradients();
  const NamedValues parameters = initial_parameters(*step.trace);
  for (int i = 0; i < steps; ++i) {
    load(replay, parameters, 100 + static_cast<std::uint64_t>(i));
    replay.step({.number = i, .seed = 7, .updates = false});
  }
  NamedValues gradients;
  for (std::size_t t = 0; t < step.trace->tensors.size(); ++t)
    if (const auto found = replay.gradient(static_cast<TensorId>(t)); !found.empty())
      gradients[step.trace->tensors[t].name] = found;
  return gradients;
}

// The range of the steps before is not that of this one, of two samples at that, and GELU's output
// is not coded but made again from a code. Measured: 0.93 to 1.5 times mesa's error
// (docs/replay.md).
TEST_P(Network, DelayedRangesErrLittleMoreThanThoseOfTheStepItself) {
  const StepOptions step = step_of(Precision::Fp32);
  const NamedValues exact = gradients_on_new_data(plan("vanilla", step), *backend_, 1 + 5);
  const auto error = [&](std::string_view strategy) {
    return gradient_difference(gradients_on_new_data(plan(strategy, step), *backend_, 1 + 5), exact)
        .overall;
  };
  const double mesa = error("mesa"), delayed = error("mesa:delayed");
  RecordProperty("mesa", std::to_string(mesa));
  RecordProperty("delayed", std::to_string(delayed));
  EXPECT_GT(delayed, 0);
  EXPECT_LT(delayed, 2 * mesa);
}

// A float of four digits is off by a sixteenth at most, and by 0.026 of itself if its digits are
// even: √(mean over 1 ≤ x < 2 of (2^-4)²/12/x²) = 2^-4/√24. What reads several such errs by less
// than twice that (docs/replay.md).
TEST_P(Network, FloatsErrByTheirDigits) {
  const StepOptions step = step_of(Precision::Fp32);
  const NamedValues exact = gradients_on_new_data(plan("vanilla", step), *backend_, 1 + 5);
  const double error =
      gradient_difference(gradients_on_new_data(plan("fp8-activations", step), *backend_, 1 + 5),
                          exact)
          .overall;
  RecordProperty("fp8_activations", std::to_string(error));
  EXPECT_GT(error, 0.002);
  EXPECT_LT(error, 2 * 0.026);
}

// In fp32 the slopes are off by 3e-5, and by 1e-4 beside the minimum.
TEST_P(Network, InvertedActivationsAreExactButForRounding) {
  const Replayed vanilla = run("vanilla"), other = run("invert-act");
  if (composes_gelu())
    EXPECT_NEAR(other.loss, vanilla.loss, 1e-6);
  else
    EXPECT_EQ(other.loss, vanilla.loss);
  const GradientDifference difference = gradient_difference(other.gradients, vanilla.gradients);
  EXPECT_FALSE(difference.bit_identical);
  EXPECT_LT(difference.overall, 1e-4) << difference.parameter;
}

// A code's step is r/255, r/15 or r/3. What single gradients make of it: mesa_kernels_test.cpp.
TEST_P(Network, ShorterCodesGiveNoisierGradients) {
  const Replayed vanilla = run("vanilla");
  const auto error = [&](std::string_view strategy) {
    return gradient_difference(run(strategy).gradients, vanilla.gradients).overall;
  };
  EXPECT_EQ(error("checkpoint"), 0);
  const double eight = error("mesa:bits=8");
  EXPECT_GT(error("mesa:bits=4"), 4 * eight);
  EXPECT_GT(error("mesa:bits=2"), 4 * eight);
}

TEST_P(Network, GradientsBehindTheLastActivationAreExactUnderApproxBp) {
  const Replayed vanilla = run("vanilla"), other = run("approx-bp");
  const char* last = GetParam().family == "bert" ? "lm_head.bias" : "norm.weight";
  ASSERT_TRUE(vanilla.gradients.contains(last));
  const NamedValues wanted = {{last, vanilla.gradients.at(last)}};
  const NamedValues found = {{last, other.gradients.at(last)}};
  const double tolerance = composes_gelu() ? 1e-5 : 0;
  EXPECT_LE(gradient_difference(found, wanted).largest, tolerance);
}

TEST_P(Network, NormsWithMergedAffineAreTheSameFunction) {
  const PlannedStep shared = plan("ms-bp", step_of(Precision::Fp32));
  const PlannedStep exact = plan("vanilla", step_of(Precision::Fp32));
  const NamedValues parameters = initial_parameters(*exact.trace);
  const Replayed expected = replayed(exact, *backend_, parameters);
  const Replayed found =
      replayed(shared, *backend_, merge_affine(*exact.trace, *shared.trace, parameters));
  EXPECT_NEAR(found.loss, expected.loss, 1e-6);
  const NamedValues gradients =
      unmerge_gradients(*exact.trace, *shared.trace, parameters, found.gradients);
  const GradientDifference difference = gradient_difference(gradients, expected.gradients);
  EXPECT_LT(difference.largest, 1e-4) << difference.parameter;
}

TEST(Replay, GradientsOfAdaptersAreThoseOfTheWholeNetwork) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  StepOptions step = step_of(Precision::Fp32);
  step.tuning = parse_tuning("lora:r=4,targets=q,v");
  const PlannedStep adapters = planned(small_llama(), step, "vanilla");
  const Replayed result = replayed(adapters, *backend, initial_parameters(*adapters.trace));
  for (const auto& [name, gradient] : result.gradients) {
    EXPECT_THAT(name, testing::AnyOf(testing::HasSubstr("lora"), testing::HasSubstr("head")));
    EXPECT_GT(norm_of(gradient), 0) << name;
  }
}

TEST(Replay, LearnsOneBatchByHeart) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const PlannedStep vanilla = planned(small_vit(), step_of(Precision::Fp32), "vanilla");
  Replay replay(vanilla, *backend);
  load(replay, initial_parameters(*vanilla.trace));
  double first = 0, last = 0;
  for (std::int64_t i = 0; i < 30; ++i) {
    last = replay.step({.number = i, .seed = 7, .learning_rate = 1e-2}).loss;
    if (i == 0) first = last;
  }
  EXPECT_LT(last, first / 10);
}

}  // namespace
}  // namespace tidemark::profiler::replay_test
