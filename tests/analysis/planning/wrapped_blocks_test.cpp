// Which blocks a plan wraps, and how calls that stay are counted.
#include "analysis/planning/wrapped_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analysis/planning/scenarios.h"
#include "traces/aten_calls.h"

namespace tidemark::wrapped_blocks_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

Planner planner_of(const Scenario& scenario, PlanForm form) {
  return Planner(trace_of(scenario), scenario.device, {}, {form});
}

TEST(WrappedBlocks, AreAllBlocksInOrder) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32);
  const Planner planner = planner_of(scenario, PlanForm::Blocks);
  for (std::size_t point = 0; point < planner.size(); ++point) {
    const std::vector<WrappedBlock> blocks = wrapped_blocks(planner, point);
    ASSERT_THAT(blocks, SizeIs(12));
    std::size_t wrapped = 0;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      EXPECT_EQ(blocks[b].name, planner.trace().blocks[b].name);
      EXPECT_THAT(blocks[b].saved, IsEmpty());  // whole blocks keep none of their calls
      wrapped += blocks[b].is_wrapped;
    }
    std::size_t regions = 0;
    for (const Region& region : planner.plan_at(point).regions)
      regions += planner.trace()[region.begin].block >= 0;
    EXPECT_EQ(wrapped, regions) << point;
  }
  EXPECT_THAT(wrapped_blocks(planner, 0), Each(Field(&WrappedBlock::is_wrapped, true)));
  EXPECT_THAT(wrapped_blocks(planner, planner.size() - 1),
              Each(Field(&WrappedBlock::is_wrapped, false)));
}

// GPT-2's block: three products with a bias (addmm) before fc2, the fourth, and one attention.
TEST(WrappedBlocks, CallsAreCountedByGroup) {
  const Scenario scenario = planned_scenario("gpt2", Precision::Fp32);
  const auto trace = trace_of(scenario);
  const Block& block = trace->blocks[3];
  const auto op = [&](const std::string& name) {
    return static_cast<OpId>(std::ranges::find(trace->ops, "blocks.3." + name, &Op::name) -
                             trace->ops.begin());
  };
  const std::string_view products = named_call(*trace, (*trace)[op("mlp.fc1")])->group;
  const std::string_view attention = named_call(*trace, (*trace)[op("attn.flash")])->group;
  EXPECT_THAT(saved_calls(*trace, block, {op("attn.qkv"), op("attn.flash"), op("mlp.fc1")}),
              ElementsAre(SavedCall{products, 0, 2304}, SavedCall{attention, 0, 0},
                          SavedCall{products, 2, 3072}));
  EXPECT_THAT(saved_calls(*trace, block, {}), IsEmpty());
}

TEST(WrappedBlocks, PoliciesKeepNamedCallsOfWrappedBlocks) {
  const Scenario scenario = planned_scenario("bert-base", Precision::Fp32);
  const Planner planner = planner_of(scenario, PlanForm::Policy);
  std::size_t with_calls = 0;
  for (std::size_t point = 0; point < planner.size(); point += 1 + planner.size() / 16)
    for (const WrappedBlock& block : wrapped_blocks(planner, point)) {
      EXPECT_TRUE(block.is_wrapped || block.saved.empty());
      for (const OpId op : block.saved)
        EXPECT_TRUE(named_call(planner.trace(), planner.trace()[op])) << index(op);
      with_calls += !block.saved.empty();
    }
  EXPECT_GT(with_calls, 0u);
}

}  // namespace
}  // namespace tidemark::wrapped_blocks_test
