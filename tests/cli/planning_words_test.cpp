// What is said of a plan: its groups, what proves it, what it approximates, and what would help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cli/reports/print_planning.h"

namespace tidemark::cli::planning_words_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::int64_t gib = std::int64_t{1} << 30;

/// A plan within 20 GiB in 100 ms, of a step whose memory is tightest in the loss.
Planning found() {
  Planning planning;
  planning.budget = {20 * gib};
  planning.feasible = true;
  planning.comparison.rows.resize(2);
  planning.lower_bound = Nanoseconds{80'000'000};
  planning.gap = 0.0125;
  planning.binding = "backward of loss";
  planning.trace = std::make_shared<const Trace>();
  planning.planned.trace = planning.trace;
  return planning;
}

Planning refused() {
  Planning planning = found();
  planning.feasible = false;
  planning.comparison.rows.back().allocated_peak = {3 * gib};
  planning.comparison.rows.back().live_peak = {2 * gib};
  planning.comparison.rows.back().over_budget = {gib / 2};
  return planning;
}

PlanGroup blocks(const std::string& first, const std::string& last, std::size_t stages,
                 std::size_t joined = 1) {
  PlanGroup group;
  group.first = first;
  group.last = last;
  group.stages = stages;
  group.joined = joined;
  return group;
}

PlanGroup::Decided decided(Action action, std::vector<std::string> tensors, int bits = 0) {
  PlanGroup::Decided decided;
  decided.action = action;
  decided.tensors = std::move(tensors);
  decided.bits = bits;
  return decided;
}

std::string lines_of(const Planning& planning, const PlanGroup& group) {
  std::string text;
  for (const GroupLine& line : group_lines(planning, group))
    text += line.decision + " | " + line.tensors + "\n";
  return text;
}

TEST(GroupName, CountsBlocksAndNotOtherStages) {
  EXPECT_EQ(group_name(blocks("blocks.3", "blocks.3", 1)), "blocks.3");
  EXPECT_EQ(group_name(blocks("blocks.0", "blocks.17", 18)), "blocks.0 to blocks.17 (18)");
  EXPECT_EQ(group_name(blocks("blocks.0", "blocks.7", 8, 4)), "blocks.0 to blocks.7 (8, 4 as one)");
  PlanGroup others = blocks("norm", "loss", 3);
  others.is_block = false;
  EXPECT_EQ(group_name(others), "norm to loss");
}

TEST(GroupLines, NameEachDecision) {
  const Planning planning = found();
  PlanGroup group = blocks("blocks.0", "blocks.1", 2);
  EXPECT_EQ(lines_of(planning, group), "keep | all\n");
  group.decided = {decided(Action::Recompute, {"attn", "mlp.gelu"}),
                   decided(Action::Quantize, {"norm1"}, 4), decided(Action::Offload, {"fc1"})};
  EXPECT_EQ(lines_of(planning, group),
            "recompute | attn, mlp.gelu\nquantize, 4 bits | norm1\noffload | fc1\n");
  group.decided.clear();
  group.operators = {"ms-bp", "approx-bp"};
  EXPECT_EQ(lines_of(planning, group), "operators | ms-bp, approx-bp\n");
}

// "norm1" stands for its mean and variance, too; "norm10" is another. Experts have one name.
TEST(GroupLines, NameTensorsOnce) {
  const Planning planning = found();
  PlanGroup group = blocks("blocks.0", "blocks.1", 2);
  group.decided = {decided(Action::Recompute, {"norm1", "norm1.mean", "norm10", "mlp.experts.0.up",
                                               "mlp.experts.1.up", "mlp.experts.1.up.mean"})};
  EXPECT_EQ(lines_of(planning, group), "recompute | norm1, norm10, mlp.experts.*.up (2)\n");
}

// A wrapped block's calls are named, its tensors follow.
TEST(GroupLines, NameTheCallsOfAWrappedBlock) {
  Planning planning = found();
  planning.request.form = PlanForm::Policy;
  PlanGroup group = blocks("blocks.0", "blocks.1", 2);
  group.decided = {decided(Action::Recompute, {"attn"})};
  EXPECT_EQ(lines_of(planning, group), "recompute | all that each saves\n");
  group.calls = {"aten.mm", "aten.addmm"};
  EXPECT_EQ(lines_of(planning, group), "recompute | all but what comes of aten.mm, aten.addmm\n");
}

TEST(Proof, SaysWhatItIsAbout) {
  EXPECT_EQ(planning_words(found()),
            "Proof: no plan that keeps or recomputes what blocks save, each block by itself, takes "
            "less than 80.0 ms in 20.0 GiB; this one is at most 1.25 % above that. Memory is "
            "tightest in the backward of loss.");
}

TEST(Proof, SaysWhatPlansMayDo) {
  Planning planning = found();
  planning.joins_blocks = true;
  planning.request.allowed = {Allowed::Exact, Allowed::Offload};
  EXPECT_THAT(planning_words(planning), StartsWith("Proof: no plan that keeps, offloads or "
                                                   "recomputes what blocks save, blocks by "
                                                   "themselves or up to 8 together, takes"));
  planning.request.allowed = {Allowed::Anything};
  planning.request.max_gradient_error = 0.05;
  EXPECT_THAT(planning_words(planning),
              AllOf(HasSubstr("no plan that keeps, codes, offloads or recomputes"),
                    HasSubstr(", with these operators or others, gradients within 5 % of exact "
                              "ones, takes")));
}

// A bound is never above the plan: what a rounding leaves below zero is zero.
TEST(Proof, HasNoNegativeGap) {
  Planning planning = found();
  planning.gap = -1e-9;
  EXPECT_THAT(planning_words(planning), HasSubstr("at most 0.00 % above that"));
}

TEST(Proof, OfALimitInTimeIsOfThePlansOwnBytes) {
  Planning planning = found();
  planning.request.max_slowdown = 0.1;
  planning.request.measure = Measure::Live;
  planning.comparison.rows.back().live_peak = {2 * gib};
  EXPECT_THAT(planning_words(planning), HasSubstr("less than 80.0 ms in 2.00 GiB;"));
}

TEST(Proof, LeavesOutWhatReplicasExchange) {
  Planning planning = found();
  const std::string said = "What replicas exchange is hidden in the bound";
  EXPECT_THAT(planning_words(planning), Not(HasSubstr(said)));
  planning.comparison.scenario.step.mesh[Axis::Data] = 2;
  EXPECT_THAT(planning_words(planning), HasSubstr(said));
}

TEST(Proof, SaysHowFarGradientsAreFromExactOnes) {
  Planning planning = found();
  EXPECT_THAT(planning_words(planning), Not(HasSubstr("radients")));
  planning.error = {.codes = 0.0009, .operators = 0};
  EXPECT_THAT(planning_words(planning),
              HasSubstr(" Gradients are about 3 % from exact ones, going by small networks"));
  planning.error = {.codes = 0.0009, .operators = 0.0016};
  EXPECT_THAT(planning_words(planning),
              HasSubstr(" about 5 % from exact ones (codes 3 %, operators 4 %), going by"));
  planning.error.codes = std::numeric_limits<double>::infinity();
  EXPECT_THAT(planning_words(planning), HasSubstr("from exact ones is not known"));
}

// What approximations are there for: time, bytes, or nothing.
TEST(Proof, SaysWhatExactGradientsWouldTake) {
  Planning planning = found();
  planning.request.allowed = {Allowed::Exact, Allowed::Lossy};
  EXPECT_THAT(planning_words(planning), HasSubstr(" Gradients are exact: nothing that"));
  planning.error.codes = 0.01;
  EXPECT_THAT(planning_words(planning), Not(HasSubstr("xact gradients")));
  planning.exact = Planning::Exact{Nanoseconds{120'000'000}, {24 * gib}, false};
  EXPECT_THAT(planning_words(planning),
              HasSubstr(" With exact gradients it takes 120 ms within the same budget."));
  planning.exact->keeps_all = true;
  EXPECT_THAT(planning_words(planning),
              HasSubstr(" All fits with exact gradients, too, in 120 ms: "));
  planning.request.max_slowdown = 0.1;
  EXPECT_THAT(planning_words(planning), HasSubstr(" With exact gradients 24.0 GiB are needed."));
  planning.request.form = PlanForm::Blocks;  // which has no other
  EXPECT_THAT(planning_words(planning), Not(HasSubstr("xact gradients")));
}

TEST(Proof, SaysWhatToWrap) {
  Planning planning = found();
  planning.request.form = PlanForm::Blocks;
  planning.step_of_tensors = Nanoseconds{90'000'000};
  EXPECT_THAT(planning_words(planning),
              HasSubstr(" No block has to be wrapped. The fastest plan of tensors takes 90.0 ms "
                        "within the same budget."));
  planning.groups = {blocks("blocks.0", "blocks.1", 2), blocks("blocks.2", "blocks.2", 1),
                     blocks("blocks.3", "blocks.5", 3)};
  planning.groups[0].decided = planning.groups[2].decided = {decided(Action::Recompute, {"attn"})};
  EXPECT_THAT(planning_words(planning),
              HasSubstr(" Wrap in torch.utils.checkpoint: blocks.0 to blocks.1 (2), blocks.3 to "
                        "blocks.5 (3)."));
}

TEST(Proof, EndsWithWhatIsFaster) {
  Planning planning = found();
  planning.advice = {{"--a", {5 * gib}, Nanoseconds{50'000'000}, {6 * gib}, true, true},
                     {"--b", {7 * gib}, Nanoseconds{60'000'000}, {8 * gib}, true, true}};
  EXPECT_THAT(planning_words(planning),
              EndsWith(" Faster within the same budget: --a (6.00 GiB, 50.0 ms), --b (8.00 GiB, "
                       "60.0 ms)."));
}

TEST(Refusal, SaysWhatIsTooLarge) {
  Planning planning = refused();
  EXPECT_EQ(planning_words(planning),
            "The budget of 20.0 GiB is missed by 512 MiB. No plan below 3.00 GiB allocated: memory "
            "is tightest in the backward of loss.");
  planning.request.measure = Measure::Live;
  EXPECT_THAT(planning_words(planning), HasSubstr(" No plan below 2.00 GiB live: "));
  planning.comparison.rows.back().over_budget = {};
  EXPECT_THAT(planning_words(planning),
              StartsWith("Fragmentation keeps every plan out of the device's memory. No plan "));
  planning.binding = "optimizer step";
  planning.rest = {gib};
  EXPECT_THAT(planning_words(planning),
              HasSubstr(": the optimizer step holds 1.00 GiB, whatever blocks keep."));
  planning.request.max_slowdown = 0.125;
  EXPECT_EQ(planning_words(planning), "No plan is at most 12.5 % slower than vanilla.");
}

TEST(Refusal, TellsWhatHelpsFromWhatHelpsALittle) {
  Planning planning = refused();
  planning.advice = {{"--a", {5 * gib}, Nanoseconds{50'000'000}, {6 * gib}, true, true}};
  EXPECT_THAT(planning_words(planning),
              AllOf(EndsWith(" With one of these a plan keeps to 20.0 GiB: --a (6.00 GiB, 50.0 "
                             "ms)."),
                    Not(HasSubstr("not enough"))));
  planning.advice.push_back({"--b", {7 * gib}, Nanoseconds{60'000'000}, {8 * gib}, false, true});
  EXPECT_THAT(planning_words(planning),
              EndsWith("keeps to 20.0 GiB: --a (6.00 GiB, 50.0 ms). These lower it, but not enough "
                       "by themselves: --b (8.00 GiB, 60.0 ms)."));
}

TEST(Operators, AreOfSomeBlocksOrAll) {
  Planning planning = found();
  Trace trace;
  trace.blocks.resize(4);
  planning.planned.trace = std::make_shared<const Trace>(trace);
  EXPECT_EQ(operators_text(planning.planned), "");
  planning.planned.rewrites = parse_strategy("approx-bp").components;
  EXPECT_THAT(operators_text(planning.planned),
              StartsWith(" Operators are those of approx-bp in every block ("));
  planning.planned.rewrites = parse_strategy("approx-bp:blocks=1-2").components;
  EXPECT_THAT(operators_text(planning.planned),
              StartsWith(" Operators are those of approx-bp in blocks 1-2 ("));
  planning.planned.rewrites = parse_strategy("approx-bp:blocks=0-3").components;
  EXPECT_THAT(operators_text(planning.planned), HasSubstr(" in every block ("));
}

}  // namespace
}  // namespace tidemark::cli::planning_words_test
