// DeepSpeed's ZeRO 3: which parameters are fetched when, what stays, and how gradients are dealt
// out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "simulator/judge/validate.h"
#include "simulator/parallel/module_fetches.h"
#include "simulator/parallel/shards.h"
#include "tests/simulator/parallel/ranks.h"

namespace tidemark::zero3_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Few of the small model's parameters stay, so that there is something to fetch.
constexpr const char* usual = "zero3:persistence=100,reduce-bucket=100000";

struct Toy {
  Trace trace;
  TensorId a, b, c;
};

Toy three_of_ten() {
  TraceBuilder builder("toy", "toy", of_bf16(2, "zero3"));
  const TensorId a = builder.parameter("a", {10}), b = builder.parameter("b", {10}),
                 c = builder.parameter("c", {10});
  const TensorId x = builder.input("x", {4}, DType::Float32);
  return {builder.finish(builder.gelu("loss", x)), a, b, c};
}

std::vector<ModuleFetch> there_and_back(const Toy& toy, std::string_view sharding) {
  std::vector<ModuleFetch> modules;
  for (const TensorId parameter : {toy.a, toy.b, toy.c, toy.c, toy.b, toy.a})
    modules.push_back({{parameter}});
  plan_fetches(toy.trace, parse_sharding(sharding), modules);
  return modules;
}

// One module ahead; what comes again within ten elements stays.
TEST(ModuleFetches, FetchAheadAndKeepWhatComesSoon) {
  const Toy toy = three_of_ten();
  const auto modules = there_and_back(toy, "zero3:persistence=0,prefetch=1,reuse=10");
  EXPECT_THAT(modules[0].now, ElementsAre(toy.a));
  EXPECT_THAT(modules[0].ahead, ElementsAre(toy.b));
  EXPECT_THAT(modules[0].freed, ElementsAre(toy.a));
  EXPECT_THAT(modules[1].now, IsEmpty());
  EXPECT_THAT(modules[1].ahead, ElementsAre(toy.c));
  EXPECT_THAT(modules[2].ahead, ElementsAre(toy.b));
  EXPECT_THAT(modules[2].freed, IsEmpty());
  EXPECT_THAT(modules[3].ahead, ElementsAre(toy.a));
  EXPECT_THAT(modules[3].freed, ElementsAre(toy.c));
  EXPECT_THAT(modules[4].freed, ElementsAre(toy.b));
  EXPECT_THAT(modules[5].freed, ElementsAre(toy.a));
}

// By default small models stay whole from the forward to the backward: all is used again soon.
TEST(ModuleFetches, FreeNothingThatIsUsedWithinTheReuseDistance) {
  const Toy toy = three_of_ten();
  const auto modules = there_and_back(toy, "zero3:persistence=0,prefetch=0");
  for (std::size_t m = 0; m < 3; ++m) EXPECT_THAT(modules[m].freed, IsEmpty());
  for (std::size_t m = 3; m < 6; ++m) EXPECT_THAT(modules[m].now, IsEmpty());
}

// 25 live elements let one more module in while two are there, not while three are.
TEST(ModuleFetches, FetchNoMoreThanMayLive) {
  const Toy toy = three_of_ten();
  const auto modules = there_and_back(toy, "zero3:persistence=0,prefetch=100,max-live=15");
  EXPECT_THAT(modules[0].ahead, ElementsAre(toy.b));
  EXPECT_THAT(modules[1].ahead, IsEmpty());
  EXPECT_THAT(modules[2].now, ElementsAre(toy.c));
}

TEST(ModuleFetches, NeverFreeSmallParameters) {
  const Toy toy = three_of_ten();
  for (const ModuleFetch& module : there_and_back(toy, "zero3:persistence=10,reuse=0")) {
    EXPECT_THAT(module.now, IsEmpty());
    EXPECT_THAT(module.ahead, IsEmpty());
    EXPECT_THAT(module.freed, IsEmpty());
  }
}

std::int64_t local_elements(const Trace& trace) {
  std::int64_t elements = 0;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (const auto id = static_cast<TensorId>(t);
        trace[id].category == Category::Parameter && trace[id].storage == id)
      elements +=
          (numel(trace[id].shape) + trace.step.mesh[Axis::Data] - 1) / trace.step.mesh[Axis::Data];
  return elements;
}

// (2 + 2 + 12)/d, and the bucket; parameters that are never freed are there as a whole, too.
TEST(Zero3, KeepsSixteenBytesSharedAndABucket) {
  const StepOptions options = of_bf16(4, usual);
  const Trace trace = trace_of(options);
  const Schedule schedule = schedule_of(options);
  const std::int64_t n = local_elements(trace);
  std::int64_t small = 0;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (const auto id = static_cast<TensorId>(t);
        trace[id].category == Category::Parameter && numel(trace[id].shape) <= 100)
      small += size(trace[id]).count;
  ASSERT_GT(small, 0);
  EXPECT_EQ(resting(schedule, Category::Parameter), 2 * n + small);
  EXPECT_EQ(resting(schedule, Category::Gradient), 2 * n);
  EXPECT_EQ(resting(schedule, Category::OptimizerState), 12 * n);
  EXPECT_EQ(resting(schedule, Category::Communication), 2 * 100'000);
}

// fp32 shards are updated where they are.
TEST(Zero3, OfFp32HasNoCopy) {
  const StepOptions options = of_ranks(4, "zero3:persistence=0");
  const Schedule schedule = schedule_of(options);
  const std::int64_t n = local_elements(trace_of(options));
  EXPECT_EQ(resting(schedule, Category::Parameter), 4 * n);
  EXPECT_EQ(resting(schedule, Category::OptimizerState), 8 * n);
}

// The default bucket is a gigabyte.
TEST(Zero3, HasABucketOfHalfABillionElements) {
  EXPECT_EQ(resting(schedule_of(of_bf16(4, "zero3")), Category::Communication), 1'000'000'000);
}

TEST(Zero3, ReducesEveryMicroBatchBucketByBucket) {
  const auto reductions = [](const char* shard, std::int64_t micro_batches) {
    return count_runs(schedule_of(of_bf16(4, shard, micro_batches)), Task::ReduceScatter);
  };
  EXPECT_EQ(reductions("zero3", 1), 1);
  EXPECT_EQ(reductions("zero3", 3), 3);
  EXPECT_GT(reductions("zero3:reduce-bucket=1000", 1), 3);
}

// The host waits at the end of each backward (independent_gradient_partition_epilogue()).
TEST(Zero3, GathersForAMicroBatchOnceTheOneBeforeIsReduced) {
  const Schedule schedule = schedule_of(of_bf16(4, usual, 2));
  const std::int64_t of_first = count_runs(schedule, Task::ReduceScatter) / 2;
  std::int64_t reduced = 0, gathered = 0;
  StreamId reduces{}, gathers{};
  std::set<EventId> behind_first;
  bool waits = false;
  for (const Step& step : schedule.steps) {
    if (const auto* record = std::get_if<Record>(&step))
      if (reduced == of_first && record->stream == reduces) behind_first.insert(record->event);
    if (const auto* wait = std::get_if<Wait>(&step))
      waits = waits || (wait->stream == gathers && behind_first.contains(wait->event));
    const auto* run = std::get_if<tidemark::Run>(&step);
    if (!run || run->stream == StreamId::Compute) continue;
    if (run->task == Task::ReduceScatter) reduces = run->stream, ++reduced;
    if (run->task != Task::AllGather) continue;
    gathers = run->stream;
    if (reduced < of_first) continue;
    EXPECT_TRUE(waits);
    ++gathered;
  }
  EXPECT_GT(gathered, 0);
}

TEST(Zero3, FreeingEarlierNeverRaisesThePeak) {
  const auto peak = [](const char* shard) {
    return live_peak(lower(planned(build_trace(small_gpt2(8), of_bf16(4, shard)), "vanilla")));
  };
  EXPECT_LE(peak("zero3:persistence=0,prefetch=0,reuse=0,reduce-bucket=10000"),
            peak("zero3:persistence=0,prefetch=0,reduce-bucket=10000"));
}

TEST(Zero3, FetchesNothingOfWhatIsNeverFreed) {
  const Schedule schedule = schedule_of(of_bf16(4, "zero3:persistence=1000000"));
  EXPECT_EQ(count_runs(schedule, Task::AllGather), 1);  // of all, behind the update
}

TEST(Zero3, IsSoundWithEveryOption) {
  for (const char* shard :
       {"zero3", usual, "zero3:no-overlap,persistence=0", "zero3:persistence=0,prefetch=0",
        "zero3:persistence=0,prefetch=500,reuse=0", "zero3:persistence=0,max-live=0",
        "zero3:persistence=0,reduce-bucket=1", "zero3:persistence=0,reuse=3000,prefetch=2000"})
    for (const std::int64_t micro_batches : {1, 3}) {
      const StepOptions options = of_bf16(3, shard, micro_batches);
      EXPECT_THAT(validate(trace_of(options), schedule_of(options)), IsEmpty())
          << shard << ' ' << micro_batches;
    }
}

TEST(Zero3, FrozenParametersAreFetchedAndNotReduced) {
  StepOptions options = of_bf16(4, "zero3:persistence=0");
  options.tuning = parse_tuning("lora:r=2,targets=all");
  EXPECT_THAT(validate(trace_of(options), schedule_of(options)), IsEmpty());
}

}  // namespace
}  // namespace tidemark::zero3_test
