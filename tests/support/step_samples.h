// A value of each option of the step, other than its default.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "traces/step_fields.h"

namespace tidemark {

/// What one might type for it.
inline std::string sample(const StepField& field) {
  const StepSwitch& option = field.switches.front();
  if (option.value.empty()) return std::string(option.text);
  const auto names = field.choices();
  StepOptions step;
  for (const std::string_view name : names) {
    field.read_text(field, step, name);
    if (is_stated(field, step)) return std::string(name);
  }
  if (option.value == "N") return "7";
  if (field.key == "loss") return "chunked:4";
  if (field.key == "linears") return "fp8:first=1";
  if (field.key == "expert_load") return "1.5";
  if (field.key == "mesh") return "dp=4";
  if (field.key == "rank") return "pp0";
  if (field.key == "schedule") return "gpipe";
  if (field.key == "shard") return "fsdp2";
  return option.value == "P" ? "0.25" : "lora:r=4,targets=q,v";
}

inline StepOptions step_with(const StepField& field) {
  StepOptions step;
  field.read_text(field, step, sample(field));
  return step;
}

/// As JSON has it.
inline std::string sample_json(const StepField& field) {
  const StepValue value = *field.value(step_with(field));
  if (const auto* text = std::get_if<std::string>(&value)) return "\"" + *text + "\"";
  return to_text(value);
}

/// A test for each option of the step.
class EachStepField : public testing::TestWithParam<std::size_t> {
 protected:
  const StepField& field_ = step_fields()[GetParam()];
  StepOptions step_ = step_with(field_);
};

inline std::string step_field_name(const testing::TestParamInfo<std::size_t>& field) {
  return std::string(step_fields()[field.param].key);
}

inline auto every_step_field() { return testing::Range(std::size_t{0}, step_fields().size()); }

}  // namespace tidemark
