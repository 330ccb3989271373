// Norms before linears lose their affine part and share the saved input; all others stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "analysis/saved.h"
#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/strategies/strategy.h"
#include "tests/traces/small_trace.h"
#include "traces/presets.h"

namespace tidemark::ms_bp_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using Build = std::function<TensorId(TraceBuilder&, TensorId x)>;

StepOptions with(Precision precision, const char* tuning = "full") {
  StepOptions options{.batch = 2};
  options.precision = precision;
  options.tuning = parse_tuning(tuning);
  return options;
}

/// A trainable stem, then what is to be changed, then the loss.
Trace around(const Build& build, const StepOptions& options = with(Precision::Fp32)) {
  TraceBuilder b("ms", "toy", options);
  const TensorId x = b.linear("stem", b.input("x", {2, 4}, DType::Float32), 4);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  return b.finish(b.cross_entropy("loss", build(b, x), targets));
}

PlannedStep planned_ms_bp(const Trace& trace) {
  PlannedStep step = plan_step(std::make_shared<const Trace>(trace), parse_strategy("ms-bp"));
  EXPECT_THAT(check(*step.trace), IsEmpty());
  EXPECT_THAT(check(*step.trace, step.plan), IsEmpty());
  EXPECT_THAT(validate(*step.trace, lower(*step.trace, step.plan)), IsEmpty());
  return step;
}

const Op& op(const PlannedStep& step, std::string_view name) {
  return (*step.trace)[op_named(*step.trace, name)];
}

TensorId norm_and_linear(TraceBuilder& b, TensorId x) {
  return b.linear("fc", b.layer_norm("norm", x, 1e-5), 4);
}

TEST(MsBp, ANormBeforeALinearLosesItsAffinePart) {
  const PlannedStep step = planned_ms_bp(around(norm_and_linear));
  EXPECT_EQ(step.refusal, "");
  const Op& norm = op(step, "norm");
  EXPECT_EQ(norm.kind, OpKind::MsLayerNorm);
  EXPECT_EQ(norm.inputs, 1);
  EXPECT_EQ((*step.trace)[step.trace->outputs(norm)[1]].shape, Shape({2, 1}));  // 1/σ per row
}

// Before: the norm keeps x (32 B), mean and 1/σ (16 B), and the linear the norm's output. After:
// the linear's input serves both, and the norm adds 1/σ (8 B).
TEST(MsBp, TheNormSharesWhatTheLinearKeeps) {
  const Trace trace = around(norm_and_linear);
  const PlannedStep step = planned_ms_bp(trace);
  const Bytes before = saved_bytes(trace, keep_everything(trace)).unique;
  const Bytes after = saved_bytes(*step.trace, step.plan).unique;
  EXPECT_EQ(before - after, Bytes{32 + 16 - 8});
}

// The 16-bit copy that the linear reads is made again from the norm's output.
TEST(MsBp, ACastIsMadeAgain) {
  const PlannedStep step = planned_ms_bp(around(norm_and_linear, with(Precision::AmpFp16)));
  const TensorId cast = tensor_named(*step.trace, "norm.cast");
  EXPECT_EQ(step.plan.decisions[index(cast)].action, Action::Recompute);
  EXPECT_EQ(step.plan.regions.size(), 1u);
}

TEST(MsBp, ARmsNormNeedsNoBiasToTakeItsAffinePart) {
  const PlannedStep step = planned_ms_bp(around([](TraceBuilder& b, TensorId x) {
    return b.linear("fc", b.rms_norm("norm", x, 1e-5), 4, false);
  }));
  EXPECT_EQ(op(step, "norm").kind, OpKind::MsRmsNorm);
}

TEST(MsBp, ALayerNormsShiftNeedsABias) {
  const PlannedStep step = planned_ms_bp(around([](TraceBuilder& b, TensorId x) {
    return b.linear("fc", b.layer_norm("norm", x, 1e-5), 4, false);
  }));
  EXPECT_THAT(step.refusal, HasSubstr("no norm feeds only linears"));
}

TEST(MsBp, ANormThatOthersReadStaysAsItIs) {
  const PlannedStep step = planned_ms_bp(around([](TraceBuilder& b, TensorId x) {
    const TensorId y = b.layer_norm("norm", x, 1e-5);
    return b.add("sum", b.linear("fc", y, 4), b.gelu("gelu", y));
  }));
  EXPECT_THAT(step.refusal, HasSubstr("no norm feeds only linears"));
}

// A frozen linear keeps no input that could be shared.
TEST(MsBp, ANormBeforeAFrozenLinearStaysAsItIs) {
  const PlannedStep step =
      planned_ms_bp(around(norm_and_linear, with(Precision::Fp32, "frozen:fc*")));
  EXPECT_THAT(step.refusal, HasSubstr("no norm feeds only linears that keep their input"));
}

// The next shortcut of a post-norm block reads γ·z + β: two ops of its own.
TEST(MsBp, APostNormBlocksShortcutGetsItsAffinePartBack) {
  const PlannedStep step =
      planned_ms_bp(build_trace(find_model("bert-base"), {.batch = 2, .sequence = 8}));
  EXPECT_EQ(step.refusal, "");
  EXPECT_EQ(op(step, "blocks.3.norm1").kind, OpKind::MsLayerNorm);
  const Op& add = op(step, "blocks.3.add2");
  EXPECT_EQ((*step.trace)[step.trace->inputs(add)[0]].name, "blocks.3.norm1.affine_add");
}

}  // namespace
}  // namespace tidemark::ms_bp_test
