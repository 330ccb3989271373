// Tested across all readers by tests/cli/step_fields_test.cpp; here, what a precision may be
// called.
#include "traces/step_fields.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tidemark::step_fields_test {
namespace {

std::optional<Precision> precision_named(std::string_view text) {
  const auto fields = step_fields();
  const auto field = std::ranges::find(fields, "precision", &StepField::key);
  StepOptions step;
  field->read_text(*field, step, text);
  return step.precision;
}

TEST(Precisions, MayBeCalledAsPyTorchDoes) {
  EXPECT_EQ(precision_named("bfloat16"), Precision::Bf16);
  EXPECT_EQ(precision_named("float16"), Precision::AmpFp16);
  EXPECT_EQ(precision_named("half"), Precision::AmpFp16);
  EXPECT_EQ(precision_named("fp16"), Precision::AmpFp16);
  EXPECT_EQ(precision_named("float32"), Precision::Fp32);
  for (const auto& row : precisions) EXPECT_EQ(precision_named(row.name), row.value);
}

}  // namespace
}  // namespace tidemark::step_fields_test
