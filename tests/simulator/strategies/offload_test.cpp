// Which tensors leave for the host's memory, when their copies run, and what that costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/host_copies.h"
#include "analysis/report.h"
#include "simulator/arena.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/needs.h"
#include "simulator/simulate.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/chain.h"
#include "tests/simulator/planned.h"
#include "tests/simulator/step_facts.h"
#include "traces/presets.h"

namespace tidemark::offload_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> offloaded(const PlannedStep& step) {
  std::vector<std::string> names;
  for (std::size_t t = 0; t < step.plan.decisions.size(); ++t)
    if (step.plan.decisions[t].action == Action::Offload)
      names.push_back(step.trace->tensors[t].name);
  return names;
}

// Blocks of two layers whose tensors are large enough to be worth a copy.
Trace wide_chain(std::int64_t layers) {
  Trace trace = chain(layers, 2);
  for (Tensor& tensor : trace.tensors) tensor.shape = {1 << 20};
  return trace;
}

// What a block reads last it needs first, and the last block needs it at once: x0 is an input.
TEST(Offload, LeavesTheLastBlocksTensors) {
  EXPECT_THAT(offloaded(planned(wide_chain(8), "offload")),
              ElementsAre("x1", "x2", "x3", "x4", "x5"));
  EXPECT_THAT(offloaded(planned(wide_chain(8), "offload:every=2")), ElementsAre("x1", "x4", "x5"));
}

TEST(Offload, LeavesWhatIsTooSmallToCopy) {
  const PlannedStep step =
      plan_step(std::make_shared<const Trace>(chain(8, 2)), parse_strategy("offload"));
  EXPECT_THAT(step.refusal, HasSubstr("no block but the last keeps anything"));
}

TEST(Offload, NeedsBlocks) {
  const PlannedStep step =
      plan_step(std::make_shared<const Trace>(wide_chain(2)), parse_strategy("offload"));
  EXPECT_THAT(step.refusal, HasSubstr("names no blocks between which copies could run"));
}

// x1 is read last by op 1 of block 0 (ops 0 and 1): it has left before block 2 begins, and is
// fetched while block 1's gradients are computed.
TEST(Offload, MovesOneBlockAheadUnlessTold) {
  const auto transfer = [](std::string_view strategy) {
    const Plan plan = planned(wide_chain(8), strategy).plan;
    return std::pair{plan.left_by[1], plan.fetched_at[1]};
  };
  EXPECT_EQ(transfer("offload"), (std::pair{OpId{4}, OpId{3}}));
  EXPECT_EQ(transfer("offload:prefetch=0"), (std::pair{OpId{2}, OpId{1}}));
  EXPECT_EQ(transfer("offload:prefetch=2"), (std::pair{OpId{6}, OpId{5}}));
  EXPECT_EQ(transfer("offload:prefetch=9"), (std::pair{OpId{7}, OpId{7}}));
}

TEST(Offload, CopiesOnStreamsOfTheirOwn) {
  const PlannedStep step = planned(wide_chain(8), "offload");
  const Schedule schedule = lower(*step.trace, step.plan);
  EXPECT_THAT(validate(*step.trace, schedule), IsEmpty());
  EXPECT_EQ(schedule.streams, 3u);
  for (const Step& one : schedule.steps) {
    if (const auto* out = std::get_if<CopyOut>(&one)) {
      EXPECT_EQ(out->stream, StreamId{1});
    }
    if (const auto* in = std::get_if<CopyIn>(&one)) {
      EXPECT_EQ(in->stream, StreamId{2});
    }
    if (const auto* free = std::get_if<Free>(&one)) {
      EXPECT_EQ(free->stream, StreamId::Compute);
    }
  }
}

TEST(Offload, TakesTheHostsMemoryUntilTheLastCopyIn) {
  const PlannedStep step = planned(wide_chain(8), "offload");
  EXPECT_EQ(host_copies_peak(lower(*step.trace, step.plan)), Bytes{5 * 4 << 20});
  EXPECT_EQ(host_copies_peak(lower(*step.trace, keep_everything(*step.trace))), Bytes{});
  Trace twice = *step.trace;  // the second micro-batch's copies come when the first one's have gone
  twice.step.accumulate.count = 2;
  EXPECT_EQ(host_copies_peak(lower(twice, step.plan)), Bytes{5 * 4 << 20});
}

Report report_of(const Device& device, std::string_view strategy) {
  const auto trace =
      std::make_shared<const Trace>(build_trace(find_model("vit-s-16"), {.batch = 64}));
  return evaluate(trace, parse_strategy(strategy), device, {device.capacity}).report;
}

// Over a link as fast as the device's own memory the copies hide; over a slow one they set the
// pace.
TEST(Offload, TakesTheTimeThatTheLinkTakesAndComputationDoesNotHide) {
  Device device = find_device("a100-80gb");
  const Report vanilla = report_of(device, "vanilla");
  device.host_link_bytes_per_second = 1e12;
  const Report fast = report_of(device, "offload");
  EXPECT_LT(fast.step, vanilla.step * 102 / 100);
  EXPECT_LT(fast.live_peak.count, vanilla.live_peak.count / 2);
  EXPECT_LT(fast.allocated_peak.count, vanilla.allocated_peak.count / 2);
  device.host_link_bytes_per_second = 1e10;
  const Report slow = report_of(device, "offload");
  EXPECT_GT(static_cast<double>(slow.step.count()),
            2 * static_cast<double>(slow.pinned.count) / 1e10 * 1e9);
  EXPECT_EQ(slow.recovery.alone.count(), 0);
}

// Farther ahead: more memory, and no more time.
TEST(Offload, FetchesEarlierForMoreMemory) {
  const Device device = find_device("a100-80gb");
  const Report at_need = report_of(device, "offload:prefetch=0"),
               ahead = report_of(device, "offload"),
               early = report_of(device, "offload:prefetch=3");
  EXPECT_LT(at_need.live_peak, ahead.live_peak);
  EXPECT_LT(ahead.live_peak, early.live_peak);
  EXPECT_GT(at_need.step, ahead.step);
  EXPECT_GE(ahead.step, early.step);
}

// Whatever a block saves leaves: what later ops read, and what the backward alone does.
TEST(Offload, TakesAllThatTheBlocksSave) {
  const PlannedStep step = planned(build_trace(find_model("gpt2"), {.batch = 1}), "offload");
  const Needs needs = derive_needs(*step.trace);
  const auto last = step.trace->blocks.back().begin;
  for (const Block& block : step.trace->blocks)
    for (std::size_t i = index(block.begin); i < index(block.end) && block.end <= last; ++i)
      for (const TensorId output : step.trace->outputs(step.trace->ops[i])) {
        const Tensor& tensor = (*step.trace)[output];
        const bool is_saved = tensor.storage == output && needs.uses[index(output)] > 0;
        if (!is_saved || size(tensor) < Bytes{1024} || block.end == last) continue;
        EXPECT_EQ(step.plan.decisions[index(output)].action, Action::Offload) << tensor.name;
      }
}

// Of two layers per block, the first one's output is made again and the second one's is kept.
TEST(Offload, LeavesWhatRecoveryMakesAgain) {
  EXPECT_THAT(offloaded(planned(wide_chain(8), "checkpoint+offload")), ElementsAre("x2", "x4"));
}

// The inputs of checkpointed segments wait, too; they are few.
TEST(Offload, TakesWhatCheckpointsKeep) {
  const Device device = find_device("a100-80gb");
  const Report kept = report_of(device, "checkpoint"),
               waiting = report_of(device, "checkpoint+offload");
  EXPECT_LT(waiting.live_peak, kept.live_peak);
  EXPECT_GT(waiting.pinned, Bytes{});
  EXPECT_LT(waiting.pinned.count, report_of(device, "offload").pinned.count / 4);
}

}  // namespace
}  // namespace tidemark::offload_test
