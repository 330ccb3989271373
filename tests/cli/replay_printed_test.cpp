// A replay as text: predicted beside measured in one unit each, what could not be measured, and
// the sentences below the table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/reports/print_replay.h"
#include "tests/traces/small_trace.h"

namespace tidemark::cli::replay_printed_test {
namespace {

using profiler::ReplayReport;
using profiler::ReplayScenario;
using testing::HasSubstr;
using testing::Not;
using namespace literals;

ReplayScenario scenario() {
  ReplayScenario scenario;
  Trace trace = small_trace();
  trace.model = "tiny";
  scenario.trace = std::make_shared<const Trace>(std::move(trace));
  return scenario;
}

// Live 64 MiB as predicted; a step of 20 ms that took 25.
ReplayReport report() {
  ReplayReport report;
  report.strategy = "checkpoint";
  report.backend = "cpu";
  report.description = "a processor";
  report.device = "t4";
  for (profiler::ReplayNumbers* numbers : {&report.predicted, &report.measured}) {
    numbers->live_peak = 64_MiB;
    numbers->at_peak[static_cast<std::size_t>(Category::Activation)] = 48_MiB;
    numbers->planned = 65_MiB;
    numbers->recovery = RecoveryTime{};
  }
  report.predicted.step = std::chrono::milliseconds(20);
  report.measured.step = std::chrono::milliseconds(25);
  report.measured.overlap = std::chrono::milliseconds(1);
  report.predicted.recovery->alone = std::chrono::milliseconds(4);
  report.predicted.recovery->hidden = std::chrono::milliseconds(1);
  report.measured.recovery->alone = std::chrono::milliseconds(5);
  report.measured.recovery->hidden = std::chrono::milliseconds(2);
  report.fastest = std::chrono::milliseconds(24);
  report.slowest = std::chrono::milliseconds(30);
  report.steps_timed = 5;
  report.losses = {2.5, 2.25};
  report.workspace = 20_MiB;
  return report;
}

std::string table_of(const ReplayReport& report) {
  return replay_table(scenario(), report, {.unicode = true, .width = 120});
}

TEST(ReplayMarkdown, HasPredictedBesideMeasured) {
  EXPECT_EQ(replay_markdown(report()), R"(|  | predicted | measured | difference |
| --- | ---: | ---: | ---: |
| live peak | 64.00 MiB | 64.00 MiB | equal |
|   activation | 48.00 MiB | 48.00 MiB | equal |
| planned arena | 65.00 MiB | 65.00 MiB | equal |
| step | 20.00 ms | 25.00 ms | +25.0 % |
| both streams busy | 0.00 ms | 1.00 ms |  |
| recovery | 4.00 ms | 5.00 ms | +25.0 % |
| recovery, hidden | 1.00 ms | 2.00 ms | +100.0 % |
)");
}

TEST(ReplayMarkdown, HasNoMeasuredNumbersOfAReplayThatWasStopped) {
  ReplayReport stopped = report();
  stopped.steps_timed = 0;
  stopped.measured.recovery.reset();
  const std::string text = replay_markdown(stopped);
  EXPECT_THAT(text, HasSubstr("| step | 20.00 ms | – |  |\n"));
  EXPECT_THAT(text, HasSubstr("| recovery | 4.00 ms | – |  |\n"));
}

TEST(ReplayCsv, IsExact) {
  EXPECT_THAT(replay_csv(report()), HasSubstr("live_peak_bytes,67108864,67108864\n"));
  EXPECT_THAT(replay_csv(report()), HasSubstr("step_ns,20000000,25000000\n"));
  ReplayReport stopped = report();
  stopped.steps_timed = 0;
  EXPECT_THAT(replay_csv(stopped), HasSubstr("step_ns,20000000,\n"));
}

TEST(ReplayTable, SaysWhatWasMeasuredAndHow) {
  const std::string text = table_of(report());
  EXPECT_THAT(text, HasSubstr("tiny · checkpoint · batch "));
  EXPECT_THAT(text, HasSubstr(" · cpu on a processor\npredicted for t4\n"));
  EXPECT_THAT(text, HasSubstr("measured step: median of 5, after one more; 24.00 to 30.00 ms\n"));
  EXPECT_THAT(text,
              HasSubstr("share of the recovery that is hidden: 25 % predicted, 40 % measured\n"));
  EXPECT_THAT(text, HasSubstr("loss per step: 2.5000 2.2500\n"));
  EXPECT_THAT(text, HasSubstr("outside of the arena: 20.00 MiB for kernels' scratch and "
                              "statistics\n"));
  EXPECT_THAT(text, Not(HasSubstr("gradients:")));
  EXPECT_THAT(text, Not(HasSubstr("resident")));
}

TEST(ReplayTable, SaysWhenNothingWasTimed) {
  ReplayReport stopped = report();
  stopped.steps_timed = 0;
  EXPECT_THAT(table_of(stopped),
              HasSubstr("measured step: none; stopped before the first step was timed\n"));
  EXPECT_THAT(table_of(stopped), HasSubstr("25 % predicted, – measured\n"));
}

TEST(ReplayTable, SaysNothingOfRecoveryWhereNoneIs) {
  ReplayReport vanilla = report();
  vanilla.predicted.recovery = vanilla.measured.recovery = RecoveryTime{};
  EXPECT_THAT(table_of(vanilla), Not(HasSubstr("share of the recovery")));
}

// Eight losses and the last; how many lie between.
TEST(ReplayTable, LeavesOutLossesInTheMiddleAndSaysHowMany) {
  ReplayReport replayed = report();
  replayed.losses.assign(9, 1);
  EXPECT_THAT(table_of(replayed), Not(HasSubstr("not shown")));
  replayed.losses.assign(12, 1);
  replayed.losses.back() = 0.5;
  EXPECT_THAT(table_of(replayed), HasSubstr(" 1.0000 … (3 not shown) 0.5000\n"));
}

TEST(ReplayTable, SaysHowTheGradientsCompare) {
  ReplayReport replayed = report();
  replayed.gradients = {.reference = "vanilla's", .is_rewired = false, .difference = {}};
  replayed.gradients->difference.bit_identical = true;
  EXPECT_THAT(table_of(replayed), HasSubstr("gradients: bit-identical to vanilla's\n"));
  replayed.gradients->difference.bit_identical = false;
  replayed.gradients->difference.largest = 0.00123;
  replayed.gradients->difference.overall = 0.00045;
  replayed.gradients->difference.parameter = "head.weight";
  EXPECT_THAT(
      table_of(replayed),
      HasSubstr("gradients: within 0.0012 of vanilla's (farthest: head.weight), 0.00045 of all "
                "together\n"));
}

TEST(ReplayTable, NamesMemoryOutsideOfTheArena) {
  ReplayReport replayed = report();
  replayed.host_memory = 30_MiB;
  replayed.resident = 90_MiB;
  EXPECT_THAT(table_of(replayed), HasSubstr(", 30.00 MiB of host memory for offloaded tensors\n"
                                            "the process's resident peak: 90.00 MiB above its "
                                            "baseline\n"));
}

TEST(ReplayTable, SaysWhyAStrategyDoesNotApply) {
  ReplayReport refused = report();
  refused.applies = false;
  refused.reason = "checkpoint: no blocks";
  EXPECT_THAT(table_of(refused), testing::EndsWith("checkpoint does not apply: no blocks\n"));
}

}  // namespace
}  // namespace tidemark::cli::replay_printed_test
