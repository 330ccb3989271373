// DeepSpeed's ZeRO 1 and 2: flat partitions, the buckets of a backward, what is reduced, and what
// stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/parallel/flat_partitions.h"
#include "simulator/parallel/shards.h"
#include "tests/simulator/parallel/ranks.h"

namespace tidemark::zero_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Trace two_parameters(std::int64_t ranks) {
  TraceBuilder b("toy", "toy", of_bf16(ranks, "zero2"));
  b.parameter("first", {5});
  b.parameter("second", {4});
  const TensorId x = b.input("x", {4}, DType::Float32);
  return b.finish(b.gelu("loss", x));
}

// 9 elements of two ranks are filled up to 12: [first 5, second 1] [second 3, 3 of nothing].
TEST(FlatPartitions, AreEvenAndFilledUp) {
  const Trace trace = two_parameters(2);
  const std::vector<FlatGroup> groups = flat_groups(trace);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].partition, 6);
  EXPECT_EQ(groups[0].places[1].begin, 5);
  EXPECT_THAT(updated_elements(trace), testing::IsSupersetOf({5, 1}));
}

// The second lies in both partitions, so behind it the first is a slice of its own.
TEST(FlatPartitions, OfNeighboursAreOneSlice) {
  const Trace trace = two_parameters(2);
  const std::vector<FlatGroup> groups = flat_groups(trace);
  const TensorId first = groups[0].places[0].parameter, second = groups[0].places[1].parameter;
  EXPECT_EQ(partition_slices(groups, {second, first}), 3);
  EXPECT_EQ(partition_slices(groups, {first, second}), 2);
  EXPECT_EQ(partition_slices(groups, {first}), 1);
}

std::int64_t flat_elements(const Trace& trace) {
  std::int64_t elements = 0;
  for (const FlatGroup& group : flat_groups(trace))
    elements += group.partition * trace.step.mesh[Axis::Data];
  return elements;
}

// 2 bytes of weights and 12/d of fp32 weights and both moments; no gradient stays.
TEST(Zero, KeepsTwoBytesAndTwelveShared) {
  for (const char* shard : {"zero1", "zero2"}) {
    const StepOptions options = of_bf16(4, shard);
    const Schedule schedule = schedule_of(options);
    const std::int64_t padded = flat_elements(trace_of(options));
    EXPECT_EQ(resting(schedule, Category::Parameter), 2 * padded);
    EXPECT_EQ(resting(schedule, Category::OptimizerState), 12 * padded / 4);
    EXPECT_EQ(resting(schedule, Category::Gradient), 0);
    EXPECT_EQ(resting(schedule, Category::Communication), 0);
  }
}

// fp32 parameters have a copy that is updated: 4 + 12/d.
TEST(Zero, OfFp32KeepsACopyOfItsPart) {
  const StepOptions options = of_ranks(4, "zero2");
  const Schedule schedule = schedule_of(options);
  const std::int64_t padded = flat_elements(trace_of(options));
  EXPECT_EQ(resting(schedule, Category::Parameter), 4 * padded);
  EXPECT_EQ(resting(schedule, Category::OptimizerState), 12 * padded / 4);
}

std::int64_t made(const Schedule& schedule, Category category, Role role) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : schedule.buffers)
    if (!buffer.persistent && buffer.category == category && buffer.role == role)
      bytes += buffer.size.count;
  return bytes;
}

// A bucket of 2 bytes per element in each backward, two with overlap_comm, and gradients of all
// slices side by side.
TEST(Zero, HasABucketInEveryBackward) {
  constexpr std::int64_t elements = 1'000'000;
  const auto buckets = [](const char* shard, std::int64_t micro_batches) {
    return made(schedule_of(of_bf16(4, shard, micro_batches)), Category::Communication,
                Role::Temporary);
  };
  const std::int64_t n = parameters_of(trace_of(of_bf16(4, "zero2")));
  ASSERT_LT(n, elements);
  EXPECT_EQ(buckets("zero2:reduce-bucket=1000000", 1), 2 * elements + 2 * n);
  EXPECT_EQ(buckets("zero2:reduce-bucket=1000000", 3), 3 * (2 * elements + 2 * n));
  EXPECT_EQ(buckets("zero2:reduce-bucket=1000000,overlap", 1), 2 * 2 * elements + 2 * n);
  EXPECT_EQ(buckets("zero1:reduce-bucket=1000000", 3), 2 * elements + 2 * n);
}

// Reduced per micro-batch; ZeRO 1 reduces the sum of them once.
TEST(Zero, ReducesEachMicroBatchFromStageTwoOn) {
  const auto sums = [](const char* shard) {
    return count_runs(schedule_of(of_bf16(4, shard, 3)), Task::AllReduce);
  };
  EXPECT_EQ(sums("zero1"), 1);
  EXPECT_EQ(sums("zero1:overlap"), 1);
  EXPECT_EQ(sums("zero2"), 3);
  EXPECT_EQ(sums("zero2:overlap"), 3);
  EXPECT_EQ(count_runs(schedule_of(of_bf16(4, "zero2", 3)), Task::AllGather), 1);
}

// Of gradients that fill buckets one by one: a reduction each.
TEST(Zero, ReducesLargeGradientsAlone) {
  const Schedule schedule = schedule_of(of_bf16(4, "zero2:reduce-bucket=1"));
  const Trace trace = trace_of(of_bf16(4, "zero2"));
  const auto parameters = std::ranges::count_if(trace.tensors, [](const Tensor& tensor) {
    return tensor.category == Category::Parameter && tensor.trainable;
  });
  EXPECT_EQ(count_runs(schedule, Task::AllReduce), parameters);
}

// The rank's part in 16 bits, side by side, and in fp32.
TEST(Zero, UpdatesFromAnFp32CopyOfItsPart) {
  const StepOptions options = of_bf16(4, "zero2");
  const Trace trace = trace_of(options);
  std::int64_t kept = 0;
  for (const FlatGroup& group : flat_groups(trace))
    for (const FlatPlace& place : group.places)
      if (place.begin < group.partition) kept += 2 * (place.end - place.begin);
  EXPECT_EQ(made(schedule_of(options), Category::Gradient, Role::Temporary),
            kept + (2 + 4) * flat_elements(trace) / 4);
}

TEST(Zero, MoreRanksNeverKeepMore) {
  std::int64_t before = INT64_MAX;
  for (const std::int64_t ranks : {2, 3, 4, 8, 16}) {
    const std::int64_t states =
        resting(schedule_of(of_bf16(ranks, "zero1")), Category::OptimizerState);
    EXPECT_LE(states, before);
    before = states;
  }
}

// What the backward of two micro-batches makes lies beside each other in ZeRO 1 only.
TEST(Zero, StageTwoNeedsNoMoreThanStageOne) {
  EXPECT_LE(live_peak(schedule_of(of_bf16(4, "zero2:reduce-bucket=1000", 2))),
            live_peak(schedule_of(of_bf16(4, "zero1:reduce-bucket=1000", 2))));
}

TEST(Zero, IsSoundWithEveryOption) {
  for (const char* shard :
       {"zero1", "zero1:overlap", "zero2", "zero2:overlap", "zero2:reduce-bucket=1000",
        "zero2:overlap,reduce-bucket=1000", "zero1:overlap,reduce-bucket=100"})
    for (const std::int64_t micro_batches : {1, 3}) {
      const StepOptions options = of_bf16(3, shard, micro_batches);
      EXPECT_THAT(validate(trace_of(options), schedule_of(options)), IsEmpty())
          << shard << ' ' << micro_batches;
    }
}

TEST(Zero, SaysWhatItNeeds) {
  StepOptions options = of_bf16(4, "zero2");
  EXPECT_EQ(sharing_defect(options), "");
  options.mesh[Axis::Pipeline] = 2;
  EXPECT_EQ(sharing_defect(options),
            "zero2 is not simulated with pipeline stages (take --shard megatron)");
  options = of_bf16(4, "zero3");
  options.master_weights = false;
  EXPECT_EQ(sharing_defect(options),
            "zero3 updates fp32 copies of 16-bit weights (add --master-weights)");
}

}  // namespace
}  // namespace tidemark::zero_test
