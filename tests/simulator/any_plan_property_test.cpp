// Whatever check(trace, plan) accepts, lower() makes a schedule of it that the judge accepts:
// random small traces times random plans, far from what any strategy would ask for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/cost/device.h"
#include "simulator/graph/differentiate.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/simulate.h"
#include "tests/simulator/naive_player.h"
#include "tests/simulator/random_step.h"
#include "tests/simulator/step_facts.h"

namespace tidemark::any_plan_property_test {
namespace {

using testing::IsEmpty;

TEST(AnyPlan, IsLoweredToWhatTheJudgesAccept) {
  for_random_steps(15'000, Concats::Some, [](const RandomStep& step) {
    ASSERT_THAT(validate(differentiate(step.trace, step.plan)), IsEmpty());
    const Schedule schedule = lower(step.trace, step.plan);
    ASSERT_THAT(validate(step.trace, schedule), IsEmpty());
    const Arena arena = plan_arena(schedule);
    ASSERT_THAT(validate(schedule, arena), IsEmpty());
    ASSERT_GE(arena.size, live_peak(schedule));
  });
}

// The player knows neither the judge nor what the lowering meant. Concatenations are beyond it.
TEST(AnyPlan, ComputesWhatVanillaComputes) {
  for_random_steps(2'000, Concats::None, [](const RandomStep& step) {
    const Schedule vanilla = lower(step.trace, keep_everything(step.trace));
    const Played expected = play(step.trace, vanilla);
    ASSERT_EQ(expected.fault, "");
    ASSERT_TRUE(plays_as(step.trace, lower(step.trace, step.plan), expected));
  });
}

TEST(AnyPlan, LabelsEveryByteAtEveryEvent) {
  const Device device = find_device("a100-80gb");
  for_random_steps(1'500, Concats::Some, [&](const RandomStep& step) {
    const Schedule schedule = lower(step.trace, step.plan);
    const Timeline timeline = simulate(step.trace, schedule, device);
    BytesByCategory now = timeline.baseline;
    std::vector<bool> present(schedule.buffers.size());
    Bytes live = persistent_bytes(schedule), top = live;
    ASSERT_EQ(total(now), live);
    for (const MemoryEvent& event : timeline.memory) {
      const Buffer& buffer = schedule[event.buffer];
      const Bytes change = event.appears ? buffer.size : Bytes{} - buffer.size;
      now[static_cast<std::size_t>(buffer.category)] += change, live += change;
      ASSERT_NE(present[index(event.buffer)], event.appears);
      present[index(event.buffer)] = event.appears;
      ASSERT_EQ(total(now), live);
      for (const Bytes bytes : now) ASSERT_GE(bytes, Bytes{});
      top = std::max(top, live);
    }
    ASSERT_EQ(now, timeline.baseline);  // balance
    const Peak highest = peak(schedule, timeline);
    ASSERT_EQ(highest.bytes, top);
    ASSERT_EQ(total(highest.by_category), top);
  });
}

// The operands of one run, each storage once, beside all that is persistent.
Bytes floor_of(const Schedule& schedule) {
  Bytes largest;
  for (const Run& run : runs_of(schedule)) {
    std::vector<BufferId> buffers(schedule.reads(run).begin(), schedule.reads(run).end());
    buffers.insert(buffers.end(), schedule.writes(run).begin(), schedule.writes(run).end());
    std::ranges::sort(buffers);
    buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
    Bytes sum;
    for (const BufferId buffer : buffers)
      if (!schedule[buffer].persistent) sum += schedule[buffer].size;
    largest = std::max(largest, sum);
  }
  return persistent_bytes(schedule) + largest;
}

TEST(AnyPlan, NeedsAtLeastItsLargestRun) {
  for_random_steps(1'500, Concats::Some, [](const RandomStep& step) {
    const Schedule schedule = lower(step.trace, step.plan);
    ASSERT_GE(live_peak(schedule), floor_of(schedule));
  });
}

// Twice as many elements in every tensor.
Trace doubled(Trace trace) {
  for (Tensor& tensor : trace.tensors) {
    std::vector<std::int64_t> dims(tensor.shape.dims().begin(), tensor.shape.dims().end());
    if (dims.empty()) dims = {1};
    dims.back() *= 2;
    tensor.shape = Shape(dims);
  }
  for (OpaqueRow& row : trace.opaque_rows)
    for (OpaquePass* pass : {&row.forward, &row.backward}) pass->workspace.count *= 2;
  return trace;
}

// But for ranges, of which there are as many per group of any size; and codes fill whole bytes.
TEST(AnyPlan, NeedsTwiceAsMuchForTwiceTheSizes) {
  for_random_steps(1'500, Concats::Some, [](RandomStep step) {
    step.plan.quirks.batched_weight_gradient = false;  // quadratic in the sizes
    step.trace.step.optimizer = Optimizer::AdamW;      // factored states grow with one side alone
    for (Encoding& encoding : step.plan.encodings) encoding = {.metadata = 8, .bits = 8};
    const Schedule once = lower(step.trace, step.plan);
    const Schedule twice = lower(doubled(step.trace), step.plan);
    std::int64_t ranges = 0;
    for (const Buffer& buffer : once.buffers)
      if (buffer.role == Role::Ranges) ranges += buffer.size.count;
    ASSERT_EQ(live_peak(twice).count - ranges, 2 * (live_peak(once).count - ranges));
  });
}

TEST(AnyPlan, DoesNotDependOnNames) {
  for_random_steps(1'500, Concats::Some, [](const RandomStep& step) {
    Trace renamed = step.trace;
    for (Tensor& tensor : renamed.tensors) tensor.name = renamed.names.add("t" + tensor.name + "'");
    for (Op& op : renamed.ops) op.name = renamed.names.add("o" + op.name + "'");
    const Schedule before = lower(step.trace, step.plan), after = lower(renamed, step.plan);
    ASSERT_EQ(before.buffers, after.buffers);
    ASSERT_EQ(before.operands, after.operands);
    ASSERT_EQ(before.steps.size(), after.steps.size());
    ASSERT_EQ(plan_arena(before).offsets, plan_arena(after).offsets);
  });
}

}  // namespace
}  // namespace tidemark::any_plan_property_test
