// DistributedDataParallel: which bucket holds which gradients, what stays, and what is exchanged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/graph/differentiate.h"
#include "simulator/judge/validate.h"
#include "simulator/parallel/buckets.h"
#include "tests/simulator/parallel/ranks.h"

namespace tidemark::ddp_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t mib = 1 << 20;

// Gradients of 0.5, 0.8, 20, 9 and 3 MiB, ready in this order.
Trace trace_with(const std::vector<std::int64_t>& kib) {
  TraceBuilder b("toy", "toy", {.precision = Precision::Fp32});
  for (std::size_t i = 0; i < kib.size(); ++i)
    b.parameter(fmt::format("p{}", i), {kib[i] * 1024 / 4});
  const TensorId x = b.input("x", {4}, DType::Float32);
  return b.finish(b.gelu("loss", x));
}

std::vector<std::int64_t> bucket_kib(const std::vector<std::int64_t>& kib,
                                     std::string_view sharding) {
  const Trace trace = trace_with(kib);
  std::vector<ReadyGradient> ready;
  for (std::size_t t = 0; t < kib.size(); ++t)
    ready.push_back({static_cast<TensorId>(t), static_cast<NodeId>(t)});
  std::vector<std::int64_t> sizes;
  for (const Bucket& bucket : buckets_of(trace, ready, parse_sharding(sharding)))
    sizes.push_back(bucket.size.count / 1024);
  return sizes;
}

TEST(Buckets, CloseWhenTheyReachTheirLimit) {
  const std::vector<std::int64_t> kib = {512, 820, 20480, 9216, 3072};
  EXPECT_THAT(bucket_kib(kib, "ddp"), ElementsAre(512 + 820, 20480 + 9216, 3072));
}

TEST(Buckets, OfAnotherSizeHaveNoSmallFirstOne) {
  EXPECT_THAT(bucket_kib({512, 820, 20480, 9216, 3072}, "ddp:bucket-mb=1"),
              ElementsAre(512 + 820, 20480, 9216, 3072));
  EXPECT_THAT(bucket_kib({512, 820, 20480}, "ddp:bucket-mb=50"), ElementsAre(512 + 820 + 20480));
}

std::int64_t at_update(const Schedule& schedule) {
  const std::vector<Bytes> live = live_bytes(schedule);
  for (std::size_t i = 0; i < live.size(); ++i)
    if (const auto* run = std::get_if<tidemark::Run>(&schedule.steps[i]);
        run && run->task == Task::Optimizer)
      return live[i].count;
  return 0;
}

TEST(Ddp, KeepsBucketsOfAllGradients) {
  const StepOptions options = of_ranks(4, "ddp");
  const Schedule schedule = schedule_of(options);
  const std::int64_t parameters = parameters_of(trace_of(options));
  EXPECT_EQ(resting(schedule, Category::Communication), 4 * parameters);
  EXPECT_EQ(resting(schedule, Category::Parameter), 4 * parameters);
  EXPECT_EQ(resting(schedule, Category::OptimizerState), 8 * parameters);
}

// Each gradient is copied in; a model of less than 1 MiB has one bucket, copied back at once.
TEST(Ddp, ReducesEachBucketOnce) {
  const Schedule schedule = schedule_of(of_ranks(4, "ddp"));
  EXPECT_EQ(count_runs(schedule, Task::AllReduce), 1);
  const auto gradients =
      std::ranges::count_if(trace_of(of_ranks(4, "ddp")).tensors, [](const Tensor& tensor) {
        return tensor.category == Category::Parameter && tensor.trainable;
      });
  EXPECT_EQ(count_runs(schedule, Task::Pack), gradients + 1);
}

// With views nothing but the bucket holds gradients until the optimizer has read it.
TEST(Ddp, ViewsFreeWhatTheBackwardMade) {
  const Schedule with_views = schedule_of(of_ranks(4, "ddp:bucket-view"));
  const Trace trace = trace_of(of_ranks(4, "ddp"));
  EXPECT_EQ(at_update(schedule_of(of_ranks(4, "ddp"))) - at_update(with_views),
            4 * parameters_of(trace));
  for (const tidemark::Run& run : runs_of(with_views)) {
    if (run.task != Task::Optimizer) continue;
    for (const BufferId read : with_views.reads(run))
      EXPECT_EQ(with_views[read].category, Category::Communication);
  }
}

TEST(Ddp, MicroBatchesAreReducedTogether) {
  const Schedule schedule = schedule_of(of_ranks(4, "ddp", {.accumulate = {3}}));
  EXPECT_EQ(count_runs(schedule, Task::AllReduce), 1);
  EXPECT_THAT(validate(trace_of(of_ranks(4, "ddp", {.accumulate = {3}})), schedule), IsEmpty());
}

TEST(Ddp, TakesAsMuchForTwoRanksAsForAThousand) {
  EXPECT_EQ(live_peak(schedule_of(of_ranks(2, "ddp"))),
            live_peak(schedule_of(of_ranks(1000, "ddp"))));
}

TEST(Ddp, OfOneRankIsTheStepAlone) {
  const StepOptions one = of_ranks(1, "ddp");
  StepOptions alone = one;
  alone.shard = {};
  EXPECT_EQ(differentiate(trace_of(one), keep_everything(trace_of(one))),
            differentiate(trace_of(alone), keep_everything(trace_of(alone))));
}

}  // namespace
}  // namespace tidemark::ddp_test
