// Operators of single blocks: lists of blocks, sums against lowered mixtures, and every mixture of
// a small network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/planner/planner.h"
#include "simulator/simulate.h"
#include "simulator/strategies/block_list.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/step_facts.h"
#include "traces/presets.h"

namespace tidemark::block_operators_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::shared_ptr<const Trace> trace_of(std::string_view model, Precision precision,
                                      std::int64_t batch = 4, std::int64_t depth = 0) {
  Model found = find_model(std::string(model));
  if (depth > 0) std::get<Gpt2Config>(found.config).depth = depth;
  return std::make_shared<const Trace>(
      build_trace(found, StepOptions{.batch = batch, .precision = precision}));
}

const Device& device() {
  static const Device found = find_device("a100-80gb");
  return found;
}

// As many bytes are the same on it.
const Device& slower_device() {
  static const Device found = find_device("a100-40gb");
  return found;
}

BlockOperators operators_of(const std::shared_ptr<const Trace>& trace, const char* text,
                            const Device& measured_on = device()) {
  const PlannedStep step = plan_step(trace, parse_strategy(text));
  EXPECT_EQ(step.refusal, "") << text;
  PlannerSettings settings;
  settings.known = step.plan;
  return {parse_strategy(text).components,
          std::make_shared<const Planner>(step.trace, measured_on, Counted{}, std::move(settings))};
}

// By which the planner counts too much: parameters that norms no longer have, with their gradients
// and states, in the worst case of all blocks.
std::int64_t counted_too_much(const Planner& plain, const BlockOperators& operators) {
  return plain.rest() - operators.everywhere->rest();
}

TEST(BlockList, IsReadAsItIsWritten) {
  EXPECT_THAT(parse_block_list("0-3.8"), ElementsAre(0, 1, 2, 3, 8));
  for (const char* text : {"0", "7.9", "0-3.8", "2.4-5.11-40"})
    EXPECT_EQ(to_text(parse_block_list(text)), text);
  EXPECT_EQ(to_text(parse_block_list("0.1.2")), "0-2");
  EXPECT_EQ(strategy_text(parse_strategy("approx-bp:blocks=0.1.2+checkpoint").components),
            "approx-bp:blocks=0-2+checkpoint");
  for (const char* text : {"", "-1", "3-1", "1.1", "2.1", "1..2", "a", "1-2-3", "1,2"})
    EXPECT_THROW(parse_block_list(text), UsageError) << text;
  EXPECT_THROW(parse_strategy("approx-bp:blocks=1,blocks=2"), UsageError);
}

TEST(BlockOperators, ChangeTheNamedBlocksAlone) {
  const auto trace = trace_of("gpt2", Precision::Fp32);
  const PlannedStep step =
      plan_step(trace, parse_strategy("approx-bp:blocks=0-1.5+ms-bp:blocks=5-6"));
  ASSERT_EQ(step.refusal, "");
  std::vector<std::int32_t> activations, norms;
  for (const Op& op : step.trace->ops) {
    if (op.kind == OpKind::ReGelu2) activations.push_back(op.block);
    if (op.kind == OpKind::MsLayerNorm) norms.push_back(op.block);
  }
  EXPECT_THAT(activations, ElementsAre(0, 1, 5));
  EXPECT_THAT(norms, ElementsAre(5, 5, 6, 6));
  EXPECT_THAT(plan_step(trace, parse_strategy("lowmemorybp:blocks=3-12")).refusal,
              HasSubstr("there is no block 12: the trace has 12, counted from 0"));
}

// A post-norm block's last norm is read by the next block: no sum of blocks.
TEST(BlockOperators, OfPostNormBlocksAreActivationsOnly) {
  const auto trace = trace_of("bert-base", Precision::Fp32);
  const Planner plain(trace, device(), {});
  EXPECT_TRUE(plain.takes_in_blocks(operators_of(trace, "approx-bp")));
  EXPECT_FALSE(plain.takes_in_blocks(operators_of(trace, "ms-bp")));
}

// Of points whose plans have operators in some blocks and not in others: some.
std::vector<std::size_t> mixed_points(const Planner& planner) {
  std::vector<std::size_t> all, some;
  for (std::size_t point = 0; point < planner.size(); ++point) {
    std::array<bool, 2> is_found = {};
    for (const Planner::Part& part : planner.parts_at(point))
      if (part.stage->block >= 0) is_found[part.operators] = true;
    if (is_found[0] && is_found[1]) all.push_back(point);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(12, all.size()); ++i)
    some.push_back(all[i * (all.size() - 1) / 11]);
  return some;
}

// Operators save bytes and time alike, so that no block would be without. Where their times are
// those of a slower device, some are.
TEST(BlockOperators, AddUp) {
  std::size_t mixtures = 0;
  for (const auto& [model, precision] :
       {std::pair{"gpt2", Precision::Fp32}, std::pair{"vit-b-16", Precision::AmpFp16},
        std::pair{"llama-7b", Precision::Bf16}, std::pair{"swin-t", Precision::Fp32}}) {
    const auto trace = trace_of(model, precision);
    const Planner plain(trace, device(), {});
    for (const char* text : {"approx-bp", "ms-bp"}) {
      const BlockOperators operators = operators_of(trace, text, slower_device());
      ASSERT_TRUE(plain.takes_in_blocks(operators)) << model << " " << text;
      const Planner mixed(plain, {operators});
      const std::int64_t too_much = counted_too_much(plain, operators);
      for (const std::size_t point : mixed_points(mixed)) {
        ++mixtures;
        const PlannedStep step = mixed.step_at(point);
        ASSERT_THAT(check(*step.trace, step.plan), IsEmpty()) << model << " " << text;
        const Schedule schedule = lower(step);
        ASSERT_THAT(validate(*step.trace, schedule), IsEmpty()) << model << " " << text;
        const std::int64_t peak = rounded_live_peak(schedule);
        ASSERT_LE(peak, mixed[point].bytes) << model << " " << text << " " << point;
        ASSERT_GE(peak, mixed[point].bytes - too_much) << model << " " << text << " " << point;
        // Activations take no parameters along, but any rewritten trace leaves GPT-2's masks out.
        if (text == std::string_view("approx-bp")) {
          ASSERT_EQ(peak, mixed[point].bytes - too_much) << model << " " << point;
        }
      }
    }
  }
  EXPECT_GT(mixtures, 40u);  // of 96 at most
}

/// What each block of a mixture is.
struct Pick {
  std::uint32_t operators;  ///< 0 for none, then by number
  std::size_t entry;        ///< of its menu
};

PlannedStep mixture(const Planner& plain, const std::vector<BlockOperators>& operators,
                    const std::vector<Pick>& picks) {
  const char* const rows[] = {"approx-bp", "ms-bp"};
  BlockList lists[2];
  for (std::size_t b = 0; b < picks.size(); ++b)
    for (const std::uint32_t row : {0u, 1u})
      if (picks[b].operators & (1u << row)) lists[row].push_back(static_cast<std::int32_t>(b));
  std::string text;
  for (const std::uint32_t row : {0u, 1u})
    if (!lists[row].empty())
      text += std::string(text.empty() ? "" : "+") + rows[row] + ":blocks=" + to_text(lists[row]);
  PlannedStep step = plan_step(std::make_shared<const Trace>(plain.trace()),
                               parse_strategy(text.empty() ? "vanilla" : text));
  step.derived.reset();
  step.plan = keep_everything(*step.trace);
  const Needs needs = derive_needs(*step.trace);
  for (const Stage& stage : stages_of(*step.trace, needs).all) {
    if (stage.block < 0) continue;
    const Pick& pick = picks[static_cast<std::size_t>(stage.block)];
    const Planner& of = pick.operators == 0 ? plain : *operators[pick.operators - 1].everywhere;
    const auto& menu = of.menu(of.stages().all[static_cast<std::size_t>(stage.block) + 1].kind);
    apply(*step.trace, stage, menu[pick.entry % menu.size()].plan, step.plan);
  }
  return step;
}

// Of two blocks, all mixtures of four sets of operators and the first seven local plans of each,
// and of five blocks some that dice choose: none is faster than the front in its own bytes, and
// none is below the bound.
TEST(BlockOperators, FrontIsNoSlowerThanAnyMixture) {
  Dice dice(12);
  for (const std::int64_t depth : {2, 5}) {
    const auto trace = trace_of("gpt2", Precision::Bf16, 8, depth);
    const Planner plain(trace, device(), {});
    const std::vector<BlockOperators> operators = {operators_of(trace, "approx-bp"),
                                                   operators_of(trace, "ms-bp"),
                                                   operators_of(trace, "approx-bp+ms-bp")};
    for (const BlockOperators& each : operators) ASSERT_TRUE(plain.takes_in_blocks(each));
    const Planner mixed(plain, operators);
    const std::int64_t too_much = counted_too_much(plain, operators.back());
    for (std::uint32_t i = 0; i < 28 * 28; i += depth == 2 ? 1 : 4) {
      std::vector<Pick> picks = {{i % 4, i / 4 % 7}, {i / 28 % 4, i / 112}};
      for (std::int64_t b = 2; b < depth; ++b)
        picks.push_back({static_cast<std::uint32_t>(dice.below(4)), dice.below(20)});
      const PlannedStep step = mixture(plain, operators, picks);
      ASSERT_THAT(check(*step.trace, step.plan), IsEmpty()) << i;
      const Schedule schedule = lower(step);
      const std::int64_t peak = rounded_live_peak(schedule);
      const auto simulated = simulate(*step.trace, schedule, device()).duration.count();
      const auto point = mixed.within(peak + too_much);
      ASSERT_TRUE(point) << i;
      ASSERT_LE(mixed[*point].time, simulated) << i;
      ASSERT_LE(mixed.lower_bound(peak), simulated) << i;
      if (i % 16 == 0) {
        ASSERT_LE(mixed.lower_bound_of_joined(peak), simulated) << i;
      }
    }
  }
}

// Between the bytes of two steps that have the operators everywhere or nowhere, a mixture is
// faster.
TEST(BlockOperators, FillTheFrontBetweenAllAndNone) {
  const auto trace = trace_of("gpt2", Precision::Fp32, 16);
  const Planner plain(trace, device(), {});
  const BlockOperators operators = operators_of(trace, "approx-bp");
  const Planner mixed(plain, {operators});
  const auto fastest = [](const Planner& planner) { return planner[planner.size() - 1]; };
  const std::int64_t least = fastest(*operators.everywhere).bytes, most = fastest(plain).bytes;
  const std::int64_t between = least + (most - least) / 2;
  const auto time_in = [&](const Planner& planner) {
    return planner[*planner.within(between)].time;
  };
  EXPECT_LT(time_in(mixed), time_in(plain));
  EXPECT_LE(time_in(mixed), time_in(*operators.everywhere));
}

}  // namespace
}  // namespace tidemark::block_operators_test
