// A planning made by hand around small_comparison(): groups of blocks, stages, and a front.
#pragma once

#include "analysis/planning/planning.h"
#include "tests/cli/small_comparison.h"

namespace tidemark {

inline PlanGroup plan_group(const char* first, const char* last, std::size_t stages) {
  PlanGroup made;
  made.first = first, made.last = last;
  made.stages = stages;
  return made;
}

/// Blocks 0 to 2 run again, one keeps codes of 4 bits, too; block 3 keeps all.
inline std::vector<PlanGroup> two_groups() {
  using namespace literals;
  std::vector<PlanGroup> groups = {plan_group("blocks.0", "blocks.2", 3),
                                   plan_group("blocks.3", "blocks.3", 1)};
  groups[0].decided = {{Action::Recompute, 0, false, {"attn", "mlp"}, 18_MiB},
                       {Action::Quantize, 4, false, {"norm1"}, 2_MiB}};
  groups[0].saved = 16_MiB;
  groups[0].extra = std::chrono::microseconds(4'000);
  groups[0].error.codes = 0.0016;  // the square of 4 %
  return groups;
}

/// The plan of small_comparison()'s checkpoint, within 24 MiB.
inline Planning small_planning() {
  using namespace literals;
  Planning made;
  made.comparison = small_comparison();
  made.comparison.rows.pop_back();
  made.comparison.rows[1].strategy = "plan:24.0 MiB";
  made.request.budget = made.budget = 24_MiB;
  made.feasible = true;
  made.trace = made.planned.trace = std::make_shared<const Trace>();
  made.groups = two_groups();
  made.error.codes = 0.0016;
  made.lower_bound = std::chrono::microseconds(24'500);
  made.gap = 0.02;
  made.binding = "backward of loss";
  made.rest = 5_MiB;
  made.front_size = 9;
  made.solve = std::chrono::microseconds(700);
  return made;
}

/// Of a pipeline of two, in which the first keeps two micro-batches.
inline StagePlan stage_plan(std::int64_t number, std::int64_t mebibytes) {
  using namespace literals;
  StagePlan made;
  made.is_feasible = true;
  made.report = small_row("plan", mebibytes, 25);
  made.report.rank = RankClass{number};
  made.report.recovery.alone = std::chrono::microseconds(5'000);
  made.report.bubble = std::chrono::microseconds(20'000);
  made.in_flight = 2 - number;
  made.binding = "optimizer step";
  made.rest = 5_MiB;
  made.front_size = 7;
  made.lower_bound = std::chrono::microseconds(24'000);
  made.groups = two_groups();
  return made;
}

/// A plan of so many bytes and so much time.
inline FrontPoint front_point(std::int64_t mebibytes, std::int64_t milliseconds) {
  FrontPoint made;
  made.budget = {mebibytes << 20};
  made.report = small_row("plan", mebibytes, milliseconds);
  made.binding = "backward of <loss>";
  made.planned.trace = std::make_shared<const Trace>();
  return made;
}

/// 10 MiB in 40 ms, 20 in 25 and 50 in 20, as fast as vanilla with its 40.
inline PlanFront small_front() {
  PlanFront made;
  made.allowed = {Allowed::Exact};
  made.size = 9;
  made.points = {front_point(10, 40), front_point(20, 25), front_point(50, 20)};
  made.points[1].groups = two_groups();
  return made;
}

inline Planning planning_with_front() {
  Planning made = small_planning();
  made.request.front_points = 5;
  made.fronts = {small_front()};
  return made;
}

}  // namespace tidemark
