// A plan for programs, as a picture and as a page, from a planning made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "cli/reports/print_planning.h"
#include "tests/cli/occurrences.h"
#include "tests/cli/small_planning.h"

namespace tidemark::cli::planning_pages_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;
using namespace literals;
using std::chrono::microseconds;

// --- JSON ---------------------------------------------------------------------------------------

Json json_of(const Planning& made) { return Json::parse(planning_json(made)); }

TEST(PlanningJson, HasTheNumbersOfThePlanAndOfVanilla) {
  const Json json = json_of(small_planning());
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, Json>>{{"format", "tidemark-plan-1"},
                                                           {"budget_bytes", 24 << 20},
                                                           {"max_slowdown", nullptr},
                                                           {"max_gradient_error", nullptr},
                                                           {"measure", "allocated"},
                                                           {"form", "tensors"},
                                                           {"feasible", true},
                                                           {"over_budget_bytes", 0},
                                                           {"class", "exact"},
                                                           {"host_budget_bytes", nullptr},
                                                           {"overlap", false},
                                                           {"operators", Json::array()},
                                                           {"gradient_error", 0.04},
                                                           {"gradient_error_of_codes", 0.04},
                                                           {"gradient_error_of_operators", 0.0},
                                                           {"exact", nullptr},
                                                           {"fits", true},
                                                           {"allocated_peak_bytes", 20 << 20},
                                                           {"reserved_peak_bytes", 24 << 20},
                                                           {"planned_bytes", 19 << 20},
                                                           {"live_peak_bytes", 18 << 20},
                                                           {"pinned_bytes", 0},
                                                           {"step_ns", 25'000'000},
                                                           {"vanilla_step_ns", 20'000'000},
                                                           {"lower_bound_ns", 24'500'000},
                                                           {"gap", 0.02},
                                                           {"binding", "backward of loss"},
                                                           {"rest_bytes", 5 << 20},
                                                           {"solve_ns", 700'000},
                                                           {"front_size", 9},
                                                           {"stopped", false},
                                                           {"front", Json::array()},
                                                           {"tensors_step_ns", nullptr}})
    EXPECT_EQ(json.at(key), value) << key;
  EXPECT_EQ(json.at("rows").size(), 2u);
}

TEST(PlanningJson, HasNoBudgetOfALimitInTimeAndNoBoundWithoutAPlan) {
  Planning made = small_planning();
  made.request.max_slowdown = 0.1;
  made.request.host_budget = 3_MiB;
  made.feasible = false;
  made.exact = Planning::Exact{microseconds(30'000), 7_MiB, true};
  made.step_of_tensors = microseconds(21'000);
  made.error.operators = std::numeric_limits<double>::infinity();
  const Json json = json_of(made);
  EXPECT_EQ(json.at("max_slowdown"), 0.1);
  for (const char* key :
       {"budget_bytes", "lower_bound_ns", "gap", "gradient_error", "gradient_error_of_operators"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
  EXPECT_EQ(json.at("host_budget_bytes"), 3 << 20);
  EXPECT_EQ(json.at("tensors_step_ns"), 21'000'000);
  EXPECT_EQ(json.at("exact"),
            Json::parse(R"({"step_ns": 30000000, "measured_bytes": 7340032, "keeps_all": true})"));
}

// 4 ms for 16 MiB are 256 ms for a GiB.
TEST(PlanningJson, HasEachGroupWithItsPrice) {
  const Json groups = json_of(small_planning()).at("groups");
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups.at(0), Json::parse(R"({"first": "blocks.0", "last": "blocks.2", "blocks": 3,
      "joined": 1, "operators": [], "calls": [], "gradient_error": 0.04, "bytes": 16777216,
      "ns": 4000000, "ns_per_gib": 256000000,
      "decisions": [{"action": "recompute", "bits": null, "delayed": false,
                     "tensors": ["attn", "mlp"], "bytes": 18874368},
                    {"action": "quantize", "bits": 4, "delayed": false, "tensors": ["norm1"],
                     "bytes": 2097152}]})"));
  EXPECT_EQ(groups.at(1).at("ns_per_gib"), nullptr);
  Planning outside = small_planning();
  outside.groups[0].is_block = false;
  EXPECT_EQ(json_of(outside).at("groups").at(0).at("blocks"), 0);
}

TEST(PlanningJson, HasFrontsFormsAdviceAndStages) {
  Planning made = planning_with_front();
  made.fronts.insert(made.fronts.begin(), PlanFront{{Allowed::Exact}, 4, {front_point(30, 30)}});
  made.fronts[1].allowed = {Allowed::Exact, Allowed::Offload};
  made.forms = {{"every n-th", "n = 2", 30_MiB, microseconds(22'000)}, {"blocks", "", {}, {}}};
  made.advice = {{"--a", 5_MiB, microseconds(9'000), 6_MiB, true, false}};
  made.stages = {stage_plan(0, 20), stage_plan(1, 15)};
  made.stages[1].is_feasible = false;
  const Json json = json_of(made);
  EXPECT_EQ(json.at("front").size(), 3u);  // the request's own is the last
  EXPECT_EQ(json.at("front").at(1), Json::parse(R"({"budget_bytes": 20971520,
      "allocated_peak_bytes": 20971520, "reserved_peak_bytes": 25165824, "step_ns": 25000000,
      "gradient_error": 0.0, "overlap": false, "operators": []})"));
  EXPECT_EQ(json.at("fronts").at(0).at("front").size(), 1u);
  EXPECT_EQ(json.at("fronts").at(1).at("class"), "exact,offload");
  EXPECT_EQ(json.at("forms"), Json::parse(R"([
      {"form": "every n-th", "paste": "n = 2", "allocated_peak_bytes": 31457280,
       "step_ns": 22000000},
      {"form": "blocks", "paste": null, "allocated_peak_bytes": null, "step_ns": null}])"));
  EXPECT_EQ(json.at("advice"), Json::parse(R"([{"option": "--a", "allocated_peak_bytes": 5242880,
      "step_ns": 9000000, "feasible": true, "fits": false}])"));
  Json first = json.at("stages").at(0);
  EXPECT_EQ(first.at("groups").size(), 2u);
  first.erase("groups");
  EXPECT_EQ(first, Json::parse(R"({"rank": "pp0", "in_flight": 2, "feasible": true, "fits": true,
      "allocated_peak_bytes": 20971520, "reserved_peak_bytes": 25165824,
      "planned_bytes": 19922944, "live_peak_bytes": 18874368, "bubble_ns": 20000000,
      "recompute_ns": 5000000, "lower_bound_ns": 24000000, "binding": "optimizer step",
      "rest_bytes": 5242880, "front_size": 7})"));
  EXPECT_EQ(json.at("stages").at(1).at("lower_bound_ns"), nullptr);
}

// --- pages and pictures -------------------------------------------------------------------------

TEST(FrontsPicture, HasAPointForEachBudgetOfEachFront) {
  const exports::FrontsPicture picture = fronts_picture(planning_with_front());
  EXPECT_EQ(picture.title, "vit on GPU: what budgets cost");
  EXPECT_EQ(picture.memory, "allocated");
  EXPECT_EQ(picture.vanilla, microseconds(20'000));
  EXPECT_EQ(picture.limit, 24_MiB);
  ASSERT_EQ(picture.fronts.size(), 1u);
  EXPECT_EQ(picture.fronts[0].name, "exact");
  ASSERT_EQ(picture.fronts[0].points.size(), 3u);
  EXPECT_EQ(picture.fronts[0].points[1].budget, 20_MiB);
  EXPECT_EQ(picture.fronts[0].points[1].step, microseconds(25'000));
  EXPECT_EQ(picture.fronts[0].points[1].tip, "exact 2: 20.0 MiB, step 25.0 ms");
}

TEST(PlanningPage, HasDecisionsWithTheirPrices) {
  const std::string page = planning_html(small_planning());
  EXPECT_THAT(
      page,
      AllOf(HasSubstr("<title>Tidemark: ViT, a plan</title>"),
            HasSubstr("<p class=\"conclusion\">Proof: no plan"),
            HasSubstr("<tr><td>blocks.0 to blocks.2 (3)</td><td>16.0 MiB</td><td>4.00 ms</td>"
                      "<td>256 ms</td><td class=\"text\">recompute</td>"
                      "<td class=\"text wrapped\">attn, mlp</td></tr>\n"
                      "<tr><td></td><td></td><td></td><td></td>"
                      "<td class=\"text\">quantize, 4 bits</td>"
                      "<td class=\"text wrapped\">norm1</td></tr>\n"
                      "<tr><td>blocks.3</td><td></td><td></td><td></td><td class=\"text\">keep</td>"
                      "<td class=\"text wrapped\">all</td></tr>\n</tbody>"),
            Not(HasSubstr("Everything is kept"))));
  Planning kept = small_planning();
  kept.groups.clear();
  EXPECT_THAT(planning_html(kept), HasSubstr("<p>Everything is kept.</p>"));
}

// The slider opens at the last point within the budget: 24 MiB are between 20 and 50.
TEST(PlanningPage, HasASliderAlongEachFront) {
  const std::string page = planning_html(planning_with_front());
  EXPECT_THAT(page,
              AllOf(HasSubstr("<h2>Along the front: exact</h2>"),
                    HasSubstr("min=\"0\" max=\"2\" value=\"1\""),
                    HasSubstr("<article data-name=\"20.0 MiB\" data-mark=\"exact 2: 20.0 MiB, \">"),
                    HasSubstr("<p>A step of 25.0 ms (+25.0 %); allocated 20.0 MiB, reserved 24.0 "
                              "MiB. Memory is tightest in the backward of &lt;loss&gt;.</p>\n")));
  EXPECT_EQ(occurrences(page, "<p>Everything is kept.</p>"), 2u);  // the first and last point
  Planning small = planning_with_front();
  small.budget = 10_MiB - 1_B;
  EXPECT_THAT(planning_html(small), HasSubstr("max=\"2\" value=\"0\""));
  small.budget = 50_MiB;
  EXPECT_THAT(planning_html(small), HasSubstr("max=\"2\" value=\"2\""));
  small.fronts[0].points.clear();
  EXPECT_THAT(planning_html(small), Not(HasSubstr("Along the front")));
}

}  // namespace
}  // namespace tidemark::cli::planning_pages_test
