// An op of no known kind is planned, judged and costed by what its own row says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/diff/time_groups.h"
#include "analysis/saved.h"
#include "simulator/cost/cost_model.h"
#include "simulator/cost/guessed_times.h"
#include "simulator/cost/model_flops.h"
#include "simulator/cost/scratch.h"
#include "simulator/graph/differentiate.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/needs.h"
#include "simulator/simulate.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/cost/toy_device.h"
#include "tests/simulator/step_facts.h"
#include "tests/traces/small_trace.h"

namespace tidemark::opaque_step_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;

OpaqueRow scan_row() {
  return {.operation = "selective_scan::fwd",
          .gradients = 1,
          .saved = input_bit(0) | output_bit(1),
          .quantized = input_bit(0),
          .forward = {.workspace = {1000}},
          .backward = {.workspace = {3000}}};
}

/// One block of fc, scan and out: x ─fc─► [2, 4] ─scan─► [2, 4], state [5] ─out─► [2, 4] ─ loss.
/// A value has 32 bytes, the state 20.
Trace scanned(const OpaqueRow& row = scan_row(), std::string_view tuning = "full") {
  TraceBuilder b("scanned", "toy",
                 {.batch = 2,
                  .precision = Precision::Fp32,
                  .tuning = parse_tuning(tuning),
                  .optimizer = Optimizer::Sgd});
  const TensorId x = b.input("x", {2, 4}, DType::Float32);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  b.begin_block("block", x, -1);
  const std::array inputs = {b.linear("fc", x, 4, false)};
  const std::array outputs = {OutputSpec{"", {2, 4}, DType::Float32},
                              OutputSpec{"state", {5}, DType::Float32}};
  const TensorId y = b.linear("out", b.opaque("scan", inputs, outputs, row), 4, false);
  b.end_block();
  return b.finish(b.cross_entropy("loss", y, targets));
}

struct Planned {
  Trace trace;
  Plan plan;
  Schedule schedule;
};

Planned planned(std::string_view strategy, const OpaqueRow& row = scan_row()) {
  const PlannedStep step =
      plan_step(std::make_shared<const Trace>(scanned(row)), parse_strategy(strategy));
  EXPECT_EQ(step.refusal, "");
  return {*step.trace, step.plan, lower(*step.trace, step.plan)};
}

void expect_sound(const Planned& step) {
  EXPECT_THAT(validate(differentiate(step.trace, step.plan)), IsEmpty());
  EXPECT_THAT(validate(step.trace, step.schedule), IsEmpty());
}

std::int64_t count_runs_of(const Planned& step, Task task, std::string_view op) {
  return std::ranges::count_if(runs_of(step.schedule), [&](const Run& run) {
    return run.task == task && run.op != no_op && step.trace[run.op].name == op;
  });
}

TEST(OpaqueStep, KeepsWhatItsRowSaysForAsLongAsAGradientIsWanted) {
  const Trace trace = scanned();
  EXPECT_EQ(derive_needs(trace).saved[1], input_bit(0) | output_bit(1));
  EXPECT_EQ(derive_needs(scanned(scan_row(), "frozen:fc*")).saved[1], 0u);
  // The scan's input and state, and out's input, which is the scan's output.
  EXPECT_GE(saved_bytes(trace, keep_everything(trace)).unique.count, 32 + 20 + 32);
}

// How many runs there are between the buffer's arrival and its end.
int runs_during(const Schedule& schedule, BufferId buffer) {
  bool is_present = false;
  int runs = 0;
  for (const Step& step : schedule.steps) {
    if (const auto* s = std::get_if<Allocate>(&step); s && s->buffer == buffer) is_present = true;
    if (const auto* s = std::get_if<Free>(&step); s && s->buffer == buffer) is_present = false;
    if (is_present && std::holds_alternative<Run>(step)) ++runs;
  }
  return runs;
}

TEST(OpaqueStep, HasItsWorkspaceOnlyWhileItRuns) {
  const Planned step = planned("vanilla");
  expect_sound(step);
  std::vector<std::pair<std::int64_t, int>> found;
  for (std::size_t b = 0; b < step.schedule.buffers.size(); ++b)
    if (const Buffer& buffer = step.schedule.buffers[b]; buffer.category == Category::Workspace)
      found.push_back({buffer.size.count, runs_during(step.schedule, static_cast<BufferId>(b))});
  EXPECT_THAT(found, ElementsAre(std::pair(1000, 1), std::pair(3000, 1)));
}

std::int64_t count_gradients_of(const Planned& step, std::string_view tensor) {
  return std::ranges::count_if(step.schedule.buffers, [&](const Buffer& buffer) {
    return buffer.role == Role::Gradient && buffer.tensor == tensor_named(step.trace, tensor);
  });
}

// As an add's would: what comes in is what goes on.
TEST(OpaqueStep, HandsAGradientOnInTheMemoryThatItCameIn) {
  OpaqueRow row = scan_row();
  EXPECT_EQ(count_gradients_of(planned("vanilla", row), "fc"), 1);
  row.handed_on = 1;
  const Planned step = planned("vanilla", row);
  expect_sound(step);
  EXPECT_EQ(count_gradients_of(step, "fc"), 0);
}

// As Liger's SwiGLU: its inputs are not read again.
TEST(OpaqueStep, WritesAGradientOverTheValueThatItWasMadeOf) {
  OpaqueRow row = scan_row();
  row.written_over = 1;
  for (const char* strategy : {"vanilla", "checkpoint", "mesa"}) {
    const Planned step = planned(strategy, row);
    expect_sound(step);
    EXPECT_EQ(count_gradients_of(step, "fc"), 0) << strategy;
  }
}

TEST(OpaqueStep, WritesOverNothingThatAnotherGradientNeeds) {
  OpaqueRow row = scan_row();
  row.written_over = 1;
  Trace trace = scanned(row);
  trace.ops[0].also_keeps = output_bit(0);  // fc's own backward comes later
  const Schedule schedule = lower(trace, keep_everything(trace));
  EXPECT_THAT(validate(trace, schedule), IsEmpty());
  EXPECT_EQ(count_gradients_of({trace, {}, schedule}, "fc"), 1);
}

/// A weight [4, 4] that two products read. The gradient of the second comes first, and maybe
/// through a view.
Planned used_twice(bool through_view) {
  TraceBuilder b("twice", "toy",
                 {.batch = 2, .precision = Precision::Fp32, .optimizer = Optimizer::Sgd});
  const TensorId x = b.input("x", {2, 4}, DType::Float32);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const TensorId w = b.parameter("w", {4, 4});
  const OpaqueRow product = {
      .operation = "aten::mm", .gradients = 3, .saved = input_bit(0) | input_bit(1)};
  const std::array output = {OutputSpec{"", {2, 4}, DType::Float32}};
  const std::array first = {b.linear("fc", x, 4, false), w};
  const TensorId h = b.opaque("first", first, output, product);
  const std::array second = {h, through_view ? b.view("transposed", w, {4, 4}) : w};
  const TensorId y = b.opaque("second", second, output, product);
  Trace trace = b.finish(b.cross_entropy("loss", y, targets));
  Plan plan = keep_everything(trace);
  Schedule schedule = lower(trace, plan);
  return {std::move(trace), std::move(plan), std::move(schedule)};
}

// can_accumulate_inplace() of PyTorch: a view is not added to, the sum lies beside both parts.
TEST(OpaqueStep, HasTheSumBesideAFirstGradientThatIsAView) {
  const auto count = [](bool through_view) {
    const Planned step = used_twice(through_view);
    expect_sound(step);
    return std::ranges::count_if(step.schedule.buffers, [&](const Buffer& buffer) {
      return buffer.role == Role::Gradient && buffer.tensor != no_tensor &&
             step.trace[buffer.tensor].storage == tensor_named(step.trace, "w");
    });
  };
  EXPECT_EQ(count(false), 2);
  EXPECT_EQ(count(true), 3);
}

// PyTorch's allocator sees it; live memory does not.
/// Biases of queries and values beside zeros for the keys, as BEiT has them, together added to x.
Planned concatenated(const Shape& bias, const Shape& all) {
  TraceBuilder b("together", "toy",
                 {.batch = 2, .precision = Precision::Fp32, .optimizer = Optimizer::Sgd});
  const TensorId x = b.input("x", {2, 12}, DType::Float32);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const std::array biases = {b.parameter("q", bias), b.input("k", bias, DType::Float32),
                             b.parameter("v", bias)};
  const std::array together = {OutputSpec{"", all, DType::Float32}};
  const TensorId one = b.opaque("cat", biases, together,
                                {.operation = "aten::cat", .gradients = 0b101, .handed_on = 0b101});
  const std::array added = {b.linear("fc", x, 12, false), one};
  const std::array output = {OutputSpec{"", {2, 12}, DType::Float32}};
  const TensorId y =
      b.opaque("add", added, output, {.operation = "aten::add", .gradients = 3, .handed_on = 1});
  Trace trace = b.finish(b.cross_entropy("loss", y, targets));
  Plan plan = keep_everything(trace);
  Schedule schedule = lower(trace, plan);
  return {std::move(trace), std::move(plan), std::move(schedule)};
}

Bytes gradients_of(const Planned& step, std::initializer_list<std::string_view> names) {
  Bytes sum;
  for (const Buffer& buffer : step.schedule.buffers)
    if (buffer.role == Role::Gradient &&
        std::ranges::find(names, step.trace[buffer.tensor].name) != names.end())
      sum += buffer.size;
  return sum;
}

// PyTorch's AccumulateGrad takes over a view without gaps, and with it all of its memory.
TEST(OpaqueStep, LeavesAWeightThePartOfAGradientThatIsAView) {
  const Planned rows = concatenated({4}, {12});
  expect_sound(rows);
  EXPECT_EQ(gradients_of(rows, {"cat", "q", "v"}), Bytes{12 * 4});
}

TEST(OpaqueStep, CopiesThePartOfAGradientThatHasGaps) {
  const Planned columns = concatenated({2, 4}, {2, 12});
  expect_sound(columns);
  EXPECT_EQ(gradients_of(columns, {"cat", "q", "v"}), Bytes{(24 + 8 + 8) * 4});
}

TEST(OpaqueStep, TakesItsScratchFromTheAllocatorOnly) {
  OpaqueRow row = scan_row();
  const std::size_t buffers = planned("vanilla", row).schedule.buffers.size();
  row.forward.scratch = {5000}, row.backward.scratch = {7000};
  const Planned step = planned("vanilla", row);
  EXPECT_EQ(step.schedule.buffers.size(), buffers);
  std::vector<std::int64_t> taken;
  for (const tidemark::Run& run : runs_of(step.schedule))
    for (const Bytes bytes :
         scratch_of(step.trace, step.schedule, run, find_device("a100-80gb")).requests())
      if (run.op != no_op && step.trace[run.op].name == "scan") taken.push_back(bytes.count);
  EXPECT_THAT(taken, ElementsAre(5000, 7000));
}

TEST(OpaqueStep, UpdatesAsItWasRecorded) {
  Trace trace = scanned();
  trace.step.optimizer = Optimizer::AdamW;  // whose state is not asked for
  trace.update = RecordedUpdate{.optimizer = "Rprop", .pass = {.workspace = {777}, .kernels = 3}};
  const Plan plan = keep_everything(trace);
  const Schedule schedule = lower(trace, plan);
  EXPECT_THAT(validate(trace, schedule), IsEmpty());
  EXPECT_EQ(std::ranges::count(schedule.buffers, Role::OptimizerState, &Buffer::role), 0);
  EXPECT_EQ(std::ranges::count(schedule.buffers, Bytes{777}, &Buffer::size), 1);
  trace.update->pass.workspace = {778};  // the judge asks for it
  EXPECT_THAT(validate(trace, schedule),
              Contains(HasSubstr("has workspaces of 777 bytes, not of 778")));
}

TEST(OpaqueStep, RunsAgainWithItsWorkspaceUnderCheckpointing) {
  const Planned step = planned("checkpoint");
  expect_sound(step);
  EXPECT_EQ(count_runs_of(step, Task::Recompute, "scan"), 1);
  EXPECT_EQ(std::ranges::count(step.schedule.buffers, Bytes{1000}, &Buffer::size), 2);
}

// Its input is made again; what it made itself stays.
TEST(OpaqueStep, DoesNotRunAgainIfItMayRunOnlyOnce) {
  OpaqueRow row = scan_row();
  row.runs_once = true;
  const Planned step = planned("checkpoint", row);
  expect_sound(step);
  EXPECT_EQ(count_runs_of(step, Task::Recompute, "scan"), 0);
  EXPECT_EQ(count_runs_of(step, Task::Recompute, "fc"), 1);
  EXPECT_EQ(step.plan.decisions[index(tensor_named(step.trace, "scan.state"))].action,
            Action::Keep);
  EXPECT_EQ(step.plan.decisions[index(tensor_named(step.trace, "fc"))].action, Action::Recompute);
}

TEST(OpaqueStep, KeepsWhatRecoveryReadsOfAnOpThatRunsOnce) {
  OpaqueRow row = scan_row();
  row.runs_once = true;
  TraceBuilder b("read again", "toy", {.batch = 2, .precision = Precision::Fp32});
  const TensorId x = b.linear("fc", b.input("x", {2, 4}, DType::Float32), 4);
  b.begin_block("block", x, -1);
  const OutputSpec output{"", {2, 4}, DType::Float32};
  row.saved = input_bit(0);
  const TensorId once = b.opaque("once", std::span(&x, 1), std::span(&output, 1), row);
  const TensorId y = b.gelu("gelu", b.scale("scale", once, 2));  // recovery reads `once`, no
  b.end_block();                                                 // gradient does
  const auto trace = std::make_shared<const Trace>(
      b.finish(b.cross_entropy("loss", y, b.input("targets", {2}, DType::Int64))));
  const PlannedStep step = plan_step(trace, parse_strategy("checkpoint"));
  ASSERT_EQ(step.refusal, "");
  const Planned lowered{*trace, step.plan, lower(*trace, step.plan)};
  expect_sound(lowered);
  EXPECT_EQ(count_runs_of(lowered, Task::Recompute, "scale"), 1);
  EXPECT_EQ(count_runs_of(lowered, Task::Recompute, "once"), 0);
}

// sort ─► y, indices; scale reads y; relu_ works in place on y. Running sort again for its indices
// would write over what relu_ left, and scale would read that.
TEST(OpaqueStep, DoesNotRunAgainWhatAnotherWorksOnInPlace) {
  TraceBuilder b("in place", "toy", {.batch = 2, .precision = Precision::Fp32});
  const TensorId x = b.linear("fc", b.input("x", {2, 4}, DType::Float32), 4);
  b.begin_block("block", x, -1);
  const std::array outputs = {OutputSpec{"", {2, 4}, DType::Float32},
                              OutputSpec{"indices", {2, 4}, DType::Int64}};
  const TensorId y = b.opaque("sort", std::span(&x, 1), outputs,
                              {.operation = "aten::sort", .gradients = 1, .saved = output_bit(1)});
  const TensorId twice = b.scale("scale", y, 2);
  const OutputSpec over{"", {2, 4}, DType::Float32, y};
  const TensorId z = b.opaque("relu_", std::span(&y, 1), std::span(&over, 1),
                              {.operation = "aten::relu_", .gradients = 1, .saved = output_bit(0)});
  const TensorId loss_input = b.mul("mul", b.silu("silu", z), twice);
  b.end_block();
  const auto trace = std::make_shared<const Trace>(
      b.finish(b.cross_entropy("loss", loss_input, b.input("targets", {2}, DType::Int64))));
  const PlannedStep step = plan_step(trace, parse_strategy("checkpoint"));
  ASSERT_EQ(step.refusal, "");
  const Planned lowered{*trace, step.plan, lower(*trace, step.plan)};
  expect_sound(lowered);
  EXPECT_EQ(count_runs_of(lowered, Task::Recompute, "silu"), 1);
  EXPECT_EQ(count_runs_of(lowered, Task::Recompute, "relu_"), 0);
  EXPECT_EQ(count_runs_of(lowered, Task::Recompute, "scale"), 0);
  EXPECT_EQ(count_runs_of(lowered, Task::Recompute, "sort"), 0);
}

// fc ─► y; a copy of y is kept, and y multiplied in place: what mixtures of experts do.
Planned weighted_in_place(Formula computes) {
  TraceBuilder b("weighted", "toy", {.batch = 2, .precision = Precision::Fp32});
  const TensorId x = b.linear("fc", b.input("x", {2, 4}, DType::Float32), 4);
  b.begin_block("block", x, -1);
  const OutputSpec made{"", {2, 4}, DType::Float32};
  const OpaqueRow row{.operation = "aten::index_put_", .gradients = 1, .computes = computes};
  const TensorId y = b.opaque("made", std::span(&x, 1), std::span(&made, 1), row);
  const TensorId kept = b.copy("kept", y, {2, 4});
  const OutputSpec over{"", {2, 4}, DType::Float32, y};
  const TensorId z = b.opaque(
      "weighted", std::array{y, kept}, std::span(&over, 1),
      {.operation = "aten::mul_", .gradients = 1, .saved = input_bit(1), .computes = computes});
  b.end_block();
  const auto trace = std::make_shared<const Trace>(
      b.finish(b.cross_entropy("loss", z, b.input("targets", {2}, DType::Int64))));
  const PlannedStep step = plan_step(trace, parse_strategy("checkpoint"));
  return {*trace, step.plan, lower(*trace, step.plan)};
}

TEST(OpaqueStep, RunsAgainWhatAKnownOpWorksOnInPlace) {
  const Planned known = weighted_in_place(Formula::MulKept);
  expect_sound(known);
  EXPECT_EQ(count_runs_of(known, Task::Recompute, "kept"), 1);
  EXPECT_EQ(count_runs_of(known, Task::Recompute, "made"), 1);
  const Planned unknown = weighted_in_place(Formula::None);
  expect_sound(unknown);
  EXPECT_EQ(count_runs_of(unknown, Task::Recompute, "kept"), 0);
}

TEST(OpaqueStep, RefusesAPlanThatRunsItAgainAnyway) {
  OpaqueRow row = scan_row();
  row.runs_once = true;
  const Trace trace = scanned(row);
  Plan plan = keep_everything(trace);
  decide(plan, tensor_named(trace, "scan.state"), Action::Recompute, "asked for");
  plan.regions = {{OpId{0}, OpId{0}, OpId{3}}};
  EXPECT_THAT(check(trace, plan),
              ElementsAre("'scan.state' is recompute, but 'scan' may run only once: keep it"));
}

// Its kernels are not ours, so they read numbers: codes are decoded into memory first.
TEST(OpaqueStep, HasOnlyListedOperandsQuantized) {
  const Planned step = planned("mesa");
  expect_sound(step);
  EXPECT_EQ(step.plan.decisions[index(tensor_named(step.trace, "fc"))].action, Action::Quantize);
  EXPECT_EQ(step.plan.decisions[index(tensor_named(step.trace, "scan.state"))].action,
            Action::Keep);
  EXPECT_GE(count_runs(step.schedule, Task::Dequantize), 1);
}

TEST(OpaqueStep, CanBeOffloaded) {
  Planned step = planned("vanilla");
  for (const char* tensor : {"fc", "scan.state", "scan"})
    decide(step.plan, tensor_named(step.trace, tensor), Action::Offload, "asked for");
  ASSERT_THAT(check(step.trace, step.plan), IsEmpty());
  step.schedule = lower(step.trace, step.plan);
  expect_sound(step);
  EXPECT_EQ(count_steps<CopyIn>(step.schedule), 3);
}

TEST(OpaqueStep, KeepsItsRowWhereOtherOpsAreRewritten) {
  TraceBuilder b("rewritten", "toy", {.batch = 2, .precision = Precision::Fp32});
  const TensorId x = b.gelu("gelu", b.linear("fc", b.input("x", {2, 4}, DType::Float32), 4));
  const std::array outputs = {OutputSpec{"", {2, 4}, DType::Float32},
                              OutputSpec{"state", {5}, DType::Float32}};
  const TensorId y = b.opaque("scan", std::span(&x, 1), outputs, scan_row());
  Trace written = b.finish(b.cross_entropy("loss", y, b.input("targets", {2}, DType::Int64)));
  written.lines = {"net.py:3", "net.py:4"};
  written.ops[1].line = LineId{0}, written.ops[2].line = LineId{1};  // gelu, scan
  const auto trace = std::make_shared<const Trace>(std::move(written));
  const PlannedStep step = plan_step(trace, parse_strategy("approx-bp"));
  ASSERT_EQ(step.refusal, "");
  EXPECT_THAT(check(*step.trace), IsEmpty());
  const auto scan = std::ranges::find(step.trace->ops, "scan", &Op::name);
  ASSERT_NE(scan, step.trace->ops.end());
  EXPECT_EQ(line_of(*step.trace, *scan), "net.py:4");
  EXPECT_THAT(step.trace->opaque_rows, ElementsAre(scan_row()));
  expect_sound({*step.trace, step.plan, lower(*step.trace, step.plan)});
}

// --- names --------------------------------------------------------------------------------------

TEST(OpaqueStep, IsListedByItsOperation) {
  const Planned step = planned("vanilla");
  EXPECT_THAT(saved_groups(step.trace, derive_needs(step.trace)),
              Contains(testing::Field(&SavedGroup::op, "selective_scan::fwd")));
  const Timeline timeline = simulate(step.trace, step.schedule, toy_device());
  std::vector<std::string> names;
  for (const diff::TimeGroup& group : diff::time_groups(step.trace, step.schedule, timeline))
    names.push_back(name_of(group));
  EXPECT_THAT(names, IsSupersetOf({"forward of selective_scan::fwd", "forward of linear",
                                   "backward of selective_scan::fwd", "optimizer"}));
}

// Two operations that keep one tensor hold it twice; two ops of one operation hold it once.
TEST(OpaqueStep, CountsWhatItSavesByOperation) {
  const auto saved = [](std::string second) {
    TraceBuilder b("twice", "toy", {.batch = 2, .precision = Precision::Fp32});
    const TensorId x = b.linear("fc", b.input("x", {2, 4}, DType::Float32), 4);
    const OutputSpec output{"", {2, 4}, DType::Float32};
    OpaqueRow row{.operation = "aten::f", .gradients = 1, .saved = input_bit(0)};
    const TensorId y = b.opaque("f", std::span(&x, 1), std::span(&output, 1), row);
    row.operation = std::move(second);
    const TensorId z = b.opaque("g", std::span(&x, 1), std::span(&output, 1), row);
    const Trace trace = b.finish(
        b.cross_entropy("loss", b.add("add", y, z), b.input("targets", {2}, DType::Int64)));
    return saved_bytes(trace, keep_everything(trace)).per_op;
  };
  EXPECT_EQ(saved("aten::g"), saved("aten::f") + Bytes{32});
}

// --- the judge ----------------------------------------------------------------------------------

TEST(OpaqueStep, IsJudgedByTheWorkspaceOfItsRow) {
  Planned step = planned("vanilla");
  step.trace.opaque_rows[0].backward.workspace = {5000};
  EXPECT_THAT(validate(step.trace, step.schedule),
              Contains(HasSubstr("(backward of scan): has no workspace of 5000 bytes")));
}

TEST(OpaqueStep, IsJudgedByWhetherItMayRunAgain) {
  Planned step = planned("checkpoint");
  step.trace.opaque_rows[0].runs_once = true;
  EXPECT_THAT(validate(step.trace, step.schedule),
              Contains(HasSubstr("(recompute of scan): runs again, though it may run only once")));
}

TEST(OpaqueStep, IsJudgedByWhatItSaves) {
  Planned step = planned("vanilla");
  step.trace.opaque_rows[0].saved |= output_bit(0);
  EXPECT_THAT(validate(step.trace, step.schedule),
              Contains(HasSubstr("(backward of scan): does not read the value of scan")));
}

// --- time ---------------------------------------------------------------------------------------

Cost cost_of(const OpaqueRow& row, Task task) {
  const Planned step = planned("vanilla", row);
  const Device device = toy_device();
  for (const tidemark::Run& run : runs_of(step.schedule))
    if (run.task == task && step.trace[run.op].name == "scan")
      return CostModel(step.trace, derive_needs(step.trace), device).of(step.schedule, run);
  ADD_FAILURE() << "the scan does not run";
  return {};
}

// A byte and a FLOP per nanosecond.
TEST(OpaqueStep, TakesTheLongerOfItsArithmeticAndItsTraffic) {
  OpaqueRow row = scan_row();
  row.forward = {.workspace = {}, .flops = 5000, .moved = Bytes{700}};
  row.backward = {.workspace = {}, .flops = 600, .moved = Bytes{700}};
  EXPECT_EQ(cost_of(row, Task::Forward).time, Nanoseconds{5000});
  EXPECT_EQ(cost_of(row, Task::Backward).time, Nanoseconds{700});
  EXPECT_EQ(cost_of(row, Task::Backward).flops, 600);
  EXPECT_EQ(cost_of(row, Task::Backward).bytes, 700);
}

// Casts before a product take their time beside it, however much longer that takes.
TEST(OpaqueStep, AddsWhatStreamsBeforeOrAfter) {
  OpaqueRow row = scan_row();
  row.forward = {.workspace = {}, .flops = 5000, .moved = Bytes{700}, .streamed = Bytes{300}};
  row.forward.kernels = 2;
  EXPECT_EQ(cost_of(row, Task::Forward).time, Nanoseconds{5300});
  EXPECT_EQ(cost_of(row, Task::Forward).kernels, 2);
  EXPECT_EQ(cost_of(row, Task::Forward).bytes, 1000);
}

// Forward: input and both outputs. Backward: the gradient of the output, input and state that were
// saved, the gradient of the input.
TEST(OpaqueStep, WalksOverItsOperandsIfItsTrafficIsUnknown) {
  EXPECT_EQ(cost_of(scan_row(), Task::Forward).bytes, 32 + 32 + 20);
  EXPECT_EQ(cost_of(scan_row(), Task::Backward).bytes, 32 + 32 + 20 + 32);
}

TEST(OpaqueStep, LaunchesAsManyKernelsAsItSays) {
  OpaqueRow row = scan_row();
  row.forward.kernels = 7, row.backward.kernels = 0;
  EXPECT_EQ(cost_of(row, Task::Forward).kernels, 7);
  EXPECT_EQ(cost_of(row, Task::Backward).time, Nanoseconds{0});
}

// The products of fc (no gradient of x) and out, forward and backward, and what the scan says.
TEST(OpaqueStep, AddsItsFlopsToTheModels) {
  OpaqueRow row = scan_row();
  const double without = model_flops(scanned(row));
  row.forward.flops = 100, row.backward.flops = 250;
  EXPECT_EQ(model_flops(scanned(row)), without + 350);
  EXPECT_EQ(model_flops(scanned(row, "frozen:fc*")),
            model_flops(scanned(scan_row(), "frozen:fc*")) + 100);
}

std::string note_on(const Trace& trace) {
  return note_on_guessed_times(trace, derive_gradients(trace));
}

TEST(OpaqueStep, SaysWhenItsTimeIsAGuess) {
  OpaqueRow row = scan_row();
  EXPECT_EQ(note_on(scanned(row)),
            "the time of 1 opaque op is a guess, one walk over its operands: selective_scan::fwd "
            "(its row says neither flops nor moved_bytes of a pass)");
  row.forward.moved = Bytes{10};
  EXPECT_THAT(note_on(scanned(row)), HasSubstr("1 opaque op"));
  EXPECT_EQ(note_on(scanned(row, "frozen:fc*")), "");  // it has no backward
  row.backward.flops = 20;
  EXPECT_EQ(note_on(scanned(row)), "");
}

}  // namespace
}  // namespace tidemark::opaque_step_test
