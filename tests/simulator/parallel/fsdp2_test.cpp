// fully_shard: what a rank keeps, what it gathers when, and what lies beside the gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/parallel/shards.h"
#include "simulator/parallel/wrapped_groups.h"
#include "tests/simulator/parallel/ranks.h"

namespace tidemark::fsdp2_test {
namespace {

using testing::IsEmpty;

constexpr std::int64_t ranks = 4;

std::int64_t padded_parameters(const Trace& trace, const std::vector<TensorId>& parameters) {
  std::int64_t count = 0;
  for (const TensorId parameter : parameters) count += padded_numel(trace, parameter);
  return count;
}

std::int64_t count_of(const Trace& trace, const std::vector<TensorId>& parameters) {
  std::int64_t count = 0;
  for (const TensorId parameter : parameters) count += numel(trace[parameter].shape);
  return count;
}

// A bias of 10 on 8 ranks: 2 elements on each (torch's docs of fully_shard); 64 rows on 4: 16.
TEST(Shards, AreRowsInEqualParts) {
  TraceBuilder b("toy", "toy", of_ranks(8, "fsdp2"));
  const TensorId bias = b.parameter("bias", {10});
  const TensorId weight = b.parameter("weight", {64, 3});
  const Trace trace = b.finish(b.gelu("loss", b.input("x", {4}, DType::Float32)));
  EXPECT_EQ(local_parameter(trace, bias).shape, Shape({2}));
  EXPECT_EQ(padded_numel(trace, bias), 16);
  EXPECT_EQ(local_parameter(trace, weight).shape, Shape({8, 3}));
  EXPECT_EQ(padded_numel(trace, weight), 64 * 3);
}

TEST(Groups, AreBlocksAndTheRest) {
  const Trace trace = trace_of(of_ranks(ranks, "fsdp2"));
  const std::vector<WrappedGroup> groups = wrapped_groups(trace);
  ASSERT_EQ(groups.size(), 1 + trace.blocks.size());
  std::int64_t all = 0;
  for (const WrappedGroup& group : groups) all += count_of(trace, group.parameters);
  EXPECT_EQ(all, parameters_of(trace));
  EXPECT_EQ(count_of(trace, groups[1].parameters), count_of(trace, groups[2].parameters));
}

TEST(Fsdp2, KeepsAShardOfAllThatStays) {
  const Trace trace = trace_of(of_ranks(ranks, "fsdp2"));
  const Schedule schedule = schedule_of(of_ranks(ranks, "fsdp2"));
  std::int64_t padded = 0;
  for (const WrappedGroup& group : wrapped_groups(trace))
    padded += padded_parameters(trace, group.parameters);
  EXPECT_EQ(resting(schedule, Category::Parameter), 4 * padded / ranks);
  EXPECT_EQ(resting(schedule, Category::OptimizerState), 8 * padded / ranks);
  EXPECT_EQ(resting(schedule, Category::Communication), 0);
}

// fp32 shards under bf16 compute: 4 + 8 bytes per element of a shard, no copy of 2.
TEST(Fsdp2, MasterWeightsAreTheShards) {
  StepOptions options = of_ranks(ranks, "fsdp2", {.precision = Precision::Bf16});
  options.master_weights = true;
  options.optimizer_form = OptimizerForm::Fused;
  const Schedule schedule = schedule_of(options);
  EXPECT_EQ(2 * resting(schedule, Category::Parameter),
            resting(schedule, Category::OptimizerState));
  EXPECT_EQ(resting(schedule, Category::Parameter),
            resting(schedule_of(of_ranks(ranks, "fsdp2")), Category::Parameter));
  EXPECT_THAT(validate(trace_of(options), schedule), IsEmpty());
}

// Root and 2 blocks forward, and the blocks again backward.
TEST(Fsdp2, GathersBlocksTwiceAndTheRootOnce) {
  const Schedule schedule = schedule_of(of_ranks(ranks, "fsdp2"));
  EXPECT_EQ(count_runs(schedule, Task::AllGather), 3 + 2);
  EXPECT_EQ(count_runs(schedule, Task::ReduceScatter), 3);
  const Schedule kept = schedule_of(of_ranks(ranks, "fsdp2:no-reshard"));
  EXPECT_EQ(count_runs(kept, Task::AllGather), 3);
}

TEST(Fsdp2, ReshardingNeverRaisesThePeak) {
  EXPECT_LE(live_peak(schedule_of(of_ranks(ranks, "fsdp2"))),
            live_peak(schedule_of(of_ranks(ranks, "fsdp2:no-reshard"))));
}

// Outputs of two groups at once, or one output beside the parameters that it is unpacked to.
TEST(Fsdp2, OutputsOfTwoGroupsAreAliveInTheForward) {
  const Trace trace = build_trace(small_gpt2(4), of_ranks(ranks, "fsdp2"));
  const Schedule schedule = lower(planned(trace, "vanilla"));
  const std::int64_t block = 4 * padded_parameters(trace, wrapped_groups(trace)[1].parameters);
  std::int64_t alive = 0, most = 0;
  bool is_behind_root = false;
  for (const Step& step : schedule.steps) {
    const auto* run = std::get_if<tidemark::Run>(&step);
    if (run && run->task == Task::Seed) break;
    const auto counts = [&](BufferId id) {
      return schedule[id].role == Role::Temporary && schedule[id].size.count == block;
    };
    if (const auto* s = std::get_if<Allocate>(&step); s && counts(s->buffer)) ++alive;
    if (const auto* s = std::get_if<Free>(&step); s && counts(s->buffer)) --alive;
    is_behind_root = is_behind_root || alive > 0;
    most = std::max(most, alive);
  }
  EXPECT_TRUE(is_behind_root);
  EXPECT_EQ(most, 2);
}

// Per parameter of a group, in fp32: parameters, the next group's output, gradients, and the input
// of the reduction behind: 16 bytes at most, beside the root's parameters and gradients.
TEST(Fsdp2, WhatTheBackwardAddsIsBounded) {
  const Trace trace = build_trace(small_gpt2(4), of_ranks(ranks, "fsdp2"));
  const Schedule schedule = lower(planned(trace, "vanilla"));
  const std::vector<WrappedGroup> groups = wrapped_groups(trace);
  const std::int64_t block = padded_parameters(trace, groups[1].parameters);
  const std::int64_t root = padded_parameters(trace, groups[0].parameters);
  std::int64_t now = 0, most = 0;
  const auto adds = [&](BufferId id) {
    const Buffer& buffer = schedule[id];
    if (buffer.persistent || buffer.role == Role::GradientShard) return std::int64_t{0};
    const bool is_whole = buffer.tensor != no_tensor && trace[buffer.tensor].trainable &&
                          trace[buffer.tensor].category == Category::Parameter;
    return is_whole ? buffer.size.count : 0;
  };
  for (const Step& step : schedule.steps) {
    if (const auto* s = std::get_if<Allocate>(&step)) now += adds(s->buffer);
    if (const auto* s = std::get_if<Free>(&step)) now -= adds(s->buffer);
    if (const auto* run = std::get_if<tidemark::Run>(&step); run && run->task == Task::Optimizer)
      break;
    most = std::max(most, now);
  }
  EXPECT_LE(most, 16 * block + 12 * root);
  EXPECT_GE(most, 12 * block + 4 * root);
}

TEST(Fsdp2, MicroBatchesAreReducedOneByOneIntoTheShards) {
  const StepOptions options = of_ranks(ranks, "fsdp2", {.accumulate = {3}});
  const Schedule schedule = schedule_of(options);
  EXPECT_EQ(count_runs(schedule, Task::ReduceScatter), 3 * 3);
  EXPECT_THAT(validate(trace_of(options), schedule), IsEmpty());
}

// fully_shard() on a mesh of two dimensions: as much as of two ranks, and gradients are summed once
// more among those that have the same shards.
TEST(Fsdp2, HybridShardingKeepsAShardOfTheGroup) {
  const StepOptions hybrid = of_ranks(ranks, "fsdp2:shard=2", {.accumulate = {2}});
  const StepOptions two = of_ranks(2, "fsdp2", {.accumulate = {2}});
  const Schedule schedule = schedule_of(hybrid);
  EXPECT_EQ(persistent_bytes(schedule), persistent_bytes(schedule_of(two)));
  EXPECT_EQ(live_peak(schedule), live_peak(schedule_of(two)));
  EXPECT_EQ(count_runs(schedule, Task::AllReduce), count_runs(schedule, Task::ReduceScatter));
  EXPECT_THAT(validate(trace_of(hybrid), schedule), IsEmpty());
  EXPECT_EQ(sharing_defect(of_ranks(6, "fsdp2:shard=4")),
            "6 replicas are no groups of 4 ranks (nearest: shard=3)");
}

TEST(Fsdp2, HybridShardingOfAllRanksIsFullSharding) {
  EXPECT_EQ(schedule_of(of_ranks(ranks, "fsdp2:shard=4")).buffers,
            schedule_of(of_ranks(ranks, "fsdp2")).buffers);
}

TEST(Fsdp2, FrozenParametersAreGatheredAndNotReduced) {
  StepOptions options = of_ranks(ranks, "fsdp2");
  options.tuning = parse_tuning("lora:r=2,targets=all");
  const Schedule schedule = schedule_of(options);
  EXPECT_THAT(validate(trace_of(options), schedule), IsEmpty());
  for (const tidemark::Run& run : runs_of(schedule)) {
    if (run.task != Task::ReduceScatter) continue;
    for (const BufferId write : schedule.writes(run))
      EXPECT_TRUE(trace_of(options)[schedule[write].tensor].trainable);
  }
}

TEST(Fsdp2, MoreRanksNeverKeepMore) {
  std::int64_t before = INT64_MAX;
  for (const std::int64_t d : {1, 2, 3, 4, 8, 16, 64}) {
    const Schedule schedule = schedule_of(of_ranks(d, "fsdp2"));
    EXPECT_LE(persistent_bytes(schedule).count, before) << d;
    before = persistent_bytes(schedule).count;
  }
}

}  // namespace
}  // namespace tidemark::fsdp2_test
