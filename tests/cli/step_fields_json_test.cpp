// Every option of a step stands in reports for programs, under the key that files have.
#include "cli/reports/json_text.h"
#include "tests/support/step_samples.h"

namespace tidemark::cli::step_fields_json_test {
namespace {

using StepFieldsOfReports = EachStepField;
INSTANTIATE_TEST_SUITE_P(All, StepFieldsOfReports, every_step_field(), step_field_name);

TEST_P(StepFieldsOfReports, StandUnderTheirKey) {
  Comparison comparison;
  comparison.scenario.step = step_;
  comparison.scenario.trace = std::make_shared<const Trace>();  // no model says what it left out
  comparison.attention = step_.attention.value_or(Attention::Math);
  const Json options = inputs_json("x", comparison)["options"];
  EXPECT_EQ(options.at(std::string(field_.key)).dump(), sample_json(field_));
}

}  // namespace
}  // namespace tidemark::cli::step_fields_json_test
