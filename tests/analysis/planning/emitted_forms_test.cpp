// What the same budget costs in the forms that other programs know.
#include "analysis/planning/emitted_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/planning/scenarios.h"

namespace tidemark::emitted_forms_test {
namespace {

const EmittedForm& find(const Planning& planning, std::string_view name) {
  const auto found = std::ranges::find(planning.forms, name, &EmittedForm::name);
  EXPECT_NE(found, planning.forms.end()) << name;
  return *found;
}

Planning planned(const Scenario& scenario, PlanRequest request) {
  request.lists_forms = true;
  return plan_within(scenario, request);
}

Planning half_of(std::string_view model, PlanRequest request = {}) {
  const Scenario scenario = planned_scenario(model, Precision::Fp32);
  request.budget = Bytes{report_of(scenario, "vanilla").allocated_peak.count / 2};
  return planned(scenario, std::move(request));
}

TEST(EmittedForms, KeepTheBudgetOrSayThatNothingDoes) {
  for (const char* model : {"gpt2", "bert-base"}) {
    const Planning planning = half_of(model);
    ASSERT_GE(planning.forms.size(), 8u);
    for (const EmittedForm& form : planning.forms) {
      EXPECT_EQ(form.paste.empty(), form.allocated == Bytes{}) << form.name;
      EXPECT_LE(form.allocated, planning.budget) << form.name;
    }
  }
}

// Each restriction of the one before costs time, or nothing.
TEST(EmittedForms, FreedomIsNeverSlower) {
  const Planning planning = half_of("gpt2");
  const Nanoseconds tensors = find(planning, "tensors").step;
  EXPECT_EQ(tensors, planning.comparison.rows.back().step);
  EXPECT_LE(tensors, find(planning, "policy").step);
  EXPECT_LE(find(planning, "policy").step, find(planning, "blocks").step);
  EXPECT_LE(find(planning, "blocks").step, find(planning, "first n").step);
  EXPECT_LE(find(planning, "blocks").step, find(planning, "every n-th").step);
  EXPECT_LE(find(planning, "first n").step, find(planning, "all blocks").step);
}

TEST(EmittedForms, NoneKeepsABudgetBelowEveryPlan) {
  const Planning planning =
      planned(planned_scenario("gpt2", Precision::Fp32), {.budget = Bytes{1 << 20}});
  for (const EmittedForm& form : planning.forms) EXPECT_EQ(form.paste, "") << form.name;
}

TEST(EmittedForms, TensorsArePlannedInTheRequestsClass) {
  const Scenario scenario = offload_scenario();
  const Planning exact = planned(scenario, {.budget = gib(12), .form = PlanForm::Blocks});
  const Planning both = planned(
      scenario, {.budget = gib(12), .form = PlanForm::Blocks, .allowed = {Allowed::Offload}});
  EXPECT_LT(find(both, "tensors").step, find(exact, "tensors").step);
  EXPECT_EQ(find(both, "policy").step, find(exact, "policy").step);
  EXPECT_EQ(find(both, "blocks").step, find(exact, "blocks").step);
}

}  // namespace
}  // namespace tidemark::emitted_forms_test
