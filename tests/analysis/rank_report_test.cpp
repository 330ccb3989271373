// Of the ranks of a pipeline the one that needs most is shown, with the time of all of them.
#include "analysis/rank_report.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/parallel/cluster.h"
#include "tests/support/small_models.h"

namespace tidemark::rank_report_test {
namespace {

constexpr MemoryBudget plenty{Bytes{std::int64_t{1} << 40}};

StepOptions of_stages(std::int64_t stages) {
  StepOptions options{.batch = 2, .accumulate = {6}, .precision = Precision::Bf16};
  options.mesh[Axis::Pipeline] = stages;
  return options;
}

Device device() { return device_of(find_cluster("dgx-h100")); }

Evaluation shown(const std::vector<std::shared_ptr<const Trace>>& traces,
                 std::optional<RankClass> rank = {}, std::string_view strategy = "vanilla") {
  return evaluate_ranks(traces, parse_strategy(strategy), device(), plenty, rank);
}

TEST(RankReport, IsOfTheRankThatNeedsMost) {
  const auto traces = rank_traces(small_llama(4), of_stages(2));
  ASSERT_EQ(traces.size(), 2u);
  const Report report = shown(traces).report;
  Bytes most;
  for (const auto& trace : traces)
    most = std::max(
        most, evaluate(trace, parse_strategy("vanilla"), device(), plenty).report.allocated_peak);
  ASSERT_TRUE(report.rank);
  EXPECT_EQ(report.allocated_peak, most);
  EXPECT_EQ(report.allocated_peak, shown(traces, report.rank).report.allocated_peak);
}

TEST(RankReport, IsOfTheRankThatWasNamed) {
  const auto traces = rank_traces(small_llama(4), of_stages(4));
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const Evaluation made = shown(traces, RankClass{stage});
    EXPECT_EQ(made.report.rank->stage, stage);
    EXPECT_EQ(made.planned.trace, traces[static_cast<std::size_t>(stage)]);
  }
}

// Each has some tokens of every sequence; what is said is of all.
TEST(RankReport, CountsTheTokensOfAllContextRanks) {
  StepOptions options{.batch = 3, .precision = Precision::Bf16};
  options.sequence = 32;
  options.mesh[Axis::Data] = 2;
  options.mesh[Axis::Context] = 4;
  const Report report = shown(rank_traces(small_llama(4), options)).report;
  const double seconds = static_cast<double>(report.step.count()) / 1e9;
  EXPECT_EQ(report.throughput_unit, "tokens");
  EXPECT_NEAR(report.throughput * seconds, 2 * 3 * 32, 1e-6);
  EXPECT_NEAR(report.samples_per_second * seconds, 2 * 3, 1e-6);
}

// All stages wait for the same pipeline, and none works longer than it takes.
TEST(RankReport, HasTheTimeOfTheWholePipeline) {
  const auto traces = rank_traces(small_llama(4), of_stages(4));
  const Nanoseconds step = shown(traces).report.step;
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const Report report = shown(traces, RankClass{stage}).report;
    EXPECT_EQ(report.step, step);
    EXPECT_GT(report.bubble, Nanoseconds{});
    EXPECT_LT(report.bubble, step);
    const auto alone = evaluate(traces[static_cast<std::size_t>(stage)], parse_strategy("vanilla"),
                                device(), plenty);
    EXPECT_GT(step, alone.report.step);
  }
}

// As other steps of several ranks: stages had the times of a step that is not compiled.
TEST(RankReport, IsRefusedForCompiledStages) {
  StepOptions options = of_stages(2);
  options.framework = "torch-compile-2.6";
  EXPECT_THROW(rank_traces(small_gpt2(4), options), InputError);
  options = of_stages(1);
  options.framework = "torch-compile-2.6";
  EXPECT_NO_THROW(rank_traces(small_gpt2(4), options));
}

TEST(RankReport, OfOneStageIsTheStepAlone) {
  const auto traces = rank_traces(small_llama(4), of_stages(1));
  const Report report = shown(traces).report;
  EXPECT_FALSE(report.rank);
  EXPECT_EQ(report.step,
            evaluate(traces.front(), parse_strategy("vanilla"), device(), plenty).report.step);
}

TEST(RankReport, RefusesWhatDoesNotGoWithMicroBatchesInFlight) {
  const auto traces = rank_traces(small_llama(4), of_stages(2));
  for (const char* strategy : {"mesa", "offload", "checkpoint+overlap"}) {
    const Report report = shown(traces, {}, strategy).report;
    EXPECT_FALSE(report.applies) << strategy;
    EXPECT_NE(report.reason, "") << strategy;
  }
}

}  // namespace
}  // namespace tidemark::rank_report_test
