// When weights are updated, and how long the temporaries of an update stay.
#include "simulator/graph/optimizer_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "tests/simulator/planned.h"
#include "tests/simulator/step_facts.h"
#include "tests/support/small_models.h"
#include "traces/trace_builder.h"

namespace tidemark::optimizer_nodes_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Two linears without biases: weights of 4 × 8 and of 8 × 4.
Trace two_linears(StepOptions options) {
  options.batch = 2;
  TraceBuilder b("two", "toy", options);
  TensorId x = b.input("x", {2, 8}, DType::Float32);
  b.begin_block("block", x, -1);
  x = b.linear("fc1", x, 4, false);
  b.end_block();
  x = b.linear("fc2", x, 8, false);
  return b.finish(b.cross_entropy("loss", x, b.input("targets", {2}, DType::Int64)));
}

Schedule schedule_of(const Trace& trace, std::string_view strategy = "vanilla") {
  const PlannedStep step = planned(trace, strategy);
  Schedule schedule = lower(*step.trace, step.plan);
  EXPECT_THAT(validate(*step.trace, schedule), IsEmpty());
  return schedule;
}

/// Bytes of temporaries of the optimizer alive at each of its runs.
std::vector<std::int64_t> temporaries_at_updates(const Schedule& schedule) {
  std::vector<std::int64_t> found;
  std::int64_t now = 0;
  const auto size = [&](BufferId b) {
    return schedule[b].role == Role::Temporary ? schedule[b].size.count : 0;
  };
  for (const Step& step : schedule.steps) {
    if (const auto* a = std::get_if<Allocate>(&step)) now += size(a->buffer);
    if (const auto* f = std::get_if<Free>(&step)) now -= size(f->buffer);
    if (const auto* run = std::get_if<Run>(&step); run && run->task == Task::Optimizer)
      found.push_back(now);
  }
  return found;
}

constexpr std::int64_t weight = 4 * 8 * 4;

std::vector<std::int64_t> workspaces_of(std::int64_t recorded) {
  Trace trace = two_linears({.optimizer = Optimizer::Sgd});
  trace.update = RecordedUpdate{.optimizer = "Lion", .pass = {.workspace = Bytes{recorded}}};
  std::vector<std::int64_t> sizes;
  for (const Buffer& buffer : schedule_of(trace).buffers)
    if (buffer.role == Role::Temporary) sizes.push_back(buffer.size.count);
  return sizes;
}

// As PyTorch's foreach functions make them; what is no multiple of all weights is one tensor.
TEST(OptimizerNodes, HaveARecordedWorkspaceByWeightWhereItIsAsLargeAsAllOfThem) {
  EXPECT_THAT(workspaces_of(2 * weight), ElementsAre(weight, weight));
  EXPECT_THAT(workspaces_of(4 * weight), ElementsAre(weight, weight, weight, weight));
  EXPECT_THAT(workspaces_of(weight), ElementsAre(weight));
  EXPECT_THAT(workspaces_of(2 * weight + 4), ElementsAre(2 * weight + 4));
  EXPECT_THAT(workspaces_of(0), IsEmpty());
}

TEST(OptimizerNodes, HoldTheQuotientOfTheParameterBefore) {
  const auto updates = [](Optimizer optimizer, OptimizerForm form) {
    return temporaries_at_updates(
        schedule_of(two_linears({.optimizer = optimizer, .optimizer_form = form})));
  };
  EXPECT_THAT(updates(Optimizer::AdamW, OptimizerForm::ForLoop),
              ElementsAre(2 * weight, 3 * weight));
  EXPECT_THAT(updates(Optimizer::RmsProp, OptimizerForm::ForLoop), ElementsAre(weight, 2 * weight));
  EXPECT_THAT(updates(Optimizer::AdamW, OptimizerForm::Foreach), ElementsAre(2 * weight));
  EXPECT_THAT(updates(Optimizer::AdamW, OptimizerForm::Fused), ElementsAre(0, 0));
}

TEST(OptimizerNodes, UpdateInTheBackwardAsSoonAsTheGradientIsComplete) {
  const Schedule schedule = schedule_of(two_linears({.update_in_backward = true}));
  std::vector<Task> tasks;
  for (const auto& run : runs_of(schedule))
    if (run.task == Task::Backward || run.task == Task::Optimizer) tasks.push_back(run.task);
  EXPECT_THAT(tasks, ElementsAre(Task::Backward, Task::Backward, Task::Backward, Task::Optimizer,
                                 Task::Backward, Task::Optimizer));
  // One gradient at a time: the first is gone before the second is made.
  const auto alive = [&](bool in_backward) {
    return live_peak(
        schedule_of(two_linears({.optimizer = Optimizer::Sgd, .update_in_backward = in_backward})));
  };
  EXPECT_LT(alive(true), alive(false));
}

// A weight that is used twice is updated after its first use, where its gradient ends.
TEST(OptimizerNodes, UpdateASharedWeightWhenItsLastContributionIsThere) {
  TraceBuilder b("tied", "toy", {.batch = 2, .update_in_backward = true});
  const TensorId words = b.input("words", {2, 3}, DType::Int64);
  const TensorId table = b.parameter("table", {5, 4});
  TensorId x = b.linear_with("head", b.embedding("embed", words, table), table);
  x = b.view("rows", x, {6, 5});
  const Trace trace = b.finish(b.cross_entropy("loss", x, b.view("labels", words, {6})));
  const auto runs = runs_of(schedule_of(trace));
  EXPECT_EQ(std::ranges::count(runs, Task::Optimizer, &tidemark::Run::task), 1);
  EXPECT_EQ(runs.back().task, Task::Optimizer);
}

TEST(OptimizerNodes, UpdateInTheBackwardUnderEveryKindOfRecovery) {
  for (const char* strategy : {"checkpoint", "overlap+checkpoint", "offload", "mesa", "reversible"})
    schedule_of(build_trace(small_vit(), {.batch = 2, .update_in_backward = true}), strategy);
}

TEST(OptimizerNodes, KeepGradientsWhereTheyAreNotSetToNone) {
  const auto gradients = [](bool keep) {
    const Schedule schedule = schedule_of(two_linears({.keep_gradients = keep}));
    return std::ranges::count_if(schedule.buffers, [](const Buffer& buffer) {
      return buffer.role == Role::Gradient && buffer.persistent;
    });
  };
  EXPECT_EQ(gradients(false), 0);
  EXPECT_EQ(gradients(true), 2);
}

TEST(OptimizerNodes, LeaveToAdamWWhatMuonIsNotFor) {
  const Schedule schedule = schedule_of(two_linears({.optimizer = Optimizer::Muon}));
  EXPECT_EQ(count_runs(schedule, Task::Optimizer), 2);
  std::vector<std::int64_t> states;
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.role == Role::OptimizerState) states.push_back(buffer.size.count);
  EXPECT_THAT(states, ElementsAre(weight, 2 * weight));
}

// A weight of 100,000 elements has its states elsewhere; one of 99,999 has ordinary ones.
TEST(OptimizerNodes, PlaceNoPagedState) {
  StepOptions options{.optimizer = Optimizer::PagedAdamW32bit};
  TraceBuilder b("two", "toy", options);
  const TensorId ids = b.input("ids", {2}, DType::Int64);
  const TensorId large = b.embedding("large", ids, b.parameter("large.weight", {1000, 100}));
  const TensorId small = b.embedding("small", ids, b.parameter("small.weight", {999, 100}));
  const TensorId x = b.add("sum", large, small);
  const Schedule schedule =
      schedule_of(b.finish(b.cross_entropy("loss", x, b.input("targets", {2}, DType::Int64))));
  std::vector<std::int64_t> states;
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.role == Role::OptimizerState) states.push_back(buffer.size.count);
  EXPECT_THAT(states, ElementsAre(2 * 4 * 99'900));
}

// Of 150,000 elements each of two ranks updates 75,000.
TEST(OptimizerNodes, PlaceStatesOfPartsThatAreTooSmallToBePaged) {
  StepOptions options{.optimizer = Optimizer::PagedAdamW32bit};
  options.mesh[Axis::Data] = 2;
  options.shard = parse_sharding("fsdp2");
  TraceBuilder b("one", "toy", options);
  const TensorId ids = b.input("ids", {2}, DType::Int64);
  const TensorId x = b.embedding("embed", ids, b.parameter("embed.weight", {1500, 100}));
  const Schedule schedule =
      schedule_of(b.finish(b.cross_entropy("loss", x, b.input("targets", {2}, DType::Int64))));
  std::int64_t states = 0;
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.role == Role::OptimizerState) states += buffer.size.count;
  EXPECT_EQ(states, 2 * 4 * 75'000);
}

}  // namespace
}  // namespace tidemark::optimizer_nodes_test
