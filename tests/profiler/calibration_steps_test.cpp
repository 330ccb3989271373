// What a calibration measures is what predictions later ask for.
#include "profiler/calibration_steps.h"

#include <gmock/gmock.h>

#include <set>

#include "simulator/cost/cost_model.h"
#include "simulator/cost/curve_keys.h"
#include "simulator/cost/device.h"
#include "simulator/lower.h"
#include "tests/profiler/replayed.h"

namespace tidemark::profiler::calibration_steps_test {
namespace {

using Keys = std::set<std::string>;

// Of the curves that a prediction looks up.
void add_keys(Keys& keys, const Trace& trace, std::string_view strategy) {
  const PlannedStep step = plan_step(std::make_shared<Trace>(trace), parse_strategy(strategy));
  if (!step.refusal.empty()) return;
  const Schedule schedule = lower(*step.trace, step.plan);
  const Device device = find_device("a100-80gb");
  const Needs needs = derive_needs(*step.trace);
  const CostModel costs(*step.trace, needs, device);
  for (const Step& s : schedule.steps)
    if (const Run* run = std::get_if<Run>(&s))
      if (costs.of(schedule, *run).time > Nanoseconds{})
        keys.insert(curve_keys(*step.trace, schedule, *run).kind);
}

Keys keys_of(const std::vector<CalibrationStep>& steps) {
  Keys keys;
  for (const CalibrationStep& step : steps)
    for (const char* strategy : calibration_strategies) add_keys(keys, step.trace, strategy);
  return keys;
}

TEST(CalibrationSteps, RunEveryKernelOfEveryNetwork) {
  const Keys measured = keys_of(calibration_steps(Ground::Process));
  Keys wanted;
  for (const Model& model : small_models())
    for (const Precision precision :
         {Precision::Fp32, Precision::Bf16, Precision::AmpFp16, Precision::AmpBf16})
      for (const Attention attention : {Attention::Math, Attention::Flash})
        for (const char* strategy : {"vanilla", "mesa", "lowmemorybp", "checkpoint", "pareprop"})
          add_keys(wanted,
                   build_trace(model, {.batch = 2, .precision = precision, .attention = attention}),
                   strategy);
  std::vector<std::string> missing;
  std::ranges::set_difference(wanted, measured, std::back_inserter(missing));
  EXPECT_THAT(missing, testing::IsEmpty());
  EXPECT_GT(wanted.size(), 100u);
  EXPECT_EQ(keys_of(calibration_steps(Ground::Device)), measured);
}

// What 10 µs of a kernel tell of one that takes a millisecond is wrong by a factor: a GPU's rates
// are reached by operands that fill it.
TEST(CalibrationSteps, OfADeviceFillIt) {
  std::int64_t widest = 0;
  for (const CalibrationStep& step : calibration_steps(Ground::Device)) {
    const Trace& trace = step.trace;
    EXPECT_GE(trace.step.batch, 16) << step.name;
    std::int64_t largest = 0;
    for (const Tensor& tensor : trace.tensors) largest = std::max(largest, size(tensor).count);
    EXPECT_GE(largest, std::int64_t{16} << 20) << step.name;
    for (const Tensor& tensor : trace.tensors)
      if (tensor.category == Category::Parameter && tensor.shape.rank() == 1)
        widest = std::max(widest, tensor.shape[0]);
  }
  EXPECT_GE(widest, 4096);
}

TEST(CalibrationSteps, AreOthersThanThoseHeldOut) {
  for (const Ground ground : {Ground::Process, Ground::Device})
    for (const CalibrationStep& held_out : held_out_steps(ground))
      for (const CalibrationStep& step : calibration_steps(ground))
        EXPECT_NE(held_out.trace, step.trace) << held_out.name;
}

// A depthwise convolution moves memory, a patch embedding multiplies matrices.
TEST(CalibrationSteps, TellConvolutionsInGroupsFromOthers) {
  Keys keys;
  add_keys(keys, build_trace(small_mvit(), {.batch = 2}), "vanilla");
  EXPECT_TRUE(keys.contains("forward conv2d float32"));
  EXPECT_TRUE(keys.contains("backward conv2d in groups float32"));
}

}  // namespace
}  // namespace tidemark::profiler::calibration_steps_test
