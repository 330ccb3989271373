// Steps that ran in PyTorch 2.6's own allocator, beside their predictions. The bounds are what the
// rules reach; docs/accuracy.md lists every step, and says why the worst are off.
#include "tests/support/measured_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace tidemark::measured_steps_test {
namespace {

struct Spread {
  double median = 0, ninth_of_ten = 0, worst = 0;
};

Spread spread_of(const std::vector<MeasuredStep>& steps, std::int64_t StepBytes::*number) {
  std::vector<double> off;
  for (const MeasuredStep& step : steps) {
    // What a checkpoint keeps is not held by nodes.
    if (number == &StepBytes::saved && step.strategy != "vanilla") continue;
    off.push_back(std::abs(percent_off(step.predicted.*number, step.measured.*number)));
  }
  std::ranges::sort(off);
  return {off[off.size() / 2], off[off.size() * 9 / 10], off.back()};
}

/// PVT v2 has depthwise convolutions, which ran without cuDNN: scratch of other kernels than those
/// that are predicted is in what was allocated.
std::vector<MeasuredStep> by_depthwise(const std::vector<MeasuredStep>& steps, bool have_them) {
  std::vector<MeasuredStep> chosen;
  for (const MeasuredStep& step : steps)
    if ((step.name.starts_with("pvt-v2") || step.name.find("-pvt_v2-") != std::string::npos) ==
        have_them)
      chosen.push_back(step);
  return chosen;
}

/// How far off the predictions of a fixture may be.
struct Bounds {
  const char* fixture;
  double live_worst, allocated_median, allocated_worst;
};

class MeasuredSteps : public testing::TestWithParam<Bounds> {
 protected:
  const std::vector<MeasuredStep> steps_ =
      measured_steps(std::string(TIDEMARK_TESTS_DIR "/reference/") + GetParam().fixture);
};

TEST_P(MeasuredSteps, HaveTheParametersThatWeCount) {
  for (const MeasuredStep& step : steps_) {
    EXPECT_EQ(step.predicted.parameters, step.measured.parameters) << step.name;
    EXPECT_EQ(step.predicted.trainable, step.measured.trainable) << step.name;
  }
}

TEST_P(MeasuredSteps, SaveWhatIsPredicted) {
  const Spread saved = spread_of(steps_, &StepBytes::saved);
  EXPECT_LE(saved.median, 0.01);
  EXPECT_LE(saved.worst, 1);
}

// Of a T5 whose encoder has one layer nothing reads what that layer adds to scores, so that its
// checkpoint drops it: 12 % of a step drawn by chance, 7 % of another. Of a mixture that is 4.2 %
// off the cause is not known (docs/accuracy.md).
std::vector<MeasuredStep> without_known_misses(std::vector<MeasuredStep> steps) {
  constexpr std::array<std::string_view, 2> known = {"61-56-t5", "58-20-t5"};
  std::erase_if(steps, [&](const MeasuredStep& step) {
    return std::ranges::any_of(known, [&](auto name) { return step.name.starts_with(name); });
  });
  return steps;
}

TEST_P(MeasuredSteps, HaveThePredictedPeaks) {
  const std::vector<MeasuredStep> steps = without_known_misses(steps_);
  const Spread live = spread_of(steps, &StepBytes::live);
  EXPECT_LE(live.median, 0.1);
  EXPECT_LE(live.worst, GetParam().live_worst);
  const Spread allocated = spread_of(by_depthwise(steps, false), &StepBytes::allocated);
  EXPECT_LE(allocated.median, GetParam().allocated_median);
  EXPECT_LE(allocated.worst, GetParam().allocated_worst);
}

TEST(MeasuredDepthwise, IsFartherOffBecauseCuDnnWasNotThere) {
  const std::vector<MeasuredStep> steps =
      by_depthwise(measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_families.json"), true);
  ASSERT_FALSE(steps.empty());
  EXPECT_LE(spread_of(steps, &StepBytes::allocated).worst, 8);
}

// In networks as small as these, tables of Swin's places weigh 0.1 to 0.3 %.
TEST(MeasuredSharedAttention, TakesLearnedBiasesAndMasksAsOneTensor) {
  const std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_shared_attention_transformers-5.json");
  EXPECT_EQ(steps.size(), 28u);
  const Spread saved = spread_of(steps, &StepBytes::saved);
  EXPECT_LE(saved.median, 0.08);
  EXPECT_LE(saved.worst, 0.35);
  const Spread live = spread_of(steps, &StepBytes::live);
  EXPECT_LE(live.median, 0.12);
  EXPECT_LE(live.worst, 0.65);
  const Spread allocated = spread_of(steps, &StepBytes::allocated);
  EXPECT_LE(allocated.median, 0.12);
  EXPECT_LE(allocated.worst, 0.65);
}

// What is not known yet of transformers 5 (docs/accuracy.md) showed where nobody had chosen the
// steps.
TEST(MeasuredByChance, OfTheNewestAreSeldomFarOff) {
  std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_by_chance_transformers-5.json");
  EXPECT_EQ(steps.size(), 189u);
  steps = without_known_misses(std::move(steps));
  const Spread live = spread_of(steps, &StepBytes::live);
  EXPECT_LE(live.median, 0.02);
  EXPECT_LE(live.ninth_of_ten, 0.2);
  EXPECT_LE(live.worst, 1.6);
  const Spread saved = spread_of(steps, &StepBytes::saved);
  EXPECT_LE(saved.median, 0.01);
  EXPECT_LE(saved.worst, 0.2);
  // Blocks that are not split: 6 and 3 % of two small steps (docs/accuracy.md).
  std::erase_if(steps, [](const MeasuredStep& step) {
    return step.name.starts_with("31-27-deberta") || step.name.starts_with("73-17-siglip");
  });
  const Spread allocated = spread_of(steps, &StepBytes::allocated);
  EXPECT_LE(allocated.median, 0.05);
  EXPECT_LE(allocated.worst, 2.1);
}

TEST(MeasuredByChance, OfFourFiftySevenAreSeldomFarOff) {
  const Spread live = spread_of(
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_by_chance.json"), &StepBytes::live);
  EXPECT_LE(live.median, 0.02);
  EXPECT_LE(live.ninth_of_ten, 0.15);
}

// What the encoder gives has a name while the head and the loss run.
TEST(MeasuredByChance, HeadsOfModernBertAreAsMeasured) {
  std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_by_chance.json");
  std::erase_if(steps, [](const MeasuredStep& step) {
    return step.name.find("-modernbert-amp-bf16-math-Question") == std::string::npos;
  });
  EXPECT_EQ(steps.size(), 2u);
  EXPECT_LE(spread_of(steps, &StepBytes::live).worst, 0.06);
}

// Whose code in transformers 5 is another one: GPT-2 without buffers of masks, ViT's layers with
// one name for all that they make.
TEST(MeasuredByChance, CheckpointsOfRewrittenModelsAreAsMeasured) {
  std::vector<MeasuredStep> steps =
      measured_steps(TIDEMARK_TESTS_DIR "/reference/steps_by_chance_transformers-5.json");
  std::erase_if(steps, [](const MeasuredStep& step) {
    return !(step.name.find("-vit-") != std::string::npos ||
             step.name.find("-gpt2-") != std::string::npos) ||
           step.strategy == "vanilla";
  });
  EXPECT_EQ(steps.size(), 5u);
  EXPECT_LE(spread_of(steps, &StepBytes::live).worst, 0.06);
}

// Mistral's own code in 4.47 makes rotary tables per layer, which its row does not say.
INSTANTIATE_TEST_SUITE_P(
    Fixtures, MeasuredSteps,
    testing::Values(Bounds{"steps_families.json", 1.3, 0.02, 2.3},
                    Bounds{"steps_families_transformers-5.json", 0.7, 0.02, 2.1},
                    Bounds{"steps_transformers-5.json", 0.02, 0.02, 1.5},
                    Bounds{"steps_experts_transformers-5.json", 0.03, 0.2, 3.1},
                    Bounds{"steps_h200.json", 0.02, 0.05, 0.2},
                    Bounds{"steps_transformers-4.57.json", 1.8, 0.02, 1.9},
                    Bounds{"steps_transformers-4.51.json", 0.02, 0.02, 1.3},
                    Bounds{"steps_transformers-4.47.json", 0.2, 0.1, 1.6},
                    // The worst allocated, 2.66 %, is a PVT's (68-10); why is not known.
                    Bounds{"steps_by_chance.json", 1.7, 0.03, 2.7}),
    [](const auto& test) {
      std::string name = test.param.fixture;  // ….json
      std::erase_if(name, [](char c) { return c == '-' || c == '_' || c == '.'; });
      return name.substr(0, name.size() - 4);
    });

}  // namespace
}  // namespace tidemark::measured_steps_test
