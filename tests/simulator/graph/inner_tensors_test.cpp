// Tensors inside composed backwards, against the storages that came and went in PyTorch 2.6's own.
#include "simulator/graph/inner_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/lower.h"
#include "traces/trace_builder.h"

namespace tidemark::inner_tensors_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t fp32 = 6 * 32 * 4, half = 6 * 32 * 2;

template <typename Build>
Trace built(Precision precision, Build build) {
  TraceBuilder b("inner", "toy", {.precision = precision});
  const TensorId x = b.linear("fc", b.input("x", {6, 32}, DType::Float32), 32);
  return b.finish(b.mean("loss", build(b, x)));
}

const Op& last_of(const Trace& trace, OpKind kind) {
  const Op* found = nullptr;
  for (const Op& op : trace.ops)
    if (op.kind == kind) found = &op;
  CHECK(found);
  return *found;
}

std::vector<std::int64_t> inner_of(const Trace& trace, OpKind kind, const BackwardCall& call) {
  std::vector<std::int64_t> sizes;
  const InnerTensors inner = inner_tensors(trace, last_of(trace, kind), call);
  for (const Bytes size : inner.sizes()) sizes.push_back(size.count);
  return sizes;
}

// Three more tensors than dx while x is squared (the spread mean, x, 2x and their product, less dy,
// less the normalized x where the weight is trained).
TEST(InnerTensors, OfAnRmsNormAreTheGradientsOfItsKernels) {
  const Trace trace = built(
      Precision::Fp32, [](TraceBuilder& b, TensorId x) { return b.rms_norm("norm", x, 1e-6); });
  const auto inner = [&](const BackwardCall& call) {
    return inner_of(trace, OpKind::RmsNorm, call);
  };
  EXPECT_THAT(inner({.gradients = 3}), ElementsAre(fp32, fp32));
  EXPECT_THAT(inner({.gradients = 1}), ElementsAre(fp32, fp32, fp32));
  EXPECT_THAT(inner({.gradients = 2}), ElementsAre(fp32));  // dy times the normalized x
  EXPECT_THAT(inner({.gradients = 3, .keeps_dy = true}), ElementsAre(fp32, fp32, fp32));
}

// In 16 bits x is normalized in fp32: dy and the normalized x that go are half of one such tensor
// each.
TEST(InnerTensors, OfAnRmsNormIn16BitsAreThoseOfFp32) {
  const Trace trace = built(
      Precision::Bf16, [](TraceBuilder& b, TensorId x) { return b.rms_norm("norm", x, 1e-6); });
  EXPECT_THAT(inner_of(trace, OpKind::RmsNorm, {.gradients = 3}), ElementsAre(fp32, fp32, fp32));
  EXPECT_THAT(inner_of(trace, OpKind::RmsNorm, {.gradients = 3, .keeps_dy = true}),
              ElementsAre(fp32, fp32, fp32, half));
}

TEST(InnerTensors, OfGeluNewAreTheOtherFactorsGradientAndItsRounding) {
  const auto gelu = [](TraceBuilder& b, TensorId x) { return b.gelu("gelu", x, true); };
  const Trace plain = built(Precision::Fp32, gelu), amp = built(Precision::AmpBf16, gelu);
  EXPECT_THAT(inner_of(plain, OpKind::GeluComposed, {.gradients = 1}), ElementsAre(fp32));
  EXPECT_THAT(inner_of(amp, OpKind::GeluComposed, {.gradients = 1}), ElementsAre(fp32, half));
  // A checkpoint's factors are gone before the gradient is rounded.
  const BackwardCall again{.gradients = 1, .made_again = true};
  EXPECT_THAT(inner_of(amp, OpKind::GeluComposed, again), ElementsAre(fp32));
  EXPECT_EQ(saved_by_running_again(amp, last_of(amp, OpKind::GeluComposed)), Bytes{half});
  EXPECT_EQ(saved_by_running_again(plain, last_of(plain, OpKind::GeluComposed)), Bytes{0});
}

TEST(InnerTensors, OfAWeightPerChannelAreAWholeProduct) {
  const Trace trace = built(Precision::Fp32, [](TraceBuilder& b, TensorId x) {
    return b.mul("scale", x, b.parameter("scale.weight", {32}));
  });
  EXPECT_THAT(inner_of(trace, OpKind::Mul, {.gradients = 3}), ElementsAre(fp32));
  EXPECT_THAT(inner_of(trace, OpKind::Mul, {.gradients = 1}), IsEmpty());
}

// What x gets is dy · w in fp32 until the backward has returned, and dy is gone unless others keep
// it: beside dy and dy · x, or beside its cast.
TEST(InnerTensors, OfAFactorIn16BitsAreItsGradientInFp32) {
  const Trace trace = built(Precision::AmpBf16, [](TraceBuilder& b, TensorId x) {
    return b.mul("scale", x, b.parameter("scale.weight", {32}));
  });
  EXPECT_THAT(inner_of(trace, OpKind::Mul, {.gradients = 3}), ElementsAre(fp32, fp32 - half));
  EXPECT_THAT(inner_of(trace, OpKind::Mul, {.gradients = 1}), ElementsAre(fp32 - half));
  EXPECT_THAT(inner_of(trace, OpKind::Mul, {.gradients = 1, .keeps_dy = true}), ElementsAre(fp32));
  EXPECT_THAT(inner_of(trace, OpKind::Mul, {.gradients = 2}), ElementsAre(fp32));
}

// dy times what stays of each sample, before it is divided; beside it dy is gone, or of a
// residual's shortcut, too.
TEST(InnerTensors, OfADroppedPathIsTheProductsGradient) {
  const Trace trace = built(Precision::Fp32, [](TraceBuilder& b, TensorId x) {
    return b.drop_path("drop_path", x, 0.1);
  });
  EXPECT_THAT(inner_of(trace, OpKind::DropPath, {.gradients = 1}), IsEmpty());
  EXPECT_THAT(inner_of(trace, OpKind::DropPath, {.gradients = 1, .keeps_dy = true}),
              ElementsAre(fp32));
}

TEST(InnerTensors, AreKnownOfFrameworksWhoseKernelsAre) {
  TraceBuilder b("inner", "toy", {.framework = "paper"});
  const TensorId x = b.linear("fc", b.input("x", {6, 32}, DType::Float32), 32);
  const Trace trace =
      b.finish(b.mean("loss", b.mul("scale", x, b.parameter("scale.weight", {32}))));
  EXPECT_FALSE(has_inner_tensors(trace, last_of(trace, OpKind::Mul)));
  EXPECT_THAT(inner_of(trace, OpKind::Mul, {.gradients = 3}), IsEmpty());
}

// They are buffers of the step, allocated for the one run and freed behind it.
TEST(InnerTensors, LiveWhileTheirBackwardRuns) {
  const Trace trace =
      built(Precision::Fp32, [](TraceBuilder& b, TensorId x) { return b.gelu("gelu", x, true); });
  const Schedule schedule = lower(trace, keep_everything(trace));
  std::size_t found = 0;
  for (const Step& step : schedule.steps) {
    const auto* run = std::get_if<tidemark::Run>(&step);
    if (!run || run->task == Task::Optimizer) continue;
    for (const BufferId written : schedule.writes(*run)) {
      if (schedule[written].role != Role::Temporary) continue;
      ++found;
      EXPECT_EQ(run->task, Task::Backward);
      EXPECT_EQ(trace[run->op].kind, OpKind::GeluComposed);
      EXPECT_EQ(schedule[written].size.count, fp32);
    }
  }
  EXPECT_EQ(found, 1u);
}

}  // namespace
}  // namespace tidemark::inner_tensors_test
