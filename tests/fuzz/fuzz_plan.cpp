// Bytes as a plan file for a small step: the reader returns a plan that can be lowered, or throws
// InputError. What it returns can be written and read again without a change.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/plan_json.h"
#include "tests/fuzz/refusals.h"
#include "tests/support/small_models.h"
#include "traces/trace_builder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  static const auto trace =
      std::make_shared<const Trace>(build_trace(small_vit(2), StepOptions{.batch = 2}));
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  StrategySpec spec;
  PlannedStep step;
  try {
    spec = read_plan(json, "fuzz");
    step = plan_step(trace, spec);
  } catch (const InputError&) {
    return 0;
  }
  other_model_of(spec, trace->model);
  if (!step.refusal.empty()) return 0;
  require(validate(*step.trace, lower(*step.trace, step.plan)).empty());
  const std::string text = write_plan(step);
  const StrategySpec again = read_plan(text, "fuzz");
  require(write_plan(plan_step(trace, again)) == text);
  return 0;
}
