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

const std::string folder = TIDEMARK_TESTS_DIR "/reference/captures_calls";
constexpr Bytes unlimited{std::int64_t{1} << 59};

Trace trace_of(const MeasuredStep& step) {
  return load_trace(folder + "/" + step.name + ".trace.json.zst");
}

Report report_of(Trace trace, const char* strategy, const char* device,
                 Bytes capacity = unlimited) {
  return evaluate(std::make_shared<const Trace>(std::move(trace)), parse_strategy(strategy),
                  find_device(device), MemoryBudget{capacity})
      .report;
}

class CapturedCalls : public testing::Test {
 protected:
  const std::vector<MeasuredStep> steps_ = captured_steps(folder);
};

TEST_F(CapturedCalls, AllocateAndReserveWhatPyTorchDoesToTheByte) {
  ASSERT_EQ(steps_.size(), 2u);
  for (const MeasuredStep& step : steps_) {
    EXPECT_EQ(step.predicted.allocated, step.measured.allocated) << step.name;
    EXPECT_EQ(step.predicted.reserved, step.measured.reserved) << step.name;
  }
}

TEST_F(CapturedCalls, FitInWhatTheyReserve) {
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
    const auto same = [&](const char* strategy, const char* device, bool same_allocator) {
      const Report with_calls = report_of(trace_of(step), strategy, device);
      const Report derived = report_of(without, strategy, device);
      EXPECT_EQ(with_calls.live_peak, derived.live_peak) << step.name;
      EXPECT_EQ(with_calls.saved.unique, derived.saved.unique) << step.name;
      EXPECT_EQ(with_calls.reserved_peak == derived.reserved_peak &&
                    with_calls.allocated_peak == derived.allocated_peak,
                same_allocator)
          << step.name << ", " << strategy << ", " << device;
    };
    same("vanilla", "a100-80gb", false);
    same("vanilla", "h100", true);
    same("checkpoint", "a100-80gb", true);
  }
}

}  // namespace
}  // namespace tidemark::captured_calls_test
