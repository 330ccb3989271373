// A replay as text: predicted beside measured in one unit each, what could not be measured, and
// the sentences below the table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

TEST(ReplayTable, HasPredictedBesideMeasured) {
  const std::string text = table_of(report());
  EXPECT_THAT(text, HasSubstr("\n\n                   predicted   measured  difference\n"
                              "live peak          64.00 MiB  64.00 MiB       equal\n"));
  EXPECT_THAT(text, HasSubstr("\nstep                20.00 ms   25.00 ms     +25.0 %\n"));
}

TEST(ReplayTable, SaysHowItWasTimed) {
  ReplayReport replayed = report();
  EXPECT_THAT(table_of(replayed), testing::EndsWith(" scratch and statistics\n"));
  replayed.run_by_run = std::chrono::milliseconds(26);
  replayed.remark = "the host was busy";
  const std::string text = table_of(replayed);
  EXPECT_THAT(text,
              HasSubstr("\nwith a clock before and after each run: 26.00 ms, of which overlap "
                        "and recovery are\n"));
  EXPECT_THAT(text, testing::EndsWith(" scratch and statistics\nthe host was busy\n"));
  ReplayScenario warm = scenario();
  warm.warm_up = 3;
  EXPECT_THAT(replay_table(warm, replayed, {.width = 120}), HasSubstr("of 5, after 3 more; 24.00"));
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
  replayed.losses = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_THAT(table_of(replayed), HasSubstr(" 7.0000 8.0000 9.0000\n"));
  replayed.losses.push_back(10);
  EXPECT_THAT(table_of(replayed), HasSubstr(" 7.0000 8.0000 … (1 not shown) 10.0000\n"));
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

// --- for programs -------------------------------------------------------------------------------

using Json = nlohmann::json;

Json json_of(const ReplayReport& report) { return Json::parse(replay_json(scenario(), report)); }

// A quarter and two fifths of the recovery are hidden.
TEST(ReplayJson, HasPredictedAndMeasuredNumbers) {
  Json predicted = json_of(report()).at("predicted"), measured = json_of(report()).at("measured");
  EXPECT_EQ(predicted.at("at_peak_bytes").at("activation"), 48 << 20);
  predicted.erase("at_peak_bytes"), measured.erase("at_peak_bytes");
  EXPECT_EQ(predicted, Json::parse(R"({"live_peak_bytes": 67108864, "planned_bytes": 68157440,
      "step_ns": 20000000, "overlap_ns": 0, "recompute_ns": 4000000,
      "hidden_recompute_ns": 1000000, "hidden_recompute_share": 0.25})"));
  EXPECT_EQ(measured, Json::parse(R"({"live_peak_bytes": 67108864, "planned_bytes": 68157440,
      "step_ns": 25000000, "overlap_ns": 1000000, "recompute_ns": 5000000,
      "hidden_recompute_ns": 2000000, "hidden_recompute_share": 0.4})"));
}

TEST(ReplayJson, SaysWhatWasReplayedAndHow) {
  ReplayReport replayed = report();
  replayed.steps_asked = 6;
  replayed.host_memory = 30_MiB;
  Json json = json_of(replayed);
  EXPECT_FALSE(json.contains("remark"));
  EXPECT_FALSE(json.contains("run_by_run_step_ns"));
  for (const char* key : {"predicted", "measured"}) json.erase(key);
  EXPECT_EQ(json, Json::parse(R"({"format": "tidemark-replay-1", "model": "tiny", "batch": 2,
      "strategy": "checkpoint", "backend": "cpu", "backend_description": "a processor",
      "predicted_for": "t4", "seed": 1, "steps_asked": 6, "steps_timed": 5, "applies": true,
      "reason": "", "fastest_step_ns": 24000000, "slowest_step_ns": 30000000,
      "loss": [2.5, 2.25], "gradient_reference": null, "gradient_max_rel_error": null,
      "gradient_rel_error": null, "gradient_bit_identical": null, "workspace_bytes": 20971520,
      "host_bytes": 31457280, "resident_peak_bytes": null})"));
}

TEST(ReplayJson, HasWhatNotEveryReplayHas) {
  ReplayReport replayed = report();
  replayed.run_by_run = std::chrono::milliseconds(26);
  replayed.remark = "run by run";
  replayed.resident = 90_MiB;
  replayed.gradients = {.reference = "vanilla's", .is_rewired = false, .difference = {}};
  replayed.gradients->difference.bit_identical = false;
  replayed.gradients->difference.largest = 0.5;
  replayed.gradients->difference.overall = 0.25;
  const Json json = json_of(replayed);
  EXPECT_EQ(json.at("run_by_run_step_ns"), 26'000'000);
  EXPECT_EQ(json.at("remark"), "run by run");
  EXPECT_EQ(json.at("resident_peak_bytes"), 90 << 20);
  EXPECT_EQ(json.at("gradient_reference"), "vanilla's");
  EXPECT_EQ(json.at("gradient_max_rel_error"), 0.5);
  EXPECT_EQ(json.at("gradient_rel_error"), 0.25);
  EXPECT_EQ(json.at("gradient_bit_identical"), false);
}

TEST(ReplayJson, HasNoNumbersThatAreNotKnown) {
  ReplayReport stopped = report();
  stopped.steps_timed = 0;
  EXPECT_TRUE(json_of(stopped).at("measured").is_null());
  EXPECT_EQ(json_of(stopped).at("predicted").at("step_ns"), 20'000'000);
  ReplayReport refused = report();
  refused.applies = false;
  refused.reason = "no blocks";
  EXPECT_EQ(json_of(refused).at("reason"), "no blocks");
  EXPECT_FALSE(json_of(refused).contains("predicted"));
  EXPECT_EQ(replay_csv(refused), "number,predicted,measured\n");
}

TEST(ReplayJson, OfSeveralHasOneObjectEach) {
  ReplayReport other = report();
  other.strategy = "mesa";
  const Json json = Json::parse(replays_json({scenario(), scenario()}, {report(), other}));
  EXPECT_EQ(json.at("format"), "tidemark-compare-replay-1");
  ASSERT_EQ(json.at("rows").size(), 2u);
  EXPECT_EQ(json.at("rows").at(0), json_of(report()));
  EXPECT_EQ(json.at("rows").at(1).at("strategy"), "mesa");
}

// Categories that are nowhere have no line; recovery has two where it is predicted.
TEST(ReplayFields, AreThoseThatAnySideHas) {
  ReplayReport replayed = report();
  replayed.measured.at_peak[static_cast<std::size_t>(Category::Workspace)] = 1_MiB;
  const auto keys = [](const ReplayReport& of) {
    std::vector<std::string> result;
    for (const ReplayField& field : replay_fields(of)) result.emplace_back(field.key);
    return result;
  };
  EXPECT_THAT(keys(replayed),
              testing::ElementsAre("live_peak_bytes", "activation", "workspace", "planned_bytes",
                                   "step_ns", "overlap_ns", "recompute_ns", "hidden_recompute_ns"));
  replayed.predicted.recovery.reset();
  EXPECT_THAT(keys(replayed), testing::Not(testing::Contains("recompute_ns")));
  for (const ReplayField& field : replay_fields(report())) {
    EXPECT_EQ(field.is_time, field.key.ends_with("_ns")) << field.key;
    EXPECT_EQ(field.is_category, field.key == "activation") << field.key;
  }
}

}  // namespace
}  // namespace tidemark::cli::replay_printed_test
