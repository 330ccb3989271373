// What a schedule asks of an allocator, call by call: buffers keep their numbers, what stays comes
// first, other streams' uses are told before a buffer goes, and scratch lives while its run is
// issued.
#include "simulator/allocator/allocator_calls.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/cost/scratch.h"
#include "simulator/lower.h"
#include "tests/simulator/hand_made.h"
#include "traces/trace_builder.h"

namespace tidemark::allocator::allocator_calls_test {
namespace {

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
  EXPECT_EQ(text_of(calls.before), "a1@0 a2@1");
  EXPECT_EQ(calls.before[0].size, blas_workspace(framework, device));
  framework.blas_handle_per_thread = true;
  EXPECT_EQ(text_of(calls_of({}, step.schedule(), framework, device).before), "a1@0 a2@0 a3@1");
  framework.blas_workspace_per_call = true;
  EXPECT_EQ(text_of(calls_of({}, step.schedule(), framework, device).before), "");
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
  EXPECT_EQ(without.slots, schedule.buffers.size());
  EXPECT_EQ(with.slots, schedule.buffers.size() + 1);
  EXPECT_EQ(with.step.size(), without.step.size() + 2);
  const auto first = std::ranges::find(with.step, schedule.buffers.size(), &AllocatorCall::slot);
  ASSERT_NE(first, with.step.end());
  EXPECT_EQ(first->size, Bytes{1024 * 1024});
  EXPECT_EQ((first + 1)->kind, Kind::Free);
  EXPECT_EQ((first + 1)->slot, first->slot);
}

}  // namespace
}  // namespace tidemark::allocator::allocator_calls_test
