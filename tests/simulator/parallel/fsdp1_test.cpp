// FullyShardedDataParallel: flat parameters, what the host waits for, and the gradient of the
// views.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/parallel/wrapped_groups.h"
#include "tests/simulator/parallel/ranks.h"

namespace tidemark::fsdp1_test {
namespace {

using testing::IsEmpty;

constexpr std::int64_t ranks = 4;

std::int64_t local_elements(const Trace& trace) {
  std::int64_t elements = 0;
  for (const WrappedGroup& group : wrapped_groups(trace))
    for (const TensorId parameter : group.parameters)
      elements += (numel(trace[parameter].shape) + ranks - 1) / ranks;
  return elements;
}

TEST(Fsdp1, KeepsAPartOfAllElements) {
  const Schedule schedule = schedule_of(of_ranks(ranks, "fsdp1"));
  const std::int64_t n = local_elements(trace_of(of_ranks(ranks, "fsdp1")));
  EXPECT_EQ(resting(schedule, Category::Parameter), 4 * n);
  EXPECT_EQ(resting(schedule, Category::OptimizerState), 8 * n);
  EXPECT_EQ(resting(schedule, Category::Communication), 0);
}

StepOptions of_bf16(std::string_view shard) {
  StepOptions options = of_ranks(ranks, shard, {.precision = Precision::Bf16});
  options.master_weights = true;
  options.optimizer_form = OptimizerForm::Fused;
  return options;
}

TEST(Fsdp1, MasterWeightsAreTheShards) {
  const std::int64_t n = local_elements(trace_of(of_bf16("fsdp1")));
  EXPECT_EQ(resting(schedule_of(of_bf16("fsdp1")), Category::Parameter), 4 * n);
  EXPECT_EQ(resting(schedule_of(of_bf16("fsdp1")), Category::OptimizerState), 8 * n);
}

// Root and two blocks forward, and the blocks again backward, each into the parameters themselves.
TEST(Fsdp1, GathersIntoTheParameters) {
  const Schedule schedule = schedule_of(of_ranks(ranks, "fsdp1"));
  EXPECT_EQ(count_runs(schedule, Task::AllGather), 3 + 2);
  EXPECT_EQ(count_runs(schedule, Task::ReduceScatter), 3);
  for (const tidemark::Run& run : runs_of(schedule)) {
    if (run.task != Task::AllGather) continue;
    for (const BufferId write : schedule.writes(run))
      EXPECT_EQ(schedule[write].category, Category::Parameter);
  }
  EXPECT_EQ(count_runs(schedule_of(of_ranks(ranks, "fsdp1:no-reshard")), Task::AllGather), 3);
}

// The forward of 8 blocks: parameters of two groups beside the root's, never of three.
TEST(Fsdp1, HasTwoGroupsAtMost) {
  const Trace trace = build_trace(small_gpt2(8), of_ranks(ranks, "fsdp1"));
  const Schedule schedule = lower(planned(trace, "vanilla"));
  const auto of_blocks = wrapped_groups(trace);
  std::int64_t block = 0, root = 0, now = 0, most = 0;
  for (const TensorId parameter : of_blocks[1].parameters) block += size(trace[parameter]).count;
  for (const TensorId parameter : of_blocks[0].parameters) root += size(trace[parameter]).count;
  const auto bytes = [&](BufferId id) {
    const Buffer& buffer = schedule[id];
    const bool is_whole = buffer.category == Category::Parameter && !buffer.persistent;
    return is_whole ? buffer.size.count : std::int64_t{0};
  };
  for (const Step& step : schedule.steps) {
    if (const auto* s = std::get_if<Allocate>(&step)) now += bytes(s->buffer);
    if (const auto* s = std::get_if<Free>(&step)) now -= bytes(s->buffer);
    most = std::max(most, now);
  }
  EXPECT_EQ(most, root + 2 * block);
}

// Of 8 blocks that the forward gathers each from the third on waits for the one before the last to
// be free, and so does the backward's first, and each that is gathered once one more is free. Of
// two blocks that are made again together both are freed at once, and the next two wait for both.
TEST(Fsdp1, WaitsForGroupsThatAreFreedTogether) {
  const auto waits = [](std::string_view strategy) {
    const Trace trace = build_trace(small_gpt2(8), of_ranks(ranks, "fsdp1"));
    const PlannedStep step = planned(trace, strategy);
    const JointGraph graph = differentiate(*step.trace, step.plan);
    return std::ranges::count(graph.edges, Lane::Gather, &Edge::lane);
  };
  EXPECT_EQ(waits("vanilla"), 6 + 1 + 6);
  EXPECT_EQ(waits("checkpoint:every=2"), 6 + 1 + 2 + 2 + 1);
}

// fp32 shards under bf16: all that is gathered is cast before, and gradients are widened before
// they are reduced.
TEST(Fsdp1, CastsBeforeItExchanges) {
  EXPECT_EQ(count_runs(schedule_of(of_ranks(ranks, "fsdp1")), Task::Pack), 3);
  EXPECT_EQ(count_runs(schedule_of(of_bf16("fsdp1")), Task::Pack), 3 + 3 + 5);
}

TEST(Fsdp1, IsSoundWithMicroBatchesFrozenParametersAndGroups) {
  for (const char* shard : {"fsdp1", "fsdp1:no-reshard", "fsdp1:shard=2"}) {
    StepOptions options = of_bf16(shard);
    options.accumulate = {3};
    EXPECT_THAT(validate(trace_of(options), schedule_of(options)), IsEmpty()) << shard;
    options.tuning = parse_tuning("lora:r=2,targets=all");
    EXPECT_THAT(validate(trace_of(options), schedule_of(options)), IsEmpty()) << shard;
  }
}

}  // namespace
}  // namespace tidemark::fsdp1_test
