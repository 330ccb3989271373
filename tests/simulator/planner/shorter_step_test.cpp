// A step without most of its blocks: what is left costs what it costs in the whole one.
#include "simulator/planner/shorter_step.h"

#include <gtest/gtest.h>

#include "simulator/lower.h"
#include "simulator/planner/local_plan.h"
#include "simulator/planner/proposals.h"
#include "simulator/planner/survey.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::shorter_step_test {
namespace {

Trace trace_of(const char* model, Precision precision = Precision::Fp32) {
  const StepOptions step{.batch = 2, .precision = precision};
  return build_trace(find_model(model), step);
}

std::vector<std::size_t> one_of_each(const Stages& chain) {
  return std::vector<std::size_t>(chain.kinds.size(), 1);
}

std::size_t blocks_in(const Trace& trace, const Stages& chain) {
  std::size_t blocks = 0;
  for (const Stage& stage : chain.all)
    for (std::size_t b = 0; b < trace.blocks.size(); ++b)
      blocks += trace.blocks[b].begin >= stage.begin && trace.blocks[b].end <= stage.end;
  return blocks;
}

// By kind: corners of the hull, as if each op took as long as any other.
std::vector<std::vector<LocalPlan>> some_plans(const Trace& trace, const Needs& needs,
                                               const Stages& chain) {
  const std::vector<std::int64_t> ns(trace.ops.size(), 1000);
  std::vector<std::vector<LocalPlan>> plans;
  for (const std::vector<std::uint32_t>& members : chain.kinds) {
    const Stage& stage = chain.all[members.front()];
    plans.push_back({keep_all(stage)});
    if (stage.decided.empty()) continue;
    for (const Proposal& proposal : hull_of({trace, needs, stage, ns, Held::Kept, nullptr}))
      plans.back().push_back(proposal.plan);
  }
  return plans;
}

// Of kind k the plan of number n + k, so that neighbours differ.
std::vector<StageCost> costs_of(const Trace& trace, const Needs& needs, const Stages& chain,
                                const std::vector<std::vector<LocalPlan>>& plans, std::size_t n) {
  static const Device device = find_device("a100-80gb");
  std::vector<const LocalPlan*> locals;
  for (const Stage& stage : chain.all)
    locals.push_back(&plans[stage.kind][(n + stage.kind) % plans[stage.kind].size()]);
  const CostModel costs(trace, needs, device);
  return survey(trace, chain, lower(trace, assembled(trace, chain, locals)), costs, device, {})
      .stages;
}

void expect_equal(const StageCost& a, const StageCost& b) {
  EXPECT_EQ(a.time, b.time);
  EXPECT_EQ(a.first.kept, b.first.kept);
  EXPECT_EQ(a.first.late, b.first.late);
  EXPECT_EQ(a.first.forward, b.first.forward);
  EXPECT_EQ(a.first.backward, b.first.backward);
}

void expect_the_same_costs(const Trace& trace, const Needs& needs, const Stages& chain) {
  const std::optional<ShorterStep> shorter = without_alike(trace, needs, chain, one_of_each(chain));
  ASSERT_TRUE(shorter);
  EXPECT_EQ(check(*shorter->trace), std::vector<std::string>());
  EXPECT_LT(shorter->chain.all.size(), chain.all.size());
  EXPECT_EQ(blocks_in(*shorter->trace, shorter->chain), shorter->trace->blocks.size());
  const auto plans = some_plans(trace, needs, chain);
  for (std::size_t n = 0; n < 6; ++n) {
    const auto whole = costs_of(trace, needs, chain, plans, n);
    const auto some = costs_of(*shorter->trace, shorter->needs, shorter->chain, plans, n);
    for (std::size_t s = 0; s < some.size(); ++s)
      for (const std::uint32_t like : chain.kinds[shorter->chain.all[s].kind]) {
        SCOPED_TRACE(testing::Message() << trace.model << " stage " << s << " plan " << n);
        expect_equal(some[s], whole[like]);
      }
  }
}

TEST(ShorterStep, CostsWhatTheWholeOneCosts) {
  for (const auto& [model, precision] :
       {std::pair{"gpt2", Precision::AmpBf16}, std::pair{"bert-base", Precision::Fp32},
        std::pair{"llama-7b", Precision::Bf16}, std::pair{"swin-t", Precision::Fp32},
        std::pair{"olmoe-1b-7b", Precision::Bf16}}) {
    const Trace trace = trace_of(model, precision);
    const Needs needs = derive_needs(trace);
    expect_the_same_costs(trace, needs, stages_of(trace, needs));
  }
}

TEST(ShorterStep, CostsWhatTheWholeOneCostsWhereBlocksAreJoined) {
  const Trace trace = trace_of("llama-7b", Precision::Bf16);
  const Needs needs = derive_needs(trace);
  for (const std::size_t length : {2, 3})
    expect_the_same_costs(trace, needs, join(trace, needs, stages_of(trace, needs), length).chain);
}

TEST(ShorterStep, HasAsManyOfEachKindAsAreAskedFor) {
  const Trace trace = trace_of("gpt2");
  const Needs needs = derive_needs(trace);
  const Stages chain = stages_of(trace, needs);
  ASSERT_EQ(chain.kinds.size(), 3u);
  const std::optional<ShorterStep> shorter = without_alike(trace, needs, chain, {1, 5, 1});
  ASSERT_TRUE(shorter);
  EXPECT_EQ(shorter->chain.kinds[1].size(), 5u);
  EXPECT_EQ(shorter->chain.all.size(), 7u);
  EXPECT_FALSE(without_alike(trace, needs, chain, {1, 12, 1}));
}

// Blocks of a decoder add to one gradient of what the encoder made, and its first adds nothing but
// makes it; those of the encoder share the gradient of their positions' bias.
TEST(ShorterStep, LeavesOutNoBlockThatSharesAGradient) {
  const Trace trace = trace_of("t5-base");
  const Needs needs = derive_needs(trace);
  const Stages chain = stages_of(trace, needs);
  EXPECT_FALSE(without_alike(trace, needs, chain, one_of_each(chain)));
}

}  // namespace
}  // namespace tidemark::shorter_step_test
