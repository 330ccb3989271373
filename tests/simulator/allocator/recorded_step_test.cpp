// Calls of a capture are those of the plan that ran there, and of no other.
#include "simulator/allocator/recorded_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "simulator/allocator/allocator_replay.h"
#include "simulator/lower.h"
#include "tests/traces/small_trace.h"

namespace tidemark::allocator::recorded_step_test {
namespace {

using namespace literals;

constexpr std::int64_t mib = 1 << 20;

// 3 MiB are in a segment of 20. The first step has 30 MiB for a while, which stay in the pool.
Trace captured() {
  Trace trace = small_trace();
  trace.calls = RecordedCalls{.setup = {3 * mib},
                              .first_step = {30 * mib, -1, 5 * mib},
                              .step = {12 * mib, 4 * mib, -2, -1},
                              .work = 3,
                              .of = trace.step};
  return trace;
}

AllocatorResult result_of(const Trace& trace, std::string_view strategy = "vanilla",
                          const char* device = "a100-80gb") {
  const PlannedStep step =
      plan_step(std::make_shared<const Trace>(trace), parse_strategy(strategy));
  return replay_allocator(calls_of(step, lower(step), find_device(device)), {}, 80_GiB);
}

AllocatorResult derived_result(Trace trace, std::string_view strategy = "vanilla",
                               const char* device = "a100-80gb") {
  trace.calls.reset();
  return result_of(trace, strategy, device);
}

TEST(RecordedStep, IsReplayedCallByCall) {
  const AllocatorResult result = result_of(captured());
  // 3 + 5 MiB stay in the first segment, whose rest the 12 MiB fill; 4 MiB are of the second one.
  EXPECT_EQ(result.allocated_peak, 24_MiB);
  EXPECT_EQ(result.allocated_at_rest, 12_MiB);  // 4 MiB are freed behind the work
  EXPECT_EQ(result.reserved_peak, 20_MiB + 30_MiB);
}

TEST(RecordedStep, DoesNotCountWhatOnlyTheFirstStepAllocated) {
  EXPECT_LT(result_of(captured()).allocated_peak, 33_MiB);
}

TEST(RecordedStep, SaysNothingOfStrategiesThatDoOtherwise) {
  for (const char* strategy : {"checkpoint", "mesa", "offload", "approx-bp"})
    EXPECT_EQ(result_of(captured(), strategy), derived_result(captured(), strategy)) << strategy;
}

TEST(RecordedStep, SaysNothingOfAnotherStep) {
  Trace trace = captured();
  trace.step.accumulate = {2};
  EXPECT_EQ(result_of(trace), derived_result(trace));
}

TEST(RecordedStep, SaysNothingOfADeviceWithOtherKernels) {
  EXPECT_EQ(result_of(captured(), "vanilla", "h100"),
            derived_result(captured(), "vanilla", "h100"));
  EXPECT_NE(result_of(captured()), derived_result(captured()));
}

}  // namespace
}  // namespace tidemark::allocator::recorded_step_test
