// Under every strategy the groups of equal role add up to the live peak.
#include "analysis/check/peak_groups.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/comparison.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::regression::peak_groups_test {
namespace {

Evaluation evaluation_for(const std::string& model, const std::string& strategy) {
  StepOptions step{.batch = 4};
  step.precision = Precision::AmpBf16;
  auto trace = std::make_shared<const Trace>(build_trace(find_model(model), step));
  return evaluate(std::move(trace), parse_strategy(strategy), find_device("a100-80gb"),
                  {Bytes{std::int64_t{80} << 30}});
}

class PeakGroupsOf : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

// Every byte of the peak has a label: the groups add up to it, whatever the strategy.
TEST_P(PeakGroupsOf, AddUpToTheLivePeak) {
  const auto& [model, strategy] = GetParam();
  const Evaluation made = evaluation_for(model, strategy);
  ASSERT_TRUE(made.report.applies) << made.report.reason;
  const std::vector<PeakGroup> groups = peak_groups(made);
  Bytes sum;
  for (const PeakGroup& group : groups) {
    EXPECT_GT(group.tensors, 0);
    sum += group.bytes;
  }
  EXPECT_EQ(sum, made.report.live_peak);
  EXPECT_TRUE(std::ranges::is_sorted(groups, std::greater(), &PeakGroup::bytes));
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (std::size_t j = i + 1; j < groups.size(); ++j)
      EXPECT_FALSE(is_same_role(groups[i], groups[j])) << groups[i].role;
}

INSTANTIATE_TEST_SUITE_P(
    All, PeakGroupsOf,
    testing::Combine(testing::Values("vit-ti-16", "swin-t", "gpt2"),
                     testing::Values("vanilla", "checkpoint", "mesa", "lowmemorybp", "pareprop",
                                     "overlap+checkpoint", "mesa+checkpoint", "reversible")));

// ViT-Ti has twelve blocks, and vanilla keeps the input of each GELU: fc1's output, of batch 4,
// 197 tokens, 768 wide, in two bytes, for all of them at once at the first backward.
TEST(PeakGroups, CountTheTensorsOfAllBlocks) {
  StepOptions step{.batch = 64};
  step.precision = Precision::AmpBf16;
  auto trace = std::make_shared<const Trace>(build_trace(find_model("vit-ti-16"), step));
  const Evaluation made = evaluate(trace, parse_strategy("vanilla"), find_device("a100-80gb"),
                                   {Bytes{std::int64_t{80} << 30}});
  const auto groups = peak_groups(made);
  const auto fc1 = std::ranges::find_if(groups, [](const PeakGroup& group) {
    return group.role == "blocks.*.mlp.fc1" && group.contents == "activation";
  });
  ASSERT_NE(fc1, groups.end());
  EXPECT_EQ(fc1->tensors, 12);
  EXPECT_EQ(fc1->bytes, (Bytes{std::int64_t{12} * 64 * 197 * 768 * 2}));
  EXPECT_EQ(fc1->op, "linear");
  EXPECT_EQ(fc1->decision, "keep");
  ASSERT_EQ(fc1->blocks.size(), 1u);  // twelve equal neighbours are told as one
  EXPECT_EQ(fc1->blocks[0].first, 0u);
  EXPECT_EQ(fc1->blocks[0].last, 11u);
  EXPECT_EQ(fc1->blocks[0].tensors, 1);
  EXPECT_EQ(fc1->blocks[0].bytes, (Bytes{std::int64_t{64} * 197 * 768 * 2}));
  EXPECT_FALSE(fc1->reason.empty());
}

// Decisions are about values that the backward needs: none is about a gradient.
TEST(PeakGroups, SayNoDecisionAboutGradients) {
  std::size_t gradients = 0;
  for (const PeakGroup& group : peak_groups(evaluation_for("vit-ti-16", "vanilla")))
    if (group.contents == "gradient") {
      ++gradients;
      EXPECT_EQ(group.decision, "") << group.role;
      EXPECT_EQ(group.reason, "") << group.role;
    }
  EXPECT_GT(gradients, 0u);
}

TEST(PeakGroups, TellWhatIsPersistent) {
  const auto groups = peak_groups(evaluation_for("vit-ti-16", "vanilla"));
  std::int64_t states = 0;
  for (const PeakGroup& group : groups)
    if (group.contents == "optimizer state") {
      EXPECT_EQ(group.decision, "persistent");
      EXPECT_TRUE(group.reason.empty());
      states += group.bytes.count;
    }
  // AdamW: two fp32 moments of 5.7 M parameters.
  EXPECT_NEAR(static_cast<double>(states), 2 * 4 * 5.7e6, 0.1e6 * 8);
}

}  // namespace
}  // namespace tidemark::regression::peak_groups_test
