// Fronts of several classes beside each other: more freedom is never slower in the same bytes.
#include "analysis/planning/plan_fronts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/planning/scenarios.h"

namespace tidemark::plan_fronts_test {
namespace {

using testing::ElementsAre;

std::vector<std::string> classes_of(const Planning& planning) {
  std::vector<std::string> names;
  for (const PlanFront& front : planning.fronts) names.push_back(class_name(front.allowed));
  return names;
}

Planning planned(std::vector<Allowed> allowed) {
  return plan_within(offload_scenario(), {.allowed = std::move(allowed), .front_points = 6});
}

TEST(PlanFronts, AreThoseOfTheClassesWithinWhatIsAllowed) {
  EXPECT_THAT(classes_of(planned({Allowed::Exact})), ElementsAre("exact"));
  EXPECT_THAT(classes_of(planned({Allowed::Offload})), ElementsAre("exact", "exact,offload"));
  EXPECT_THAT(classes_of(planned({Allowed::Lossy})), ElementsAre("exact", "exact,lossy"));
  EXPECT_THAT(classes_of(plan_within(offload_scenario(), {})), ElementsAre());
}

TEST(PlanFronts, MoreFreedomIsNeverSlowerInTheSameBytes) {
  const Planning planning = planned({Allowed::Anything});
  ASSERT_THAT(classes_of(planning), ElementsAre("exact", "exact,offload", "anything"));
  const std::vector<FrontRow> rows = rows_of(planning.fronts, 100);
  ASSERT_GT(rows.size(), 6u);
  std::size_t faster = 0;
  for (const FrontRow& row : rows) {
    ASSERT_EQ(row.points.size(), 3u);
    for (std::size_t wider = 1; wider < 3; ++wider) {
      if (!row.points[0]) continue;
      ASSERT_TRUE(row.points[wider]) << to_text(row.budget);
      // Points are sampled: the next smaller one may stand for a class.
      if (row.points[wider]->report.step < row.points[0]->report.step) ++faster;
    }
  }
  EXPECT_GT(faster, rows.size());
}

// GPT-2's fragmentation gives some plans of fewer live bytes more.
TEST(PlanFronts, BudgetsRiseFromPointToPoint) {
  const Planning planning =
      plan_within(offload_scenario(), {.allowed = {Allowed::Offload}, .front_points = 24});
  for (const PlanFront& front : planning.fronts)
    for (std::size_t i = 1; i < front.points.size(); ++i) {
      EXPECT_LT(front.points[i - 1].budget, front.points[i].budget) << class_name(front.allowed);
      EXPECT_GT(front.points[i - 1].report.step, front.points[i].report.step);
    }
}

TEST(PlanFronts, KeepToTheHostsMemory) {
  constexpr Bytes host{64 << 20};
  const Planning planning = plan_within(
      offload_scenario(), {.allowed = {Allowed::Offload}, .host_budget = host, .front_points = 6});
  ASSERT_EQ(planning.fronts.size(), 2u);
  EXPECT_GT(planning.fronts[1].points.size(), 3u);
  for (const FrontPoint& found : planning.fronts[1].points)
    EXPECT_LE(found.report.pinned, host) << to_text(found.budget);
}

FrontPoint point(std::int64_t bytes, std::int64_t step) {
  FrontPoint point;
  point.budget = Bytes{bytes};
  point.report.step = Nanoseconds(step);
  return point;
}

// Exact plans begin at 10 bytes, wider ones at 5; at 20 bytes both are as fast.
TEST(PlanFronts, RowsHoldEachFrontsFastestPointWithinABudget) {
  const std::vector<PlanFront> fronts = {{{Allowed::Exact}, 2, {point(10, 9), point(20, 5)}},
                                         {{Allowed::Offload}, 2, {point(5, 8), point(20, 5)}}};
  const std::vector<FrontRow> rows = rows_of(fronts, 100);
  const auto step = [&](std::size_t row, std::size_t front) {
    const FrontPoint* found = rows[row].points[front];
    return found ? found->report.step.count() : -1;
  };
  ASSERT_EQ(rows.size(), 3u);  // 20 stands once
  EXPECT_EQ(rows[0].budget, Bytes{5});
  EXPECT_THAT((std::array{step(0, 0), step(1, 0), step(2, 0)}), ElementsAre(-1, 9, 5));
  EXPECT_THAT((std::array{step(0, 1), step(1, 1), step(2, 1)}), ElementsAre(8, 8, 5));
}

TEST(PlanFronts, OfManyRowsSomeStayFromEndToEnd) {
  const std::vector<PlanFront> fronts = {
      {{Allowed::Exact}, 5, {point(1, 9), point(2, 8), point(3, 7), point(4, 6), point(5, 5)}}};
  const std::vector<FrontRow> rows = rows_of(fronts, 3);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].budget, Bytes{1});
  EXPECT_EQ(rows[1].budget, Bytes{3});
  EXPECT_EQ(rows[2].budget, Bytes{5});
}

TEST(PlanFronts, PointsSayWhatTheyDecide) {
  const Planning planning = planned({Allowed::Exact});
  const std::vector<FrontPoint>& points = planning.fronts.front().points;
  ASSERT_GT(points.size(), 2u);
  for (const FrontPoint& each : points) {
    EXPECT_FALSE(each.groups.empty());
    EXPECT_FALSE(each.binding.empty());
  }
  Bytes first, last;
  for (const PlanGroup& group : points.front().groups) first += group.saved;
  for (const PlanGroup& group : points.back().groups) last += group.saved;
  EXPECT_GT(first, last);
}

}  // namespace
}  // namespace tidemark::plan_fronts_test
