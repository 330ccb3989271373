// Every option of a step may stand in a check file, and shows in the experiment's id.
#include <fmt/format.h>

#include "tests/check/check_example.h"
#include "tests/support/step_samples.h"

namespace tidemark::regression::step_fields_test {
namespace {

using StepFieldsOfChecks = EachStepField;
INSTANTIATE_TEST_SUITE_P(All, StepFieldsOfChecks, every_step_field(), step_field_name);

TEST_P(StepFieldsOfChecks, AreReadAndStandInTheId) {
  const Experiment experiment =
      check_file(fmt::format(R"({{"model": "gpt2", "{}": {}}})", field_.key, sample_json(field_)))
          .experiments.at(0);
  EXPECT_EQ(experiment.step, step_);
  EXPECT_EQ(experiment.id,
            fmt::format("gpt2/{}{}", field_.id_prefix, tidemark::to_text(*field_.value(step_))));
}

}  // namespace
}  // namespace tidemark::regression::step_fields_test
