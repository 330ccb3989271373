// Choices of calls that stay, against what lowered schedules do.
#include "simulator/planner/policy_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/planner/planner.h"
#include "traces/aten_calls.h"
#include "traces/presets.h"

namespace tidemark::policy_form_test {
namespace {

using testing::IsEmpty;

std::shared_ptr<const Trace> trace_of(const std::string& model, Precision precision) {
  return std::make_shared<const Trace>(
      build_trace(find_model(model), {.batch = 2, .precision = precision}));
}

std::size_t count_reruns(const Schedule& schedule, const Stage& stage) {
  std::size_t reruns = 0;
  for (const Step& step : schedule.steps)
    if (const Run* run = std::get_if<Run>(&step))
      reruns += run->task == Task::Recompute && run->op >= stage.begin && run->op < stage.end;
  return reruns;
}

// Up to the last op whose backward holds something; that one, too, if it holds what it has made.
std::size_t count_ops_that_run(const Trace& trace, const Needs& needs, const Stage& stage,
                               const std::vector<OpId>& saved) {
  std::size_t ops = 0, until_last = 0;
  for (std::size_t i = index(stage.begin); i < index(stage.end); ++i) {
    const bool runs = !is_view(trace.ops[i].kind) &&
                      std::ranges::find(saved, static_cast<OpId>(i)) == saved.end();
    if (needs.saved[i] != 0) until_last = ops + (runs && needs.saved[i] >= output_bit(0) ? 1 : 0);
    ops += runs;
  }
  return until_last;
}

TEST(PolicyForm, RunsAllThatDoesNotStay) {
  for (const char* model : {"gpt2", "bert-base", "vit-b-16", "llama-7b"})
    for (const Precision precision : {Precision::Fp32, Precision::AmpBf16}) {
      const auto trace = trace_of(model, precision);
      const Planner planner(trace, find_device("a100-80gb"), {}, {PlanForm::Policy});
      const Stages& stages = planner.stages();
      std::size_t with_calls = 0;
      for (std::uint32_t kind = 0; kind < stages.kinds.size(); ++kind) {
        const Stage& stage = stages.all[stages.kinds[kind].front()];
        for (const Planner::Entry& entry : planner.menu(kind)) {
          const std::vector<OpId> saved = saved_ops(*trace, stage, entry.plan);
          if (saved.empty()) continue;
          ++with_calls;
          std::vector<LocalPlan> kept;
          for (const Stage& each : stages.all) kept.push_back(keep_all(each));
          std::vector<const LocalPlan*> locals;
          for (const LocalPlan& local : kept) locals.push_back(&local);
          locals[stages.kinds[kind].front()] = &entry.plan;
          const Plan plan = assembled(*trace, stages, locals);
          ASSERT_THAT(check(*trace, plan), IsEmpty()) << model;
          const Schedule schedule = lower(*trace, plan);
          ASSERT_THAT(validate(*trace, schedule), IsEmpty()) << model;
          ASSERT_EQ(count_reruns(schedule, stage),
                    count_ops_that_run(*trace, planner.needs(), stage, saved))
              << model << " " << to_string(precision);
        }
      }
      EXPECT_GT(with_calls, 3u) << model << " " << to_string(precision);
    }
}

// More choices are never worse than whole blocks, and fewer never better than tensors.
TEST(PolicyForm, LiesBetweenBlocksAndTensors) {
  const auto trace = trace_of("llama-7b", Precision::Bf16);
  const Device device = find_device("a100-80gb");
  const Planner tensors(trace, device, {}, {PlanForm::Tensors});
  const Planner policy(trace, device, {}, {PlanForm::Policy});
  const Planner blocks(trace, device, {}, {PlanForm::Blocks});
  bool is_ever_faster = false;
  for (std::size_t point = 0; point < blocks.size(); ++point) {
    const auto [bytes, time] = blocks[point];
    const std::int64_t of_policy = policy[policy.within(bytes).value()].time;
    EXPECT_LE(of_policy, time);
    EXPECT_LE(tensors[tensors.within(bytes).value()].time, of_policy);
    is_ever_faster |= of_policy < time;
  }
  EXPECT_TRUE(is_ever_faster);
}

TEST(PolicyForm, LeavesBlocksAloneWhoseCallsNobodyKnows) {
  const auto trace = trace_of("mixtral-8x7b", Precision::Bf16);
  const Planner planner(trace, find_device("a100-80gb"), {}, {PlanForm::Policy});
  ASSERT_TRUE(std::ranges::any_of(
      trace->ops, [](const Op& op) { return op.kind == OpKind::Opaque && op.block >= 0; }));
  for (std::uint32_t kind = 0; kind < planner.stages().kinds.size(); ++kind) {
    const Stage& stage = planner.stages().all[planner.stages().kinds[kind].front()];
    for (const Planner::Entry& entry : planner.menu(kind))
      EXPECT_THAT(saved_ops(*trace, stage, entry.plan), IsEmpty());
  }
}

TEST(AtenCalls, OfALinearAreOneGroupWithAndWithoutBias) {
  const auto trace = trace_of("gpt2", Precision::Fp32);
  const auto linear = std::ranges::find(trace->ops, OpKind::Linear, &Op::kind);
  const std::optional<AtenCall> call = named_call(*trace, *linear);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->group, "product");
  EXPECT_THAT(call->overloads, testing::ElementsAre("aten.mm.default", "aten.addmm.default"));
}

}  // namespace
}  // namespace tidemark::policy_form_test
