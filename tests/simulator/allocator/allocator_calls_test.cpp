// What a schedule asks of an allocator, call by call: buffers keep their numbers, what stays comes
// first, other streams' uses are told before a buffer goes, and scratch lives while its run is
// issued.
#include "simulator/allocator/allocator_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "simulator/allocator/allocator_replay.h"
#include "simulator/cost/scratch.h"
#include "simulator/lower.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/hand_made.h"
#include "tests/support/small_models.h"
#include "traces/trace_builder.h"

namespace tidemark::allocator::allocator_calls_test {
namespace {

using namespace literals;
using Kind = AllocatorCall::Kind;

/// "a0@1" allocates slot 0 on stream 1, "f0" frees it, "r0@1" says that stream 1 uses it, too, "c"
/// completes events.
std::string text_of(const std::vector<AllocatorCall>& calls) {
  std::string text;
  for (const AllocatorCall& call : calls) {
    text += text.empty() ? "" : " ";
    text += "afrc"[static_cast<std::size_t>(call.kind)];
    if (call.kind != Kind::CompleteEvents) text += std::to_string(call.slot);
    if (call.kind == Kind::Allocate || call.kind == Kind::RecordStream)
      text += "@" + std::to_string(index(call.stream));
  }
  return text;
}

/// No BLAS, no scratch.
Framework bare() {
  Framework framework = find_framework("torch-2");
  framework.blas_workspace_in_pool = framework.op_scratch = false;
  return framework;
}

TEST(AllocatorCalls, OfOneStreamAreItsAllocationsAndFrees) {
  HandMade step;
  const BufferId weight = step.place(100), x = step.allocate(512);
  step.run({weight}, {x});
  const BufferId y = step.allocate(1024);
  step.run({x}, {y});
  step.free(x), step.free(y);
  const AllocatorCalls calls = calls_of({}, step.schedule(), bare(), {});
  EXPECT_EQ(text_of(calls.before), "a0@0");
  EXPECT_EQ(text_of(calls.step), "a1@0 a2@0 f1 f2 c");
  EXPECT_EQ(calls.step[1].size, Bytes{1024});
  EXPECT_EQ(calls.slots, 3u);
}

// Stream 1 uses x twice and y as its own; the weight is never freed, so nobody asks who uses it.
TEST(AllocatorCalls, TellWhoElseUsesWhatIsFreed) {
  HandMade step(2);
  const BufferId weight = step.place(100), x = step.allocate(512);
  const BufferId y = step.allocate(512, s1);
  step.run({weight}, {x});
  step.run({weight, x}, {y}, s1);
  step.run({x}, {y}, s1);
  step.synchronize(step.record(s1));
  step.free(x), step.free(y, s1);
  EXPECT_EQ(text_of(calls_of({}, step.schedule(), bare(), {}).step), "a1@0 a2@1 c r1@1 f1 f2 c");
}

TEST(AllocatorCalls, WorkspacesComeForEachStreamThatComputes) {
  HandMade step(3);  // the third only copies and adds up
  const BufferId x = step.allocate(512);
  step.run({}, {x});
  step.run({x}, {x}, s1, Task::Recompute);
  step.copy_out(x, StreamId{2});
  step.run({x}, {x}, StreamId{2}, Task::Accumulate);
  step.free(x);
  Framework framework = bare();
  framework.blas_workspace_in_pool = true;
  framework.blas_handle_per_thread = false;
  const Device device = find_device("h100");
  const AllocatorCalls calls = calls_of({}, step.schedule(), framework, device);
  EXPECT_EQ(text_of(calls.before), "a1@1 a2@0");
  EXPECT_EQ(calls.before[0].size, blas_workspace(framework, device));
  framework.blas_handle_per_thread = true;
  EXPECT_EQ(text_of(calls_of({}, step.schedule(), framework, device).before), "a1@1 a2@0 a3@0");
  framework.blas_workspace_per_call = true;
  EXPECT_EQ(text_of(calls_of({}, step.schedule(), framework, device).before), "");
}

/// A linear, whose weight AdamW updates.
Trace linear_trace(StepOptions options = {}) {
  TraceBuilder b("linear", "", options);
  const TensorId x = b.input("x", {64, 32}, DType::Float32);
  return b.finish(b.mean("loss", b.linear("fc", x, 16, false)));
}

struct Made {
  Bytes size;
  std::size_t at;  ///< the call of the step that comes next
};

/// What the first step makes.
std::vector<Made> made_of(const AllocatorCalls& calls) {
  std::vector<Made> made;
  const std::size_t there = calls.before.size() - calls.made_at.size();
  for (std::size_t i = 0; i < calls.made_at.size(); ++i)
    made.push_back({calls.before[there + i].size, calls.made_at[i]});
  return made;
}

/// The tensor and role of the buffer that the step's call allocates.
std::pair<std::string, Role> allocated_by(const Trace& trace, const Schedule& schedule,
                                          const AllocatorCall& call) {
  EXPECT_EQ(call.kind, Kind::Allocate);
  const Buffer& buffer = schedule.buffers[call.slot];
  return {std::string(trace[buffer.tensor].name), buffer.role};
}

// Each thread's first product has its result already when it takes a workspace; the optimizer makes
// its states before its temporaries.
TEST(AllocatorCalls, WhatStaysIsMadeWhereTheFirstStepComesToIt) {
  const Trace trace = linear_trace();
  const Schedule schedule = lower(trace, keep_everything(trace));
  Framework framework = bare();
  framework.blas_workspace_in_pool = framework.blas_handle_per_thread = true;
  const Device device = find_device("a100-80gb");
  const AllocatorCalls calls = calls_of(trace, schedule, framework, device);
  const std::vector<Made> made = made_of(calls);
  ASSERT_EQ(made.size(), 4u);
  EXPECT_EQ(calls.before.size(), 2u + 4u);  // x and the weight are there
  for (const std::size_t thread : {0, 1})
    EXPECT_EQ(made[thread].size, blas_workspace(framework, device));
  EXPECT_EQ(allocated_by(trace, schedule, calls.step[made[0].at - 1]),
            std::pair(std::string("fc"), Role::Value));
  EXPECT_EQ(allocated_by(trace, schedule, calls.step[made[1].at - 1]),
            std::pair(std::string("fc.weight"), Role::Gradient));
  for (const std::size_t moment : {2, 3}) {
    EXPECT_EQ(made[moment].size, Bytes{4 * 32 * 16});
    EXPECT_EQ(allocated_by(trace, schedule, calls.step[made[moment].at]),
              std::pair(std::string("fc.weight"), Role::Temporary));
  }
}

TEST(AllocatorCalls, OneThreadTakesOneWorkspace) {
  const Trace trace = linear_trace();
  Framework framework = bare();
  framework.blas_workspace_in_pool = true;
  framework.blas_handle_per_thread = false;
  const Schedule schedule = lower(trace, keep_everything(trace));
  EXPECT_EQ(calls_of(trace, schedule, framework, find_device("a100-80gb")).made_at.size(), 1u + 2u);
}

// Stages are played from parts of a step. DeepSpeed makes its states when it begins.
TEST(AllocatorCalls, NothingIsMadeLaterByStagesAndByWhatCutsStates) {
  Trace trace = linear_trace();
  const Schedule schedule = lower(trace, keep_everything(trace));
  const auto made = [&] { return calls_of(trace, schedule, bare(), {}).made_at.size(); };
  EXPECT_EQ(made(), 2u);
  trace.step.mesh = parse_mesh("pp=2");
  EXPECT_EQ(made(), 0u);
  trace.step.mesh = parse_mesh("dp=2");
  EXPECT_EQ(made(), 2u);
  trace.step.shard = parse_sharding("zero1");
  EXPECT_EQ(made(), 0u);
}

// Megatron-LM's optimizer that keeps whole states makes fp32 copies with itself, behind all that is
// there, and moments in its first step, of which stages know nothing; one that cuts them makes all
// with itself.
TEST(AllocatorCalls, MegatronsCopiesOfWeightsComeBeforeTheFirstStep) {
  Trace trace = linear_trace({.precision = Precision::Bf16, .framework = "megatron"});
  trace.step.master_weights = true;
  trace.step.mesh = parse_mesh("dp=2");
  const auto calls = [&](const char* shard) {
    trace.step.shard = parse_sharding(shard);
    return calls_of(trace, lower(trace, keep_everything(trace)), bare(), {});
  };
  constexpr Bytes of_weight{4 * 32 * 16};
  const AllocatorCalls whole = calls("megatron:whole-states");
  const std::vector<Made> made = made_of(whole);
  ASSERT_EQ(made.size(), 2u);
  for (const Made& moment : made) EXPECT_EQ(moment.size, of_weight);
  constexpr std::size_t engines = 1;  // workspaces of Transformer Engine, behind them
  EXPECT_EQ(whole.before[whole.before.size() - 3 - engines].size, of_weight);
  const AllocatorCalls cut = calls("megatron");
  EXPECT_TRUE(cut.made_at.empty());
  trace.step.mesh = parse_mesh("pp=2,dp=2");
  const AllocatorCalls of_stage = calls("megatron:whole-states");
  EXPECT_TRUE(of_stage.made_at.empty());
  ASSERT_EQ(of_stage.before.size(), whole.before.size());
  for (std::size_t last = 1; last <= 3; ++last)
    EXPECT_EQ(of_stage.before[of_stage.before.size() - last - engines].size, of_weight);
  trace.step.mesh = parse_mesh("dp=2");
  trace.step.master_weights = false;
  EXPECT_EQ(made_of(calls("megatron:whole-states")).size(), 2u);
}

// A hook's optimizer has one weight.
TEST(AllocatorCalls, HooksMakeTheStateOfTheirWeight) {
  TraceBuilder b("mlp", "", {.update_in_backward = true});
  const TensorId x = b.input("x", {64, 32}, DType::Float32);
  const Trace trace =
      b.finish(b.mean("loss", b.linear("b", b.linear("a", x, 16, false), 8, false)));
  const Schedule schedule = lower(trace, keep_everything(trace));
  const std::vector<Made> made = made_of(calls_of(trace, schedule, bare(), {}));
  ASSERT_EQ(made.size(), 4u);
  EXPECT_EQ(made[0].size, Bytes{4 * 16 * 8});
  EXPECT_EQ(made[0].at, made[1].at);
  EXPECT_LT(made[1].at, made[2].at);
}

// The state, large enough for a segment of 20 MiB, finds none of before when it comes second.
TEST(AllocatorCalls, WhatTheFirstStepMakesMeetsWhatIsThereThen) {
  AllocatorCalls calls{.before = {{.size = 3_MiB, .slot = 0}},
                       .step = {{.size = 12_MiB, .slot = 1}, {.slot = 1, .kind = Kind::Free}},
                       .made_at = {},
                       .work = 2,
                       .slots = 2};
  EXPECT_EQ(replay_allocator(calls, {}, 1_GiB).reserved_peak, 20_MiB);
  calls.made_at = {1};
  EXPECT_EQ(replay_allocator(calls, {}, 1_GiB).reserved_peak, 12_MiB + 20_MiB);
  calls.made_at = {0};
  EXPECT_EQ(replay_allocator(calls, {}, 1_GiB).reserved_peak, 20_MiB);
}

// A linear with a bias hands cuBLASLt a workspace; it lies behind the buffers and goes at once.
TEST(AllocatorCalls, ScratchLivesWhileItsRunIsIssued) {
  TraceBuilder b("linear", "", {});
  const TensorId x = b.input("x", {64, 32}, DType::Float32);
  const Trace trace = b.finish(b.mean("loss", b.linear("fc", x, 16, true)));
  const Schedule schedule = lower(trace, keep_everything(trace));
  Framework framework = bare();
  const Device device = find_device("a100-80gb");
  const AllocatorCalls without = calls_of(trace, schedule, framework, device);
  framework.op_scratch = true;
  const AllocatorCalls with = calls_of(trace, schedule, framework, device);
  EXPECT_EQ(without.state_slots, 2u);  // a second moment of the weight and of the bias
  EXPECT_EQ(without.slots, schedule.buffers.size() + 2);
  EXPECT_EQ(with.slots, without.slots + 1);
  EXPECT_EQ(with.step.size(), without.step.size() + 2);
  const auto first = std::ranges::find(with.step, without.slots, &AllocatorCall::slot);
  ASSERT_NE(first, with.step.end());
  EXPECT_EQ(first->size, Bytes{1024 * 1024});
  EXPECT_EQ((first + 1)->kind, Kind::Free);
  EXPECT_EQ((first + 1)->slot, first->slot);
}

struct NamedInputs {
  std::size_t kept = 0, freed = 0, again = 0;
  bool operator==(const NamedInputs&) const = default;
};

// Of a stage of GPT-2 among two: allocations of what it receives that stay, are freed in the step,
// and are made again before its last run is done.
NamedInputs named_inputs(std::int64_t stage, const char* schedule, const char* framework) {
  StepOptions options{.batch = 2, .precision = Precision::Bf16, .framework = framework};
  options.accumulate = {4};
  options.mesh[Axis::Pipeline] = 2;
  options.rank = RankClass{stage};
  options.schedule = parse_schedule(schedule);
  const auto trace = std::make_shared<const Trace>(build_rank_trace(small_gpt2(4), options));
  const Schedule lowered = lower(plan_step(trace, parse_strategy("vanilla")));
  const AllocatorCalls calls =
      calls_of(*trace, lowered, find_framework(framework), find_device("h100"));
  NamedInputs found;
  std::set<std::uint32_t> slots;
  const Bytes received{2 * 16 * 32 * 2};  // batch, tokens, width, bytes
  for (const AllocatorCall& call : calls.before)
    if (call.size == received && call.slot >= lowered.buffers.size()) slots.insert(call.slot);
  for (std::size_t i = 0; i < calls.step.size(); ++i) {
    if (!slots.contains(calls.step[i].slot)) continue;
    if (calls.step[i].kind == Kind::Free) ++found.freed;
    if (calls.step[i].kind == Kind::Allocate && i < calls.work) ++found.again;
  }
  found.kept = slots.size();
  return found;
}

// Value and gradient of each chunk that receives; one gradient is there all the time.
TEST(NamedInputs, OfMegatronsStagesStayBetweenSteps) {
  EXPECT_EQ(named_inputs(1, "1f1b", "megatron"), (NamedInputs{2, 1, 1}));
  EXPECT_EQ(named_inputs(1, "interleaved:v=2", "megatron"), (NamedInputs{4, 3, 3}));
  EXPECT_EQ(named_inputs(0, "interleaved:v=2", "megatron"), (NamedInputs{2, 1, 1}));
  EXPECT_EQ(named_inputs(0, "1f1b", "megatron"), NamedInputs());
  EXPECT_EQ(named_inputs(1, "1f1b", "transformers-4.57"), NamedInputs());
}

}  // namespace
}  // namespace tidemark::allocator::allocator_calls_test
