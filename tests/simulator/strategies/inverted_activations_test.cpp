// What GELU and SiLU read goes, what they write and a bit per element stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/saved.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/strategies/strategy.h"
#include "tests/traces/small_trace.h"
#include "traces/formula.h"
#include "traces/presets.h"

namespace tidemark::inverted_activations_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

PlannedStep planned(const Trace& trace, std::string_view strategy) {
  PlannedStep step = plan_step(std::make_shared<const Trace>(trace), parse_strategy(strategy));
  EXPECT_THAT(check(*step.trace), IsEmpty());
  EXPECT_THAT(check(*step.trace, step.plan), IsEmpty());
  EXPECT_THAT(validate(*step.trace, lower(*step.trace, step.plan)), IsEmpty());
  return step;
}

Trace built(const char* model, Precision precision = Precision::Bf16) {
  StepOptions options{.batch = 2};
  options.precision = precision;
  return build_trace(find_model(model), options);
}

Bytes saved_by(const PlannedStep& step) { return saved_bytes(*step.trace, step.plan).unique; }

Formula computed_by(const PlannedStep& step, std::string_view op) {
  return opaque_row(*step.trace, (*step.trace)[op_named(*step.trace, op)])->computes;
}

// Per block x of [2, 197, 3072] in 16 bits goes, and a bit for each of its elements comes.
TEST(InvertedActivations, KeepABitInThePlaceOfWhatTheyRead) {
  const Trace trace = built("vit-b-16");
  const std::int64_t elements = std::int64_t{2} * 197 * 3072;
  const PlannedStep vanilla = planned(trace, "vanilla"), inverted = planned(trace, "invert-act");
  EXPECT_EQ(saved_by(vanilla) - saved_by(inverted), Bytes{12 * (2 * elements - elements / 8)});
  EXPECT_EQ(computed_by(inverted, "blocks.0.mlp.gelu"), Formula::InvertedGelu);
}

// LLaMA's gate is read by SiLU alone: its value goes, and that of SiLU is what the product keeps.
TEST(InvertedActivations, KnowSiluAndTheTanhFormsOfGelu) {
  EXPECT_EQ(computed_by(planned(built("llama-3.2-1b"), "invert-act"), "blocks.0.mlp.silu"),
            Formula::InvertedSilu);
  EXPECT_EQ(computed_by(planned(built("gpt2"), "invert-act"), "blocks.0.mlp.gelu"),
            Formula::InvertedTanhGelu);  // composed
  EXPECT_EQ(computed_by(planned(built("gemma-2b"), "invert-act"), "blocks.0.mlp.gelu"),
            Formula::InvertedTanhGelu);  // one kernel
}

TEST(InvertedActivations, StandInTheNamedBlocksOnly) {
  const PlannedStep step = planned(built("vit-b-16"), "invert-act:blocks=1");
  EXPECT_EQ((*step.trace)[op_named(*step.trace, "blocks.0.mlp.gelu")].kind, OpKind::Gelu);
  EXPECT_EQ(computed_by(step, "blocks.1.mlp.gelu"), Formula::InvertedGelu);
}

TEST(InvertedActivations, AreNotApproximatedAsWell) {
  for (const char* other : {"approx-bp", "lowmemorybp"})
    EXPECT_THAT(planned(built("vit-b-16"), std::string("invert-act+") + other).refusal,
                HasSubstr("either approximated or inverted"));
}

TEST(InvertedActivations, DoNotApplyWhereThereIsNone) {
  EXPECT_THAT(planned(small_trace(), "invert-act").refusal, HasSubstr("no GELU or SiLU"));
}

}  // namespace
}  // namespace tidemark::inverted_activations_test
