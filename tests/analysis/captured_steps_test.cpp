// Traces that were captured from PyTorch models of many kinds, beside what PyTorch's own allocator
// said of the same steps. docs/accuracy.md lists them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/comparison.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "tests/support/measured_steps.h"
#include "traces/trace_json.h"

namespace tidemark {
namespace {

const std::string folder = TIDEMARK_TESTS_DIR "/reference/captures";

const std::vector<MeasuredStep>& steps() {
  static const std::vector<MeasuredStep> all = captured_steps(folder);
  return all;
}

TEST(CapturedSteps, SaveWhatPyTorchSavesToTheByte) {
  for (const MeasuredStep& step : steps())
    EXPECT_EQ(step.predicted.saved, step.measured.saved) << step.name;
}

// The variable of the loss and the gradient that the backward begins with are 4 bytes each; here
// they are gone sooner.
TEST(CapturedSteps, HaveThePeakOfLiveStoragesUpToTheLossItself) {
  for (const MeasuredStep& step : steps()) {
    EXPECT_LE(step.predicted.live, step.measured.live) << step.name;
    EXPECT_GE(step.predicted.live, step.measured.live - 8) << step.name;
  }
}

TEST(CapturedSteps, HaveTheAllocatedPeakWithinAFewPerCent) {
  std::vector<double> off;
  for (const MeasuredStep& step : steps())
    off.push_back(std::abs(percent_off(step.predicted.allocated, step.measured.allocated)));
  std::ranges::sort(off);
  EXPECT_LE(off[off.size() / 2], 0.8);
  EXPECT_LE(off.back(), 2.5);
}

TEST(CapturedSteps, HaveTheParametersThatTheModelHas) {
  for (const MeasuredStep& step : steps())
    EXPECT_EQ(step.predicted.trainable, step.measured.trainable) << step.name;
}

// Nothing of a strategy may need a known family.
TEST(CapturedSteps, AreLoweredByEveryStrategyAsTheJudgeAccepts) {
  for (const MeasuredStep& step : steps()) {
    const auto trace =
        std::make_shared<const Trace>(load_trace(folder + "/" + step.name + ".trace.json.zst"));
    for (const StrategySpec& strategy : default_strategies()) {
      const PlannedStep planned = plan_step(trace, strategy);
      EXPECT_THAT(validate(*planned.trace, lower(planned)), testing::IsEmpty())
          << step.name << ", " << strategy.text;
    }
  }
}

}  // namespace
}  // namespace tidemark
