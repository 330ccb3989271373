// The largest batch, where fragmentation does not grow evenly.
#include "analysis/batch_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "analysis/comparison.h"
#include "simulator/lower.h"
#include "tests/support/all_strategies.h"
#include "traces/presets.h"

namespace tidemark::batch_search_test {
namespace {

using namespace literals;

BatchTest up_to(std::int64_t ceiling, std::set<std::int64_t> failing) {
  return {.may_fit = [ceiling](std::int64_t batch) { return batch <= ceiling; },
          .fits = [ceiling, failing](
                      std::int64_t batch) { return batch <= ceiling && !failing.contains(batch); }};
}

TEST(BatchSearch, SaysUpToWhichEveryBatchFitsAndWhichFitsAtAll) {
  EXPECT_EQ(find_batch_limits(up_to(0, {})), (BatchLimits{0, 0, false}));
  EXPECT_EQ(find_batch_limits(up_to(1, {})), (BatchLimits{1, 1, false}));
  EXPECT_EQ(find_batch_limits(up_to(1000, {})), (BatchLimits{1000, 1000, false}));
  EXPECT_EQ(find_batch_limits(up_to(1000, {932, 935, 974})), (BatchLimits{931, 1000, false}));
  EXPECT_EQ(find_batch_limits(up_to(1000, {932, 999, 1000})), (BatchLimits{931, 998, false}));
  EXPECT_EQ(find_batch_limits(up_to(3, {2, 3})), (BatchLimits{1, 1, false}));
  EXPECT_EQ(find_batch_limits(up_to(3, {1})), (BatchLimits{0, 3, false}));
}

TEST(BatchSearch, AsksNoBatchThatIsRuledOutAndNoneTwice) {
  std::mutex mutex;
  std::multiset<std::int64_t> asked;
  BatchTest test = up_to(200, {150});
  test.fits = [&, inner = test.fits](std::int64_t batch) {
    const std::lock_guard lock(mutex);
    asked.insert(batch);
    return inner(batch);
  };
  EXPECT_EQ(find_batch_limits(test), (BatchLimits{149, 200, false}));
  EXPECT_EQ(*asked.rbegin(), 200);
  for (std::int64_t batch = 1; batch <= 149; ++batch) EXPECT_EQ(asked.count(batch), 1u) << batch;
}

// Ten are tried upwards and ten downwards: what lies between is not known, and that is said.
TEST(BatchSearch, SaysWhereItStopped) {
  EXPECT_EQ(find_batch_limits(up_to(100, {}), {}, 10), (BatchLimits{10, 100, true}));
  EXPECT_EQ(find_batch_limits(up_to(100, {5}), {}, 10), (BatchLimits{4, 100, false}));
  std::set<std::int64_t> many;
  for (std::int64_t batch = 50; batch <= 100; ++batch) many.insert(batch);
  EXPECT_EQ(find_batch_limits(up_to(100, many), {}, 10), (BatchLimits{10, 10, true}));
}

TEST(BatchSearch, TellsHowFarItIs) {
  std::vector<std::int64_t> tried;
  find_batch_limits(up_to(150, {}), [&](std::int64_t done, std::int64_t at_most) {
    tried.push_back(done);
    EXPECT_EQ(at_most, 150);
  });
  EXPECT_THAT(tried, testing::ElementsAre(64, 128, 150));
}

Scenario scenario_of(const char* model, const char* device, std::optional<Bytes> budget = {}) {
  Scenario scenario;
  scenario.model = find_model(model);
  scenario.step.precision = Precision::AmpFp16;
  scenario.device = find_device(device);
  scenario.budget = budget;
  return scenario;
}

bool fits_alone(Scenario scenario, const char* strategy, std::int64_t batch) {
  scenario.step.batch = batch;
  return fits(plan_step(trace_of(scenario), parse_strategy(strategy)), scenario.device,
              memory_budget_of(scenario));
}

// Each batch by itself, far beyond the last that fits.
BatchLimits by_brute_force(const Scenario& scenario, const char* strategy) {
  BatchLimits limits;
  bool unbroken = true;
  for (std::int64_t batch = 1; batch <= 2 * limits.largest + 40; ++batch) {
    const bool fits = fits_alone(scenario, strategy, batch);
    unbroken = unbroken && fits;
    if (unbroken) limits.every = batch;
    if (fits) limits.largest = batch;
  }
  return limits;
}

TEST(BatchSearch, AgreesWithTryingEveryBatch) {
  struct Case {
    const char* model;
    const char* device;
    Bytes budget;
  };
  for (const Case& c : {Case{"swin-t", "rtx-4090", 2500_MiB}, Case{"vit-ti-16", "t4", 900_MiB},
                        Case{"gpt2", "a100-80gb", 6_GiB}, Case{"bert-base", "h100", 4_GiB}}) {
    Scenario scenario = scenario_of(c.model, c.device, c.budget);
    if (scenario.model.family == "gpt2" || scenario.model.family == "bert")
      scenario.step.sequence = 128;
    for (const char* strategy : {"vanilla", "checkpoint", "mesa", "pareprop"}) {
      const BatchLimits found =
          batch_limits(scenario, parse_strategy(strategy), memory_budget_of(scenario));
      EXPECT_EQ(found, by_brute_force(scenario, strategy)) << c.model << " " << strategy;
    }
  }
}

// What bisection said to be the largest, 962, was neither that nor safe.
TEST(BatchSearch, FindsTheGapThatFragmentationMakes) {
  Scenario scenario = scenario_of("swin-t", "rtx-4090");
  scenario.step.precision.reset();
  const BatchLimits limits =
      batch_limits(scenario, parse_strategy("checkpoint"), memory_budget_of(scenario));
  EXPECT_LT(limits.every, limits.largest);
  EXPECT_TRUE(fits_alone(scenario, "checkpoint", limits.every));
  EXPECT_FALSE(fits_alone(scenario, "checkpoint", limits.every + 1));
  EXPECT_TRUE(fits_alone(scenario, "checkpoint", limits.largest));
}

// What the search rests on: the bound is one, and it grows with the batch. Strategies decide by
// structure, so that a larger batch has the same buffers, each at least as large.
TEST(BatchSearch, RequestsGrowWithTheBatchAndNoLessIsEverAllocated) {
  for (const char* model :
       {"swin-t", "vit-ti-16", "mvitv2-t", "gpt2", "bert-base", "roberta-base"}) {
    Scenario scenario = scenario_of(model, "a100-80gb");
    if (scenario.model.family == "gpt2" || scenario.model.family == "bert")
      scenario.step.sequence = 32;
    const Framework& framework = find_framework(scenario.step.framework);
    for (const char* strategy : all_strategies) {
      Bytes before;
      for (const std::int64_t batch : {1, 2, 3, 4, 7, 8, 15, 33}) {
        scenario.step.batch = batch;
        const PlannedStep planned = plan_step(trace_of(scenario), parse_strategy(strategy));
        if (!planned.refusal.empty()) break;
        const Schedule schedule = lower(*planned.trace, planned.plan);
        const Bytes requested = allocator::requested_peak(schedule, framework, scenario.device);
        EXPECT_GE(requested, before) << model << " " << strategy << " " << batch;
        EXPECT_LE(requested, allocator::replay_allocator(*planned.trace, schedule, framework,
                                                         scenario.device, {}, 1024_GiB)
                                 .allocated_peak)
            << model << " " << strategy << " " << batch;
        before = requested;
      }
    }
  }
}

TEST(Comparison, NamesTheCureOfFragmentation) {
  Scenario scenario = scenario_of("swin-t", "rtx-4090");
  scenario.step.precision.reset();
  scenario.strategies = {parse_strategy("checkpoint")};
  scenario.finds_largest_batch = true;
  const Report with_batches = compare(scenario).rows.front();
  ASSERT_TRUE(with_batches.batches.has_value());
  ASSERT_TRUE(with_batches.expandable_batches.has_value());
  EXPECT_GT(with_batches.expandable_batches->every, with_batches.batches->every);
  scenario.finds_largest_batch = false;
  scenario.step.batch = with_batches.batches->every + 1;
  const Comparison fragmented = compare(scenario);
  EXPECT_FALSE(fragmented.rows.front().fits);
  EXPECT_EQ(fragmented.rows.front().short_by, Bytes{0});
  EXPECT_EQ(fragmented.rows.front().fits_expandable, true);
  EXPECT_THAT(to_text(fragmented.conclusion),
              testing::HasSubstr("fits with --alloc-conf expandable_segments:True"));
}

}  // namespace
}  // namespace tidemark::batch_search_test
