// Ranges of values, and comparisons over them.
#include "analysis/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "traces/presets.h"

namespace tidemark::sweep_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> range(std::string_view text) {
  return parse_range(text, "--batch", 1 << 20);
}

std::string range_error(std::string_view text) {
  try {
    range(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Range, IsAListStepsOrFactors) {
  EXPECT_THAT(range("8"), ElementsAre(8));
  EXPECT_THAT(range("32,8,16,8"), ElementsAre(8, 16, 32));
  EXPECT_THAT(range("8:64:x2"), ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(range("8:63:x2"), ElementsAre(8, 16, 32));
  EXPECT_THAT(range("1:10:4"), ElementsAre(1, 5, 9));
  EXPECT_THAT(range("1,4:4:9,10:40:x3"), ElementsAre(1, 4, 10, 30));
  EXPECT_THAT(range("1:1048576:x1048576"), ElementsAre(1, 1048576));
}

TEST(Range, SaysWhatWouldBeRight) {
  for (const char* text : {"", "0", "-1", "x", "8,", "8:", "8:16", "16:8:x2", "8:16:x1", "8:16:0",
                           "8:16:x", "8:16:2:3", "1048577", "8 16"})
    EXPECT_THAT(range_error(text), HasSubstr("8:256:x2")) << text;
  EXPECT_THAT(range_error("1:100000:1"), HasSubstr("more than 10000 values"));
}

std::vector<Scenario> scenarios(std::initializer_list<std::int64_t> batches) {
  std::vector<Scenario> list;
  for (const std::int64_t batch : batches) {
    Scenario& scenario = list.emplace_back();
    scenario.model = find_model("vit-ti-16");
    scenario.step.batch = batch;
    scenario.device = find_device("t4");
    scenario.strategies = {parse_strategy("vanilla"), parse_strategy("checkpoint")};
  }
  return list;
}

TEST(Sweep, GivesWhatEachScenarioGivesAlone) {
  const std::vector<Scenario> list = scenarios({1, 2, 4, 8});
  std::vector<std::size_t> told;
  const std::vector<Comparison> points =
      sweep(list, [&](std::size_t done) { told.push_back(done); });
  ASSERT_EQ(points.size(), 4u);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Comparison alone = compare(list[i]);
    ASSERT_EQ(points[i].rows.size(), 2u);
    for (std::size_t r = 0; r < 2; ++r) {
      EXPECT_EQ(points[i].rows[r].allocated_peak, alone.rows[r].allocated_peak);
      EXPECT_EQ(points[i].rows[r].step, alone.rows[r].step);
    }
    EXPECT_EQ(points[i].conclusion, alone.conclusion);
  }
  EXPECT_THAT(told, ElementsAre(1, 2, 3, 4));
}

TEST(Sweep, TellsThePointsApartByWhatDiffers) {
  std::vector<Scenario> list = scenarios({1, 2});
  EXPECT_THAT(point_names(sweep(list)), ElementsAre("batch 1", "batch 2"));
  list[1].step.batch = 1;
  list[1].device = find_device("h100");
  EXPECT_THAT(point_names(sweep(list)), ElementsAre("t4", "h100"));
}

TEST(Sweep, CarriesTheFirstErrorToItsCaller) {
  std::vector<Scenario> list = scenarios({1, 2, 3});
  list[1].step.tuning = parse_tuning("lora:r=4,targets=nothing");
  EXPECT_THROW(sweep(list), InputError);
}

}  // namespace
}  // namespace tidemark::sweep_test
