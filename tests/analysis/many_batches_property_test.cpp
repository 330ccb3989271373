// What few micro-batches say of many is what simulating all of them says, to the byte and the
// nanosecond.
#include <gtest/gtest.h>

#include <map>

#include "analysis/many_batches.h"
#include "analysis/rank_report.h"
#include "base/error.h"
#include "tests/analysis/layouts/random_request.h"
#include "traces/step_fields.h"

namespace tidemark::many_batches_property_test {
namespace {

using namespace literals;

struct Counts {
  int compared = 0, by_rounds = 0, by_script = 0, too_large = 0;
};

void expect_equal(const StepTotals& all, const StepTotals& some) {
  EXPECT_EQ(some.times, all.times);
  EXPECT_EQ(some.report.step, all.report.step);
  EXPECT_EQ(some.report.mfu, all.report.mfu);
  EXPECT_EQ(some.report.throughput, all.report.throughput);
  EXPECT_EQ(some.report.allocated_peak, all.report.allocated_peak);
  EXPECT_EQ(some.report.allocated_at_rest, all.report.allocated_at_rest);
  EXPECT_EQ(some.report.reserved_peak, all.report.reserved_peak);
  EXPECT_EQ(some.report.allocator_retries, all.report.allocator_retries);
  EXPECT_EQ(some.report.fits, all.report.fits);
  EXPECT_EQ(some.report.fits_expandable, all.report.fits_expandable);
}

// What is there at once, call by call.
Bytes requested_peak(const allocator::AllocatorCalls& calls) {
  using Kind = allocator::AllocatorCall::Kind;
  std::map<std::uint32_t, Bytes> present;
  Bytes now, most;
  for (const auto* some : {&calls.before, &calls.step})
    for (const allocator::AllocatorCall& call : *some) {
      if (call.kind == Kind::Allocate) now += present[call.slot] = call.size;
      if (call.kind == Kind::Free) now -= present.extract(call.slot).mapped();
      most = std::max(most, now);
    }
  return most;
}

// Of one rank, with as much memory as it needs and with a little less.
void compare(const std::shared_ptr<const Trace>& trace, const StrategySpec& strategy,
             const Device& device, allocator::AllocatorSettings settings,
             std::optional<ScriptedStage>& last, Counts& counts) {
  const Evaluation made = play_step(trace, strategy, device);
  if (!made.report.applies) return;
  StepTotals all = totals_of(*trace, device, made);
  MemoryBudget budget{80_GiB, settings};
  set_memory(all.calls, budget, all.report);
  const Bytes needed = all.report.reserved_peak, least = requested_peak(all.calls);
  for (const Bytes capacity : {budget.capacity, needed, Bytes{needed.count - (2 << 20)}}) {
    budget.capacity = std::max(Bytes{1}, capacity);
    StepTotals expected = all;
    set_memory(all.calls, budget, expected.report);
    TimedStep step = timed_step(trace, strategy, device, last);
    EXPECT_TRUE(step.set_memory(budget, {}, step.totals));
    expect_equal(expected, step.totals);
    EXPECT_EQ(step.least, least);
    EXPECT_LE(least, expected.report.allocated_peak);
    ++counts.compared;
    counts.by_rounds += step.totals.calls.step.size() < all.calls.step.size() ? 1 : 0;
    counts.by_script += last && last->script ? 1 : 0;
    counts.too_large += expected.report.fits ? 0 : 1;
  }
}

TEST(ManyBatches, TakeWhatAllOfThemTake) {
  constexpr std::uint32_t seed = 2104;
  RequestDice dice(seed);
  Counts counts;
  for (int round = 0; round < 120; ++round) {
    LayoutRequest request = dice.request();
    request.global_batch = request.gpus * dice.one_of(std::array{24, 36, 40, 64});
    LayoutSpace space;
    try {
      space = enumerate_layouts(request);
    } catch (const InputError&) {
      continue;  // a framework without this family
    }
    std::erase_if(space.layouts,
                  [](const MeshLayout& layout) { return layout.micro_batches < 20; });
    if (space.layouts.empty()) continue;
    const MeshLayout layout = dice.one_of(space.layouts);
    const StepOptions step = step_in(request, layout);
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", round " << round << ": " << request.scenario.model.name
                 << " " << key_of(request, layout) << " " << in_words(step));
    if (!sharing_defect(step).empty()) continue;
    const allocator::AllocatorSettings settings = dice.one_of(std::array{
        allocator::AllocatorSettings(), allocator::expandable(allocator::AllocatorSettings())});
    try {
      std::optional<ScriptedStage> last;
      for (const auto& trace : rank_traces(request.scenario.model, step))
        compare(trace, request.scenario.strategies[layout.strategy], request.scenario.device,
                settings, last, counts);
    } catch (const InputError&) {
      continue;
    }
  }
  EXPECT_GT(counts.compared, 150);
  EXPECT_GT(counts.by_rounds, counts.compared * 2 / 3);
  EXPECT_GT(counts.by_script, counts.compared / 4);
  EXPECT_GT(counts.too_large, counts.compared / 6);
}

}  // namespace
}  // namespace tidemark::many_batches_property_test
