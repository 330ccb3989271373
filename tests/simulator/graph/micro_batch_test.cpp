// Checkpoints as PyTorch runs them: when they run again, and what they name meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/graph/differentiate.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "tests/simulator/recovered.h"
#include "traces/trace_builder.h"

namespace tidemark::micro_batch_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// One block: x ─upcast─► ─gelu─► ─narrow─► ─fc─► ─widen─► , of which gelu and fc save something.
Trace block_of_casts(const char* framework = "transformers-4.57") {
  TraceBuilder b("toy", "toy", {.precision = Precision::Bf16, .framework = framework});
  const TensorId x = b.linear("in", b.input("data", {6, 32}, DType::BFloat16), 32);
  b.begin_block("block", x, 0);
  const TensorId bent = b.fused_gelu("gelu", b.cast("upcast", x, DType::Float32), false);
  const TensorId y = b.linear("fc", b.cast("narrow", bent, DType::BFloat16), 32);
  const TensorId wide = b.cast("widen", y, DType::Float32);
  b.end_block();
  return b.finish(b.mean("loss", wide));
}

TensorId named(const Trace& trace, std::string_view name) {
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    if (std::string_view(trace.tensors[t].name) == name) return static_cast<TensorId>(t);
  ADD_FAILURE() << name;
  return no_tensor;
}

Plan checkpointed(const Trace& trace) {
  Plan plan = keep_everything(trace);
  plan.regions = {{trace.blocks[0].begin, trace.blocks[0].begin, trace.blocks[0].end, 0}};
  for (const char* name : {"upcast", "narrow"})
    decide(plan, named(trace, name), Action::Recompute, "to test");
  return plan;
}

std::vector<std::string> backward_of(const Trace& trace) {
  const Plan plan = checkpointed(trace);
  EXPECT_THAT(check(trace, plan), IsEmpty());
  std::vector<std::string> lines;
  for (const Node& node : differentiate(trace, plan).nodes)
    if (node.task != Task::Forward && node.task != Task::Optimizer && node.task != Task::Seed)
      lines.push_back(
          fmt::format("{} {}", to_string(*node.task), std::string_view(trace[node.op].name)));
  return lines;
}

// No tensor is asked for by the cast's gradient.
TEST(MicroBatch, RunsACheckpointAgainWhenItsFirstSavedTensorIsAskedFor) {
  EXPECT_THAT(backward_of(block_of_casts()),
              ElementsAre("backward loss.mean", "backward widen", "recompute upcast",
                          "recompute gelu", "recompute narrow", "backward fc", "backward narrow",
                          "backward gelu", "backward upcast", "backward in"));
}

std::string last_run_before_free_of(const Trace& trace, const char* tensor) {
  const Schedule schedule = lower(trace, checkpointed(trace));
  EXPECT_THAT(validate(trace, schedule), IsEmpty());
  return tidemark::last_run_before_free_of(trace, schedule, tensor);
}

// Nothing needs x once it is cast; the checkpoint that is to cast it again names it until gelu, the
// first that saves something, has let go of that.
TEST(MicroBatch, NamesACheckpointsInputsUntilItsLastGradient) {
  EXPECT_EQ(last_run_before_free_of(block_of_casts(), "in"), "backward gelu");
  EXPECT_EQ(last_run_before_free_of(block_of_casts("paper"), "in"), "recompute upcast");
}

}  // namespace
}  // namespace tidemark::micro_batch_test
