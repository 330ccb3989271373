// Every option of a step is known to the command line, to trace files, to the line that describes a
// step, to --help and to the documents.
#include "traces/step_fields.h"

#include <gmock/gmock.h>

#include "cli/commands/help.h"
#include "cli/commands/scenario.h"
#include "cli/reports/print_comparison.h"
#include "tests/cli/program.h"
#include "tests/support/step_samples.h"
#include "tests/traces/small_trace.h"
#include "traces/trace_json.h"

namespace tidemark::cli::step_fields_test {
namespace {

using testing::HasSubstr;

using StepFields = EachStepField;
INSTANTIATE_TEST_SUITE_P(All, StepFields, every_step_field(), step_field_name);

TEST_P(StepFields, AreEachOneMemberOfTheOptions) {
  EXPECT_NE(step_, StepOptions());
  for (const StepField& other : step_fields())
    EXPECT_EQ(is_stated(other, step_), other.key == field_.key) << other.key;
  EXPECT_EQ(field_.defect(step_), "");
}

TEST_P(StepFields, AreReadFromTheCommandLineAndTypedAgain) {
  Options options;
  options.step[long_name(field_.switches.front().names)] = sample(field_);
  EXPECT_EQ(step_of(options), step_);
  options.step = typed_step(step_);
  EXPECT_EQ(step_of(options), step_);
}

TEST_P(StepFields, ReadBackFromATraceFile) {
  Trace trace = small_trace();
  trace.step = step_;
  EXPECT_EQ(read_trace(write_trace(trace), "t.json").step, step_);
}

TEST_P(StepFields, StandInTheLineThatDescribesTheStep) {
  if (field_.shown == StepShown::Apart) return;
  Comparison comparison;
  comparison.scenario.step = step_;
  comparison.scenario.model.title = "model";
  comparison.attention = step_.attention.value_or(Attention::Math);
  EXPECT_THAT(describe_scenario(comparison).at(1),
              HasSubstr(in_words(field_, *field_.value(step_))));
}

TEST_P(StepFields, StandInHelpAndDocuments) {
  for (const StepSwitch& option : field_.switches) {
    EXPECT_THAT(help_text(commands().front()), HasSubstr(std::string(long_name(option.names))));
    EXPECT_THAT(file_text(TIDEMARK_SOURCE_DIR "/docs/tidemark.1"),
                HasSubstr(std::string(option.help.substr(0, 12))));
  }
  for (const char* document : {"/docs/trace_format.md", "/docs/check.md"})
    EXPECT_THAT(file_text(std::string(TIDEMARK_SOURCE_DIR) + document),
                HasSubstr(fmt::format("`{}`", field_.key)))
        << document;
}

}  // namespace
}  // namespace tidemark::cli::step_fields_test
