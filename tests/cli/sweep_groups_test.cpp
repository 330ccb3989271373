// What varies in a sweep: the first dimension along the columns, the others in the groups' names.
#include "cli/reports/sweep_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::cli::sweep_groups_test {
namespace {

using testing::ElementsAre;

Comparison point(std::int64_t batch, std::optional<std::int64_t> sequence, const char* device) {
  Comparison comparison;
  comparison.scenario.step.batch = batch;
  comparison.scenario.step.sequence = sequence;
  comparison.scenario.device.name = device;
  return comparison;
}

std::vector<std::string> names(const std::vector<SweepGroup>& groups) {
  std::vector<std::string> result;
  for (const SweepGroup& group : groups) result.push_back(group.name);
  return result;
}

TEST(SweepGroups, OfOneDimensionAreOneWithoutAName) {
  const std::vector<Comparison> points = {point(8, 512, "t4"), point(16, 512, "t4")};
  const std::vector<SweepGroup> groups = group_sweep(points);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].name, "");
  EXPECT_EQ(groups[0].dimension, "batch");
  EXPECT_THAT(groups[0].columns, ElementsAre("8", "16"));
  EXPECT_THAT(groups[0].points, ElementsAre(&points[0], &points[1]));
}

TEST(SweepGroups, AreOnePerCombinationOfTheOtherDimensions) {
  std::vector<Comparison> points;
  for (const char* device : {"t4", "h100"})
    for (const std::int64_t sequence : {128, 512})
      for (const std::int64_t batch : {8, 16}) points.push_back(point(batch, sequence, device));
  const std::vector<SweepGroup> groups = group_sweep(points);
  EXPECT_THAT(names(groups), ElementsAre("sequence 128 · t4", "sequence 512 · t4",
                                         "sequence 128 · h100", "sequence 512 · h100"));
  EXPECT_THAT(groups[2].points, ElementsAre(&points[4], &points[5]));
}

TEST(SweepGroups, HaveTheFirstDimensionThatVariesAlongTheColumns) {
  const std::vector<Comparison> lengths = {point(8, 128, "t4"), point(8, 512, "t4")};
  EXPECT_EQ(group_sweep(lengths)[0].dimension, "sequence");
  EXPECT_THAT(group_sweep(lengths)[0].columns, ElementsAre("128", "512"));
  const std::vector<Comparison> devices = {point(8, {}, "t4"), point(8, {}, "h100")};
  EXPECT_EQ(group_sweep(devices)[0].dimension, "device");
}

TEST(SweepGroups, OfOnePointAreByBatch) {
  const std::vector<Comparison> one = {point(8, {}, "t4")};
  EXPECT_EQ(group_sweep(one)[0].dimension, "batch");
  EXPECT_THAT(group_sweep(one)[0].columns, ElementsAre("8"));
}

Report row(const char* strategy, bool applies = true) {
  Report row;
  row.strategy = strategy;
  row.applies = applies;
  return row;
}

TEST(SweepGroups, ListStrategiesThatApplyAnywhereOnceEach) {
  std::vector<Comparison> points = {point(8, {}, "t4"), point(16, {}, "t4")};
  points[0].rows = {row("vanilla"), row("reversible", false), row("mesa", false)};
  points[1].rows = {row("vanilla"), row("reversible", false), row("mesa")};
  EXPECT_THAT(strategies_of(group_sweep(points)[0]), ElementsAre("vanilla", "mesa"));
  EXPECT_EQ(row_of(points[0], "mesa"), nullptr);
  EXPECT_EQ(row_of(points[1], "mesa"), &points[1].rows[2]);
  EXPECT_EQ(row_of(points[1], "checkpoint"), nullptr);
}

TEST(SweepGroups, AreDescribedByWhatVariesAndWhatIsShared) {
  std::vector<Comparison> points = {point(8, {}, "t4"), point(16, {}, "t4"), point(8, {}, "h100"),
                                    point(16, {}, "h100")};
  for (Comparison& each : points) {
    each.scenario.model.title = "ViT";
    each.scenario.device.title = "a " + each.scenario.device.name;
    each.notes = {"a note"};
  }
  points[3].notes.push_back("of the last point");
  const std::vector<std::string> lines = describe_sweep(points);
  EXPECT_THAT(lines, ElementsAre("ViT: 0 parameters, all trained",
                                 "4 points: batch 8, 16 × device t4, h100",
                                 testing::StartsWith("fp32 · "), "a note", "of the last point"));
  const std::vector<std::string> on_one = describe_sweep(std::span(points).first(2));
  EXPECT_EQ(on_one[1], "2 points: batch 8, 16");
  EXPECT_THAT(on_one[3], testing::StartsWith("a t4: "));
}

}  // namespace
}  // namespace tidemark::cli::sweep_groups_test
