// The three lines above every report, where model, step and device are not the usual ones: captured
// steps, other heads, micro-batches, and budgets of either kind of units.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/reports/print_comparison.h"
#include "tests/cli/small_comparison.h"
#include "tests/traces/small_trace.h"
#include "traces/presets.h"

namespace tidemark::cli::describe_scenario_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using namespace literals;

std::string line(std::size_t number, const Comparison& comparison) {
  return describe_scenario(comparison)[number];
}

/// Of a step that a capture has recorded with its optimizer.
Comparison captured() {
  Comparison made = small_comparison();
  Trace trace = small_trace();
  trace.update = RecordedUpdate{.optimizer = "RMSprop"};
  made.scenario.trace = std::make_shared<const Trace>(std::move(trace));
  made.trainable = made.parameters;
  return made;
}

TEST(DescribedModel, OfACaptureSaysHowManyParametersItsStepUpdates) {
  Comparison some = captured();
  EXPECT_EQ(line(0, some), "ViT: 86.0 M parameters, all trained");
  some.trainable = 5'000'000;
  EXPECT_EQ(line(0, some), "ViT: 86.0 M parameters, 5.0 M trained");
  some.trainable = some.parameters - 32;
  EXPECT_EQ(line(0, some), "ViT: 86.0 M parameters, all but 32 trained");
  some.scenario.trace.reset();  // a model says by its tuning what it trains
  EXPECT_EQ(line(0, some), "ViT: 86.0 M parameters, all trained");
}

TEST(DescribedModel, NamesAHeadThatIsNotTheUsual) {
  Comparison other = small_comparison();
  other.trainable = other.parameters;
  StepOptions step;
  other.scenario.model = find_model("gpt2");
  EXPECT_THAT(line(0, other), EndsWith(", all trained"));
  step.head = Head::SequenceClassification;
  other.scenario.model = with_head(other.scenario.model, step);
  EXPECT_THAT(line(0, other), EndsWith(", all trained, head sequence-classification"));
  other.scenario.trace = captured().scenario.trace;  // of a trace nobody has asked for a head
  EXPECT_THAT(line(0, other), EndsWith(", all trained"));
}

TEST(DescribedStep, CountsMicroBatchesAndTokensWhereThereAreAny) {
  Comparison step = small_comparison();
  EXPECT_THAT(line(1, step), StartsWith("batch 4 × 197 tokens · "));
  step.scenario.step.accumulate.count = 2;
  EXPECT_THAT(line(1, step), StartsWith("batch 4 × 2 micro-batches × 197 tokens · "));
  step.scenario.step.target_sequence = 64;
  EXPECT_THAT(line(1, step), StartsWith("batch 4 × 2 micro-batches × 197 tokens to 64 · "));
  step.tokens = 1;
  EXPECT_THAT(line(1, step), HasSubstr(" × 1 tokens to 64 · "));
  step.tokens = 0;
  EXPECT_THAT(line(1, step), StartsWith("batch 4 × 2 micro-batches to 64 · "));
}

// A budget of less than the device's memory, which a plan was asked for.
TEST(Fits, ABudgetOrTheDevice) {
  Report row = small_row("plan", 20, 25);
  EXPECT_EQ(fits_text(row), "yes");
  row.over_budget = Bytes{1};
  EXPECT_EQ(fits_text(row), "over budget");
  row.fits = false;
  EXPECT_EQ(fits_text(row), "no, fragmented");
  row.short_by = Bytes{1 << 20};
  EXPECT_EQ(fits_text(row), "no, 1.00 MiB short");
}

TEST(DescribedStep, OfACaptureSaysWhatItWas) {
  Comparison step = captured();
  step.scenario.step.precision = Precision::Bf16;
  EXPECT_EQ(line(1, step), "batch 4 × 197 tokens · bf16 · captured · RMSprop");
}

TEST(DescribedStep, HasWhatIsAlwaysSaidAndElseWhatWasStated) {
  Comparison step = small_comparison();
  step.attention = Attention::Flash;
  EXPECT_EQ(line(1, step),
            "batch 4 × 197 tokens · fp32 · flash attention · adamw · transformers-4.57");
  step.scenario.step.dropout = 0.25;
  EXPECT_THAT(line(1, step), EndsWith(" · transformers-4.57 · dropout 0.25"));
}

// 1 GB is the least that is said in GB. 16.384 GB are 15625 MiB, which may have been typed so.
TEST(DescribedDevice, SaysADecimalBudgetInBothUnits) {
  Comparison limited = small_comparison();
  const auto budget = [&](std::int64_t bytes) {
    limited.scenario.budget = limited.budget.capacity = {bytes};
    const std::string text = line(2, limited);
    return text.substr(text.find("of ") + 3);
  };
  EXPECT_EQ(budget(1'000'000'000), "1 GB = 0.93 GiB for tensors");
  EXPECT_EQ(budget(999'000'000), "999 MB = 952.72 MiB for tensors");
  EXPECT_EQ(budget(1'000'000'001), "954 MiB for tensors");
  EXPECT_EQ(budget(16'384'000'000), "15.3 GiB for tensors");
  EXPECT_EQ(budget(16'385'000'000), "16.385 GB = 15.26 GiB for tensors");
}

TEST(DescribedScenario, EndsWithTheNotes) {
  Comparison noted = small_comparison();
  noted.notes = {"a note", "another"};
  const std::vector<std::string> lines = describe_scenario(noted);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(std::vector(lines.begin() + 3, lines.end()), ElementsAre("a note", "another"));
}

// What a model's own config says of its head is filled in; a trace has none to say.
TEST(ResolvedStep, HasPrecisionAttentionAndHeadOfTheModel) {
  Comparison comparison = small_comparison();
  comparison.attention = Attention::Flash;
  const StepOptions step = resolved_step(comparison);
  EXPECT_EQ(step.precision, Precision::Fp32);
  EXPECT_EQ(step.attention, Attention::Flash);
  EXPECT_EQ(step.head, head_of(comparison.scenario.model.config));
  EXPECT_EQ(resolved_step(captured()).head, std::nullopt);
}

// The calls of a capture are known on a device with the same kernels: A100s are the usual one.
TEST(OriginOfNumbers, SaysWhichWereRecorded) {
  Comparison recorded = captured();
  Trace trace = *recorded.scenario.trace;
  trace.calls.emplace().of = trace.step;
  recorded.scenario.trace = std::make_shared<const Trace>(std::move(trace));
  recorded.scenario.device = find_device("a100-80gb");
  const auto origin = [](std::vector<Comparison> points) { return origin_of_numbers(points); };
  EXPECT_EQ(origin({small_comparison(), captured()}), "All numbers are predicted.");
  EXPECT_EQ(
      origin({recorded, recorded}),
      "All numbers are predicted but allocated and reserved of vanilla, which the capture has "
      "recorded.");
  EXPECT_EQ(origin({recorded, small_comparison()}),
            "All numbers are predicted but allocated and reserved of vanilla where the capture has "
            "recorded them.");
}

}  // namespace
}  // namespace tidemark::cli::describe_scenario_test
