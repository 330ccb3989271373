// Rates that are found again from the steps that they make, and what cannot be told from few steps.
#include "analysis/rate_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulator/cost/toy_device.h"

namespace tidemark::rate_fit_test {
namespace {

// Shares of a step, in ns on a device whose rates are all 1.
struct Work {
  double products, memory, attention, launches;
};

// Runs one after the other, or as fast as the host launches.
Nanoseconds time_of(const Work& work, const Device& device) {
  const double gpu = work.products / device.gemm_efficiency[0] +
                     work.memory / device.memory_efficiency +
                     work.attention / device.attention_efficiency.value_or(1);
  return Nanoseconds{static_cast<std::int64_t>(
      std::max(gpu, work.launches * static_cast<double>(device.host_launch.count())))};
}

Device before() {
  Device device = toy_device();
  device.gemm_efficiency.fill(0.8);
  device.memory_efficiency = 0.8;
  device.attention_efficiency = 0.4;
  device.host_launch = Nanoseconds{5000};
  return device;
}

RateFit fit_to(const Device& truth, const std::vector<Work>& steps) {
  std::vector<Nanoseconds> measured;
  for (const Work& work : steps) measured.push_back(time_of(work, truth));
  return fit_rates(before(), measured,
                   [&](const Device& device, std::size_t i) { return time_of(steps[i], device); });
}

constexpr Work wide{8e8, 2e8, 1e8, 100}, narrow{2e8, 6e8, 1e8, 100}, distant{2e8, 1e8, 9e8, 100},
    small{1e7, 1e7, 0, 20'000};

TEST(RateFit, FindsTheRatesThatMadeTheSteps) {
  Device truth = before();
  truth.gemm_efficiency.fill(0.6);
  truth.memory_efficiency = 0.5;
  truth.attention_efficiency = 0.3;
  truth.host_launch = Nanoseconds{20'000};
  const RateFit fit = fit_to(truth, {wide, narrow, distant, small});
  EXPECT_NEAR(fit.device.gemm_efficiency[0], 0.6, 0.01);
  EXPECT_NEAR(fit.device.memory_efficiency, 0.5, 0.01);
  EXPECT_NEAR(*fit.device.attention_efficiency, 0.3, 0.01);
  EXPECT_NEAR(static_cast<double>(fit.device.host_launch.count()), 20'000, 400);
  for (const RateFit::Step& step : fit.steps) EXPECT_LT(step.before, step.fitted);
}

// Nothing moves where nothing has to.
TEST(RateFit, OfADeviceThatIsRightIsTheDevice) {
  const RateFit fit = fit_to(before(), {wide, narrow, small});
  for (const RateFit::Rate& rate : fit.rates) EXPECT_NEAR(rate.factor, 1, 1e-3) << rate.name;
}

// One step does not say which rate is off: all give way as far as it depends on them, and what it
// does not depend on stays.
TEST(RateFit, OfOneStepStaysNearTheDevicesOwn) {
  Device truth = before();
  truth.gemm_efficiency.fill(0.6);
  const Work step{8e8, 2e8, 0, 100};
  const RateFit fit = fit_to(truth, {step});
  EXPECT_LT(fit.rates[0].factor, fit.rates[1].factor);
  EXPECT_LT(fit.rates[1].factor, 1);
  EXPECT_NEAR(fit.rates[2].factor, 1, 1e-9);
  EXPECT_NEAR(fit.rates[3].factor, 1, 1e-9);
  EXPECT_NEAR(static_cast<double>(fit.steps[0].fitted.count()) /
                  static_cast<double>(time_of(step, truth).count()),
              1, 0.02);
  EXPECT_EQ(fit.steps[0].left_out, fit.steps[0].before);
}

TEST(RateFit, SaysWhatItChangedAndFromWhat) {
  Device truth = before();
  truth.memory_efficiency = 0.5;
  const RateFit fit = fit_to(truth, {wide, narrow});
  EXPECT_THAT(fit.device.sources.at("memory_efficiency").text,
              testing::StartsWith("fitted to 2 timed steps; 0.8 before"));
  EXPECT_EQ(fit.device.sources.at("memory_efficiency").kind, FigureKind::Derived);
  EXPECT_FALSE(fit.device.sources.contains("capacity"));
  EXPECT_EQ(fit.device.name, before().name);
  EXPECT_EQ(fit.device.title, " (fitted to 2 timed steps)");
  const RateFit again =
      fit_rates(fit.device, {2 * time_of(wide, truth)},
                [](const Device& device, std::size_t) { return time_of(wide, device); });
  EXPECT_EQ(again.device.title, " (fitted to 1 timed step)");
  const std::string source = again.device.sources.at("memory_efficiency").text;
  EXPECT_EQ(source.find(" before: "), source.rfind(" before: ")) << source;
}

}  // namespace
}  // namespace tidemark::rate_fit_test
