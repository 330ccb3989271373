// How steps are timed where a clock between two runs costs time, as on a GPU: on a device whose
// kernels all take 10 µs, and 13 with clocks around them.
#include <gmock/gmock.h>

#include "profiler/calibrate.h"
#include "profiler/null_backend.h"
#include "profiler/replay_report.h"
#include "tests/support/small_models.h"

namespace tidemark::profiler::timing_test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class DeviceWithClocks final : public NullBackend {
 public:
  explicit DeviceWithClocks(Bytes capacity = {std::int64_t{80} << 30}) : capacity_(capacity) {}

  Ground ground() const override { return Ground::Device; }
  Bytes capacity() const override { return capacity_; }
  std::optional<DeviceTraits> traits() const override {
    return DeviceTraits{"9.0", 132, 1.98e9, {50 << 20}};
  }
  std::string remark() const override { return "3 products were slow"; }
  void time_by(Timing timing) override { timing_ = timing; }
  std::optional<Nanoseconds> step_time() const override { return step_time_; }
  std::vector<Ran> finish() override {
    std::vector<Ran> ran = NullBackend::finish();
    const bool is_whole = timing_ == Timing::WholeStep;
    Nanoseconds now{};
    for (Ran& one : ran) {
      one.begin = now;
      now += is_whole ? 10us : 13us;
      one.end = now;
    }
    step_time_.reset();
    if (is_whole) step_time_ = now;
    (is_whole ? whole_steps : clocked_steps) += 1;
    return ran;
  }
  int whole_steps = 0, clocked_steps = 0;

 private:
  Bytes capacity_;
  Timing timing_ = Timing::EachRun;
  std::optional<Nanoseconds> step_time_;
};

TEST(Timing, AStepIsTimedWithoutClocksBetweenItsRuns) {
  ReplayScenario q;
  q.trace = std::make_shared<Trace>(build_trace(small_vit(), {.batch = 2}));
  q.strategy = parse_strategy("vanilla");
  q.device = find_device("a100-80gb");
  q.steps = 4, q.warm_up = usual_warm_up(Ground::Device), q.checks_gradients = false;
  DeviceWithClocks backend;
  std::int64_t last = 0, all = 0;
  const ReplayReport report = replay(q, backend, [&](std::int64_t done, std::int64_t total) {
                                last = done, all = total;
                              }).report;
  EXPECT_EQ(backend.whole_steps, 9);  // 5 to warm up
  EXPECT_EQ(backend.clocked_steps, 3);
  EXPECT_EQ(last, all);
  EXPECT_EQ(report.steps_timed, 4);
  EXPECT_EQ(report.losses.size(), 9u);
  EXPECT_EQ(report.fastest, report.measured.step);
  // The copy of the loss is a run, too, and belongs to no step of the schedule.
  ASSERT_TRUE(report.run_by_run.has_value());
  EXPECT_EQ(report.measured.step % 10us, 0ns);
  EXPECT_EQ(*report.run_by_run, report.measured.step / 10 * 13);
  EXPECT_EQ(report.remark, "3 products were slow");
}

TEST(Timing, WhatClocksCostIsMeasured) {
  DeviceWithClocks backend;
  EXPECT_EQ(clock_cost(backend), 3us);
  EXPECT_EQ(clock_cost(*make_cpu_backend()), 0us);
}

// Not one processor of 1 GHz, whose waves and shares would be those of no GPU.
TEST(Timing, ADeviceTellsItsProcessorsAndItsClock) {
  DeviceWithClocks backend;
  const Device device = measure_device(backend);
  EXPECT_EQ(device.sm_count, 132);
  EXPECT_DOUBLE_EQ(device.clock_hz, 1.98e9);
  EXPECT_EQ(device.l2_cache, Bytes{50 << 20});
  EXPECT_EQ(device.compute_capability, "9.0");
  EXPECT_EQ(device.sources.at("sm_count").kind, FigureKind::Measured);
  EXPECT_EQ(device.kernel_gap, 10us);  // without the 3 of the clocks
}

TEST(Timing, StepsThatTheDeviceHasNoRoomForAreLeftOutByName) {
  DeviceWithClocks backend(Bytes{std::int64_t{1} << 30});
  const Calibration calibration = calibrate(backend);
  EXPECT_TRUE(calibration.held_out.empty());
  ASSERT_FALSE(calibration.left_out.empty());
  EXPECT_THAT(calibration.left_out.front(), HasSubstr("vit of width 768, 1 block, batch 16, fp32"));
}

TEST(Timing, OnePrecisionIsCalibratedAlone) {
  DeviceWithClocks backend(Bytes{std::int64_t{1} << 30});
  const Calibration calibration = calibrate(backend, Precision::Bf16);
  ASSERT_FALSE(calibration.left_out.empty());
  EXPECT_THAT(calibration.left_out, testing::Each(HasSubstr(", bf16")));
  EXPECT_LT(calibration.left_out.size(), calibrate(backend).left_out.size());
}

}  // namespace
}  // namespace tidemark::profiler::timing_test
