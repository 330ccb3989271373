// A report labels every byte of its peak, orders its numbers, and says what does not fit.
#include "analysis/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/allocator/allocator_replay.h"
#include "tests/simulator/chain.h"
#include "tests/simulator/cost/toy_device.h"
#include "tests/traces/small_trace.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::report_test {
namespace {

using testing::HasSubstr;
using namespace literals;

constexpr Bytes enough = 80_GiB;

Evaluation asked(const Trace& trace, std::string_view strategy, Bytes capacity = enough,
                 const Device& device = toy_device()) {
  return evaluate(std::make_shared<const Trace>(trace), parse_strategy(strategy), device,
                  {.capacity = capacity});
}

Trace vision(std::int64_t batch = 2) {
  return build_trace(find_model("deit-ti"), {.batch = batch});
}

TEST(Report, EveryByteOfThePeakHasALabel) {
  for (const char* strategy : {"vanilla", "checkpoint", "mesa", "pareprop", "lowmemorybp"}) {
    const Report report = asked(vision(), strategy).report;
    EXPECT_EQ(total(report.at_peak), report.live_peak) << strategy;
  }
}

// With a byte less all of them go over the link and back; the schedule is the same.
TEST(Report, PagedStatesMoveWhereTheyDoNotFitBesideTheStep) {
  TraceBuilder b("gelu", "toy", {.optimizer = Optimizer::PagedAdamW32bit});
  const Trace trace = b.finish(b.gelu("gelu", b.parameter("p", {100'000})));
  constexpr Bytes states{2 * 4 * 100'000};
  Device device = toy_device();
  const Schedule schedule = asked(trace, "vanilla").schedule;
  device.capacity =
      states + device.context.value_or(Bytes{}) +
      allocator::requested_peak(schedule, find_framework(trace.step.framework), device);
  const Evaluation stays = asked(trace, "vanilla", enough, device);
  device.capacity -= Bytes{1};
  const Evaluation moves = asked(trace, "vanilla", enough, device);
  EXPECT_EQ(moves.report.step - stays.report.step, Nanoseconds(2 * 2 * states.count));
  EXPECT_EQ(moves.report.allocated_peak, stays.report.allocated_peak);
}

TEST(Report, TheFourNumbersAreInOrder) {
  for (const char* strategy : {"vanilla", "checkpoint", "mesa"}) {
    const Report report = asked(vision(), strategy).report;
    EXPECT_GE(report.planned, report.live_peak) << strategy;
    EXPECT_GE(report.allocated_peak, report.live_peak) << strategy;
    EXPECT_GE(report.reserved_peak, report.allocated_peak) << strategy;
  }
}

// Before the last layer's backward: x0 to x3 and the gradient of x4; then that of x3 comes.
TEST(Report, SaysWhereThePeakIs) {
  const Report report = asked(chain(4), "vanilla").report;
  EXPECT_EQ(report.live_peak, Bytes{6 * 4});
  EXPECT_EQ(report.peak_at, "backward of x4");
}

// Gradients of weights stay while the second micro-batch runs forward; the optimizer runs once.
TEST(Report, AccumulatesGradientsOverMicroBatches) {
  const auto of = [](std::int64_t micro_batches) {
    StepOptions options{.batch = 2};
    options.accumulate.count = micro_batches;
    return asked(build_trace(find_model("deit-ti"), options), "vanilla");
  };
  const auto count = [](const Evaluation& evaluation, Task task) {
    return std::ranges::count_if(evaluation.schedule.steps, [&](const Step& step) {
      const auto* run = std::get_if<tidemark::Run>(&step);
      return run && run->task == task;
    });
  };
  const Evaluation one = of(1), two = of(2), four = of(4);
  EXPECT_EQ(count(four, Task::Forward), 4 * count(one, Task::Forward));
  EXPECT_EQ(count(four, Task::Backward), 4 * count(one, Task::Backward));
  EXPECT_EQ(count(four, Task::Optimizer), count(one, Task::Optimizer));
  EXPECT_GT(two.report.live_peak, one.report.live_peak);
  EXPECT_EQ(two.report.live_peak, four.report.live_peak);
  EXPECT_GT(two.report.step, one.report.step * 3 / 2);
  EXPECT_LT(two.report.step, one.report.step * 2);
  EXPECT_EQ(four.report.step - two.report.step, 2 * (of(3).report.step - two.report.step));
  EXPECT_NEAR(four.report.samples_per_second * static_cast<double>(four.report.step.count()), 8e9,
              1);
  EXPECT_GT(four.report.mfu, one.report.mfu);
}

TEST(Report, AStepWithoutRunsPeaksBeforeIt) {
  StepOptions options;
  options.tuning = parse_tuning("frozen:*");
  TraceBuilder b("still", "toy", options);
  const Trace trace = b.finish(b.view("view", b.parameter("p", {4}), {2, 2}));
  EXPECT_EQ(asked(trace, "vanilla").report.peak_at, "before the step");
}

TEST(Report, CountsRecomputationAndHowMuchOfItIsHidden) {
  EXPECT_EQ(asked(vision(), "vanilla").report.recovery, RecoveryTime{});
  const Report one = asked(vision(), "checkpoint").report;
  EXPECT_GT(one.recovery.alone, Nanoseconds{0});
  EXPECT_EQ(one.recovery.hidden, Nanoseconds{0});
  // The one-stream twin of overlapped checkpoints is checkpoints.
  const Report two = asked(vision(), "checkpoint+overlap").report;
  EXPECT_EQ(two.recovery.alone, one.recovery.alone);
  EXPECT_EQ(two.recovery.hidden, one.step - two.step);
  EXPECT_GT(two.overlap, Nanoseconds{0});
}

// 30 days, and 198: beyond 10^15 ns doubles know no hundredths of a nanosecond.
TEST(Report, AStepOfWeeksIsPredictedAsFastAsAnother) {
  const auto predicted = [](const char* model, const StepOptions& step) {
    return asked(build_trace(find_model(model), step), "pareprop", enough, find_device("t4"))
        .report;
  };
  EXPECT_GT(predicted("vit-ti-16", {.batch = 1, .image = 65536}).step, std::chrono::hours(7 * 24));
  EXPECT_GT(predicted("llama-3-8b",
                      {.batch = 1, .sequence = 8'000'000, .attention = Attention::MemoryEfficient})
                .step,
            std::chrono::hours(60 * 24));
}

TEST(Report, SamplesPerSecondFollowFromTheStep) {
  const Report report = asked(vision(4), "vanilla").report;
  EXPECT_DOUBLE_EQ(report.samples_per_second, 4e9 / static_cast<double>(report.step.count()));
}

TEST(Report, ASlowHostMakesAStepLaunchBound) {
  Device device = toy_device();
  EXPECT_FALSE(asked(chain(4), "vanilla", enough, device).report.launch_bound);
  device.host_launch = Nanoseconds(1'000'000);
  EXPECT_TRUE(asked(chain(4), "vanilla", enough, device).report.launch_bound);
}

TEST(Report, DoesNotFitIsAnAnswer) {
  const Report large = asked(vision(), "vanilla").report;
  EXPECT_TRUE(large.fits);
  EXPECT_EQ(large.short_by, Bytes{0});
  const Report small = asked(vision(), "vanilla", 64_MiB).report;
  EXPECT_FALSE(small.fits);
  EXPECT_EQ(small.short_by, large.allocated_peak - 64_MiB);
  EXPECT_EQ(small.allocated_peak, large.allocated_peak);  // what it would need
}

TEST(Report, TheShortFormSaysTheSame) {
  const auto trace = std::make_shared<const Trace>(vision());
  const StrategySpec vanilla = parse_strategy("vanilla");
  for (const Bytes capacity : {64_MiB, 128_MiB, 192_MiB, 256_MiB, 512_MiB, enough}) {
    const MemoryBudget budget{.capacity = capacity};
    EXPECT_EQ(fits(plan_step(trace, vanilla), toy_device(), budget),
              evaluate(trace, vanilla, toy_device(), budget).report.fits);
  }
}

TEST(Report, WhatDoesNotApplySaysWhyAndFitsNothing) {
  const auto trace = std::make_shared<const Trace>(small_trace());
  const StrategySpec strategy = parse_strategy("approx-bp");
  const Evaluation result = evaluate(trace, strategy, toy_device(), {.capacity = enough});
  EXPECT_FALSE(result.report.applies);
  EXPECT_THAT(result.report.reason, HasSubstr("approx-bp: "));
  EXPECT_FALSE(fits(plan_step(trace, strategy), toy_device(), {.capacity = enough}));
}

TEST(Report, KeepsWhatItWasMadeFrom) {
  const Evaluation result = asked(vision(), "checkpoint");
  EXPECT_EQ(result.report.strategy, "checkpoint");
  EXPECT_EQ(peak(result.schedule, result.timeline).bytes, result.report.live_peak);
  EXPECT_EQ(result.timeline.duration, result.report.step);
  EXPECT_EQ(saved_bytes(*result.planned.trace, result.planned.plan), result.report.saved);
}

}  // namespace
}  // namespace tidemark::report_test
