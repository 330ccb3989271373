// Sums against lowered schedules: what the planner adds up is what a plan's schedule needs.
#include "simulator/planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/allocator/allocator_replay.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/simulate.h"
#include "tests/simulator/dice.h"
#include "tests/simulator/step_facts.h"
#include "tests/support/all_strategies.h"
#include "traces/presets.h"
#include "traces/trace_builder.h"

namespace tidemark::planner_test {
namespace {

using testing::IsEmpty;

struct Case {
  std::string model;
  Precision precision;
  std::string tuning = "full";
  std::int64_t accumulate = 1, batch = 4;
  bool update_in_backward = false;
  std::int64_t ranks = 1;  ///< tensor-parallel
  std::int64_t replicas = 1;
  std::string shard = "ddp";
  std::string framework = std::string(default_framework);
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.model << " " << to_string(c.precision) << " " << c.tuning << " × " << c.accumulate
             << " tp=" << c.ranks << " dp=" << c.replicas << " " << c.shard << " " << c.framework;
}

std::shared_ptr<const Trace> trace_of(const Case& c) {
  StepOptions step{.batch = c.batch, .precision = c.precision, .tuning = parse_tuning(c.tuning)};
  step.framework = c.framework;
  step.accumulate.count = c.accumulate;
  step.update_in_backward = c.update_in_backward;
  step.mesh[Axis::Tensor] = c.ranks;
  step.mesh[Axis::Data] = c.replicas;
  if (c.replicas > 1) step.shard = parse_sharding(c.shard);
  step.sequence_parallel = c.ranks > 2;
  return std::make_shared<const Trace>(build_rank_trace(find_model(c.model), step));
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{"gpt2", Precision::Fp32},
                                        {"gpt2", Precision::Bf16, "full", 3},
                                        {"gpt2", Precision::Bf16, "full", 7},
                                        {"bert-base", Precision::Fp32},
                                        {"vit-b-16", Precision::AmpFp16, "full", 1, 32},
                                        {"swin-t", Precision::Fp32},
                                        {"mvitv2-t", Precision::Bf16},
                                        {"llama-7b", Precision::Bf16},
                                        {"llama-7b", Precision::Bf16, "lora:r=8,targets=q,v"},
                                        {"gpt2", Precision::Bf16, "full", 1, 16, true},
                                        {"llama-7b", Precision::Bf16, "full", 1, 4, false, 2},
                                        {"llama-7b", Precision::Bf16, "full", 1, 4, false, 8}};
  return all;
}

// Replicas, in every way in which they share what belongs to parameters.
const std::vector<Case>& replicas() {
  static const std::vector<Case> all = [] {
    std::vector<Case> made;
    for (const char* shard : {"ddp", "ddp:bucket-view", "fsdp2", "fsdp2:no-reshard", "megatron",
                              "megatron:overlap", "megatron:narrow-gradients"})
      made.push_back({"gpt2", Precision::Bf16, "full", 1, 4, false, 1, 8, shard});
    made.push_back({"gpt2", Precision::Fp32, "full", 5, 4, false, 1, 2, "fsdp2"});
    made.push_back({"swin-t", Precision::Fp32, "full", 1, 4, false, 1, 4, "fsdp2"});
    made.push_back({"bert-base", Precision::AmpFp16, "full", 1, 4, false, 1, 4, "fsdp2"});
    made.push_back(
        {"llama-7b", Precision::Bf16, "lora:r=8,targets=q,v", 1, 2, false, 1, 8, "fsdp2"});
    made.push_back({"llama-7b", Precision::Bf16, "full", 1, 2, false, 2, 4, "megatron"});
    for (const char* shard : {"megatron", "megatron:overlap", "megatron:no-fusion"})
      made.push_back({"gpt2", Precision::Bf16, "full", 2, 4, false, 1, 8, shard, "megatron"});
    return made;
  }();
  return all;
}

std::vector<Case> all_cases() {
  std::vector<Case> all = cases();
  all.insert(all.end(), replicas().begin(), replicas().end());
  return all;
}

const Device& device() {
  static const Device found = find_device("a100-80gb");
  return found;
}

std::vector<std::size_t> some_points(const Planner& planner) {
  std::vector<std::size_t> points;
  for (std::size_t i = 0; i <= 24; ++i) points.push_back(i * (planner.size() - 1) / 24);
  return points;
}

TEST(Planner, AddsUpToTheByte) {
  for (const Case& c : all_cases()) {
    const auto trace = trace_of(c);
    const Planner planner(trace, device(), {});
    ASSERT_GT(planner.size(), 20u) << c;
    for (const std::size_t point : some_points(planner)) {
      const Plan plan = planner.plan_at(point);
      ASSERT_THAT(check(*trace, plan), IsEmpty()) << c;
      const Schedule schedule = lower(*trace, plan);
      ASSERT_THAT(validate(*trace, schedule), IsEmpty()) << c;
      ASSERT_EQ(rounded_live_peak(schedule), planner[point].bytes) << c << " point " << point;
      const auto simulated =
          static_cast<double>(simulate(*trace, schedule, device()).duration.count());
      ASSERT_LE(planner[point].time, simulated + 1000) << c;
    }
  }
}

TEST(Planner, FrontRisesInBytesAndFallsInTime) {
  const Planner planner(trace_of(cases().front()), device(), {});
  for (std::size_t i = 1; i < planner.size(); ++i) {
    ASSERT_GE(planner[i].bytes, planner[i - 1].bytes);
    ASSERT_LT(planner[i].time, planner[i - 1].time);
  }
  EXPECT_FALSE(planner.within(planner[0].bytes - 1));
  EXPECT_EQ(planner.within(planner[0].bytes), 0u);
  EXPECT_EQ(planner.within(std::int64_t{1} << 60), planner.size() - 1);
}

// Updates in the backward meet what stages keep: they are no memory of their own.
TEST(Planner, RestHoldsNothingThatStagesKeep) {
  const Planner after(trace_of({"gpt2", Precision::Bf16}), device(), {});
  const Planner within(trace_of({"gpt2", Precision::Bf16, "full", 1, 4, true}), device(), {});
  EXPECT_LT(within.rest(), after.rest());
  EXPECT_GT(within.size(), 100u);
}

// A cheap attack on the proof: plans that others made, and mixtures that nobody would choose.
TEST(Planner, BoundIsBelowEveryStrategyOfItsClass) {
  for (const Case& c : all_cases()) {
    const auto trace = trace_of(c);
    const Planner planner(trace, device(), {});
    for (const char* text :
         {"vanilla", "checkpoint", "checkpoint:blocks", "checkpoint:selective"}) {
      const PlannedStep step = plan_step(trace, parse_strategy(text));
      if (!step.refusal.empty()) continue;
      const Schedule schedule = lower(step);
      const std::int64_t bound = planner.lower_bound(rounded_live_peak(schedule));
      ASSERT_LE(bound, simulate(*step.trace, schedule, device()).duration.count())
          << c << " " << text;
      ASSERT_GT(bound, 0) << c;
    }
  }
}

TEST(Planner, BoundOfJoinedBlocksIsBelowEverySegmentedCheckpoint) {
  for (const Case& c : all_cases()) {
    const auto trace = trace_of(c);
    const Planner planner(trace, device(), {});
    for (const char* text : {"vanilla", "checkpoint:blocks", "checkpoint:every=2",
                             "checkpoint:every=3", "checkpoint:every=6", "checkpoint:every=8"}) {
      const PlannedStep step = plan_step(trace, parse_strategy(text));
      if (!step.refusal.empty()) continue;
      const Schedule schedule = lower(step);
      const std::int64_t bytes = rounded_live_peak(schedule);
      const std::int64_t bound = planner.lower_bound_of_joined(bytes);
      ASSERT_LE(bound, simulate(*trace, schedule, device()).duration.count()) << c << " " << text;
      ASSERT_LE(bound, planner.lower_bound(bytes)) << c << " " << text;
      ASSERT_GT(bound, 0) << c;
    }
  }
}

// What has left for the host's memory is as if kept, as far as the link can have brought it.
TEST(Planner, BoundOfOffloadIsBelowEveryStrategyThatOffloads) {
  const double link = device().host_link_bytes_per_second * 1e-9;
  for (const Case& c : all_cases()) {
    const auto trace = trace_of(c);
    const Planner planner(trace, device(), {});
    for (const char* text : {"vanilla", "offload", "offload:every=2", "offload:prefetch=3",
                             "checkpoint:blocks+offload", "checkpoint:every=2+offload"}) {
      const PlannedStep step = plan_step(trace, parse_strategy(text));
      if (!step.refusal.empty()) continue;
      const Schedule schedule = lower(step);
      const std::int64_t bytes = rounded_live_peak(schedule);
      const auto simulated = simulate(*trace, schedule, device()).duration.count();
      ASSERT_LE(planner.lower_bound_of_joined(bytes, link), simulated) << c << " " << text;
      const bool joins = std::string_view(text).starts_with("checkpoint:every");
      ASSERT_LE(joins ? 0 : planner.lower_bound(bytes, link), simulated) << c << " " << text;
      ASSERT_LE(planner.lower_bound(bytes, link), planner.lower_bound(bytes)) << c << " " << text;
    }
  }
}

TEST(Planner, OffloadedPlansCanBeCarriedOut) {
  for (const Case& c : all_cases()) {
    const auto trace = trace_of(c);
    const Planner exact(trace, device(), {});
    const Planner planner(exact, 1);
    std::size_t offloading = 0;
    for (const std::size_t point : some_points(planner)) {
      const Plan plan = planner.plan_at(point);
      ASSERT_THAT(check(*trace, plan), IsEmpty()) << c;
      const Schedule schedule = lower(*trace, plan);
      ASSERT_THAT(validate(*trace, schedule), IsEmpty()) << c;
      // What is under way is counted for every stage, whether or not the one before it offloads.
      ASSERT_LE(rounded_live_peak(schedule), planner[point].bytes) << c << " point " << point;
      std::int64_t offloaded = 0, named = 0;
      for (const Planner::Part& part : planner.parts_at(point)) offloaded += part.entry->offloaded;
      for (std::size_t t = 0; t < plan.decisions.size(); ++t)
        if (plan.decisions[t].action == Action::Offload) named += rounded(size(trace->tensors[t]));
      ASSERT_EQ(offloaded, named) << c << " point " << point;
      offloading += offloaded > 0;
    }
    ASSERT_GT(offloading, 0u) << c;
  }
}

// Below what single blocks can do: their inputs alone are too much.
TEST(Planner, JoinsBlocksWhereMemoryIsLeast) {
  const auto trace = trace_of(cases().front());
  const Planner planner(trace, device(), {});
  const auto joined_at = [&](std::size_t point) {
    std::size_t most = 0;
    for (const Planner::Part& part : planner.parts_at(point))
      most = std::max<std::size_t>(most, part.count);
    return most;
  };
  EXPECT_GT(joined_at(0), 1u);
  EXPECT_EQ(joined_at(planner.size() - 1), 1u);
  for (const char* text :
       {"checkpoint:every=2", "checkpoint:every=3", "checkpoint:every=5", "checkpoint:every=12"}) {
    const Schedule schedule = lower(plan_step(trace, parse_strategy(text)));
    const auto point = planner.within(rounded_live_peak(schedule));
    ASSERT_TRUE(point) << text;
    EXPECT_LE(planner[*point].time, simulate(*trace, schedule, device()).duration.count()) << text;
  }
  // At its own bytes, wherever blocks stand in a step, each is decided about once.
  for (const std::size_t point : some_points(planner)) {
    std::uint32_t next = 0;
    for (const Planner::Part& part : planner.parts_at(point)) {
      ASSERT_EQ(part.first, next);
      next += part.count;
    }
    ASSERT_EQ(next, planner.stages().all.size());
  }
}

// Codes add up as all else does, but for the ranges, of which as many are counted as could be.
TEST(Planner, CodesAddUp) {
  std::size_t coding_inputs = 0;
  for (const Case& c : cases()) {
    const auto trace = trace_of(c);
    const Planner planner(trace, device(), {}, {PlanForm::Tensors, {8, 4, 2}});
    std::size_t coding = 0;
    for (const std::size_t point : some_points(planner)) {
      const Plan plan = planner.plan_at(point);
      ASSERT_THAT(check(*trace, plan), IsEmpty()) << c;
      const Schedule schedule = lower(*trace, plan);
      ASSERT_THAT(validate(*trace, schedule), IsEmpty()) << c;
      const std::int64_t peak = rounded_live_peak(schedule);
      ASSERT_LE(peak, planner[point].bytes) << c << " point " << point;
      ASSERT_GE(peak, planner[point].bytes * 999 / 1000) << c << " point " << point;
      const auto simulated = simulate(*trace, schedule, device()).duration.count();
      ASSERT_LE(planner.lower_bound_of_joined(peak), simulated) << c << " point " << point;
      coding += fewest_bits(plan) > 0;
      for (const Planner::Part& part : planner.parts_at(point))
        coding_inputs += std::ranges::find(part.entry->plan.inputs, Action::Quantize,
                                           &Form::action) != part.entry->plan.inputs.end();
    }
    ASSERT_GT(coding, 0u) << c;
  }
  EXPECT_GT(coding_inputs, 0u);
}

// Blocks' inputs are the codes of who reads them last, so that stages can say what Mesa does.
TEST(Planner, StagesSayWhatMesaDoes) {
  const auto trace = trace_of({"llama-7b", Precision::Fp32, "lora"});
  const Needs needs = derive_needs(*trace);
  const Stages stages = stages_of(*trace, needs);
  for (const char* text : {"mesa", "mesa+checkpoint:blocks"}) {
    const PlannedStep step = plan_step(trace, parse_strategy(text));
    std::vector<LocalPlan> locals;
    std::vector<const LocalPlan*> pointers;
    for (const Stage& stage : stages.all) {
      const std::optional<LocalPlan> local = local_plan_of(*trace, needs, step.plan, stage);
      ASSERT_TRUE(local) << text;
      locals.push_back(*local);
    }
    for (const LocalPlan& local : locals) pointers.push_back(&local);
    const Plan plan = assembled(*trace, stages, pointers);
    std::size_t inputs = 0;
    for (std::size_t t = 0; t < plan.decisions.size(); ++t)
      ASSERT_EQ(plan.decisions[t].action, step.plan.decisions[t].action)
          << text << " " << trace->tensors[t].name;
    for (const LocalPlan& local : locals)
      inputs += std::ranges::count(local.inputs, Action::Quantize, &Form::action);
    EXPECT_EQ(inputs, trace->blocks.size())
        << text;  // of all blocks but the first, and of the norm
  }
}

TEST(Planner, BoundOfCodesIsBelowMesa) {
  for (const Case& c : {cases().front(), Case{"llama-7b", Precision::Fp32, "lora"}}) {
    const auto trace = trace_of(c);
    const Planner planner(trace, device(), {}, {PlanForm::Tensors, {8}});
    for (const char* text : {"mesa", "mesa+checkpoint:blocks"}) {
      const Schedule schedule = lower(plan_step(trace, parse_strategy(text)));
      ASSERT_LE(planner.lower_bound(rounded_live_peak(schedule)),
                simulate(*trace, schedule, device()).duration.count())
          << c << " " << text;
    }
  }
}

// Values that cross blocks: the encoder's output is read by all of the decoder.
TEST(Planner, LooksAtStrategiesThatStagesCannotSay) {
  const auto trace = trace_of({"t5-base", Precision::Fp32});
  const Planner exact(trace, device(), {});
  const Planner planner(exact, 1);
  const Plan strategy = plan_step(trace, parse_strategy("checkpoint:blocks+offload")).plan;
  std::size_t whole = 0, same = 0;
  for (std::size_t point = planner.size(); point < planner.size() + planner.named(); ++point) {
    if (planner.is_of_stages(point)) continue;
    ++whole;
    const Plan plan = planner.plan_at(point);
    ASSERT_THAT(check(*trace, plan), IsEmpty());
    same += plan.decisions == strategy.decisions && plan.regions == strategy.regions;
    std::int64_t offloaded = 0, said = 0;
    for (const Planner::Part& part : planner.parts_at(point)) said += part.entry->offloaded;
    for (std::size_t t = 0; t < plan.decisions.size(); ++t)
      if (plan.decisions[t].action == Action::Offload)
        offloaded += rounded(size(trace->tensors[t]));
    EXPECT_EQ(said, offloaded);
  }
  EXPECT_GT(whole, 0u);
  EXPECT_EQ(same, 1u);
}

TEST(Planner, BoundOfCodesIsBelowMixturesOfLocalPlans) {
  for (const std::size_t which : {0, 2, 6}) {
    const auto trace = trace_of(cases()[which]);
    const Planner planner(trace, device(), {}, {PlanForm::Tensors, {8, 4, 2}});
    Dice dice(11);
    for (int i = 0; i < 100; ++i) {
      std::vector<const LocalPlan*> locals;
      for (const Stage& stage : planner.stages().all)
        locals.push_back(&dice.pick(planner.menu(stage.kind)).plan);
      const Schedule schedule = lower(*trace, assembled(*trace, planner.stages(), locals));
      ASSERT_LE(planner.lower_bound(rounded_live_peak(schedule)),
                simulate(*trace, schedule, device()).duration.count())
          << cases()[which];
    }
  }
}

TEST(Planner, BoundIsBelowMixturesOfLocalPlans) {
  for (const Case& c : {cases().front(), replicas()[0], replicas()[2], replicas()[5]}) {
    const auto trace = trace_of(c);
    const Planner planner(trace, device(), {});
    const Stages& stages = planner.stages();
    Dice dice(7);
    for (int i = 0; i < 100; ++i) {
      std::vector<const LocalPlan*> locals;
      for (const Stage& stage : stages.all)
        locals.push_back(&dice.pick(planner.menu(stage.kind)).plan);
      const Schedule schedule = lower(*trace, assembled(*trace, stages, locals));
      ASSERT_LE(planner.lower_bound(rounded_live_peak(schedule)),
                simulate(*trace, schedule, device()).duration.count())
          << c;
    }
  }
}

// Measured: at most 0.17 %, where the goal is 0.1. More would be a bound that has got worse.
TEST(Planner, BoundIsCloseToTheFront) {
  for (const std::size_t which : {0, 1}) {
    const Planner planner(trace_of(cases()[which]), device(), {});
    for (const std::size_t point : some_points(planner)) {
      const auto bound = static_cast<double>(planner.lower_bound(planner[point].bytes));
      ASSERT_LE(static_cast<double>(planner[point].time) / bound - 1, 0.0017) << cases()[which];
    }
  }
}

// Of a step so small that the device waits for the host, the launches are what takes time.
TEST(Planner, BoundKnowsLaunches) {
  StepOptions step{.batch = 1, .sequence = 16, .precision = Precision::Bf16};
  step.tuning = parse_tuning("lora:r=4,targets=all");  // so that no large update follows
  const auto trace = std::make_shared<const Trace>(build_trace(find_model("gpt2"), step));
  const Planner planner(trace, device(), {});
  const Schedule schedule = lower(*trace, planner.plan_at(planner.size() - 1));
  const auto simulated = static_cast<double>(simulate(*trace, schedule, device()).duration.count());
  const auto bound = static_cast<double>(planner.lower_bound(std::int64_t{1} << 60));
  EXPECT_LE(bound, simulated);
  EXPECT_GT(bound, 0.9 * simulated);
}

TEST(Planner, BlocksOfOneModelAreOfOneKind) {
  const Planner planner(trace_of({"gpt2", Precision::Fp32}), device(), {});
  std::size_t largest = 0;
  for (const auto& members : planner.stages().kinds) largest = std::max(largest, members.size());
  EXPECT_EQ(largest, 12u);
  EXPECT_EQ(planner.stages().all.size(), 14u);  // what stands before and behind them
}

TEST(Planner, StagesHoldEachOpOnce) {
  for (const Case& c : cases()) {
    const auto trace = trace_of(c);
    const Stages stages = stages_of(*trace, derive_needs(*trace));
    std::size_t at = 0;
    for (const Stage& stage : stages.all) {
      ASSERT_EQ(index(stage.begin), at) << c;
      at = index(stage.end);
    }
    ASSERT_EQ(at, trace->ops.size()) << c;
  }
}

}  // namespace
}  // namespace tidemark::planner_test
