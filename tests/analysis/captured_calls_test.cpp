// Captures that have the calls of PyTorch's allocator: what they allocate and reserve is what
// PyTorch measured, to the byte, and what the ops alone say is as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "analysis/comparison.h"
#include "tests/support/measured_steps.h"
#include "traces/trace_json.h"

namespace tidemark::captured_calls_test {
namespace {

const std::string reference = TIDEMARK_TESTS_DIR "/reference/";
constexpr Bytes unlimited{std::int64_t{1} << 59};

Trace trace_of(const MeasuredStep& step, const std::string& folder = reference + "captures") {
  return load_trace(folder + "/" + step.name + ".trace.json.zst");
}

Report report_of(Trace trace, const char* strategy, const char* device,
                 Bytes capacity = unlimited) {
  return evaluate(std::make_shared<const Trace>(std::move(trace)), parse_strategy(strategy),
                  find_device(device), MemoryBudget{capacity})
      .report;
}

class AllCapturedCalls : public testing::TestWithParam<const char*> {};

TEST_P(AllCapturedCalls, AllocateAndReserveWhatPyTorchDoesToTheByte) {
  for (const MeasuredStep& step : captured_steps(reference + GetParam())) {
    const Report replayed =
        report_of(trace_of(step, reference + GetParam()), "vanilla", "a100-80gb");
    EXPECT_EQ(replayed.allocated_peak.count, step.measured.allocated) << step.name;
    EXPECT_EQ(replayed.reserved_peak.count, step.measured.reserved) << step.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, AllCapturedCalls,
                         testing::Values("captures", "captures_torch-2.15"), [](const auto& test) {
                           return std::string(test.param) == "captures" ? "Torch2_6" : "Torch2_15";
                         });

// Two whose ops say less than the calls.
class CapturedCalls : public testing::Test {
 protected:
  static std::vector<MeasuredStep> two() {
    std::vector<MeasuredStep> steps = captured_steps(reference + "captures");
    std::erase_if(steps, [](const MeasuredStep& step) {
      return step.name != "gpt2-fp32" && step.name != "mixtral-bf16";
    });
    return steps;
  }
  const std::vector<MeasuredStep> steps_ = two();
};

TEST_F(CapturedCalls, FitInWhatTheyReserve) {
  ASSERT_EQ(steps_.size(), 2u);
  for (const MeasuredStep& step : steps_) {
    const Bytes reserved{step.measured.reserved};
    EXPECT_TRUE(report_of(trace_of(step), "vanilla", "a100-80gb", reserved).fits) << step.name;
    const Bytes too_small{step.measured.allocated - 1};
    EXPECT_FALSE(report_of(trace_of(step), "vanilla", "a100-80gb", too_small).fits) << step.name;
  }
}

TEST_F(CapturedCalls, LeaveWhatFollowsFromTheOps) {
  for (const MeasuredStep& step : steps_) {
    Trace without = trace_of(step);
    ASSERT_TRUE(without.calls) << step.name;
    without.calls.reset();
    const auto is_same = [&](const char* strategy, const char* device) {
      const Report with_calls = report_of(trace_of(step), strategy, device);
      const Report derived = report_of(without, strategy, device);
      EXPECT_EQ(with_calls.live_peak, derived.live_peak) << step.name;
      EXPECT_EQ(with_calls.saved.unique, derived.saved.unique) << step.name;
      return with_calls.reserved_peak == derived.reserved_peak &&
             with_calls.allocated_peak == derived.allocated_peak;
    };
    EXPECT_TRUE(is_same("vanilla", "a100-80gb")) << step.name;  // of these the ops say all, too
    EXPECT_TRUE(is_same("vanilla", "h100")) << step.name;
    EXPECT_TRUE(is_same("checkpoint", "a100-80gb")) << step.name;
  }
}

}  // namespace
}  // namespace tidemark::captured_calls_test
