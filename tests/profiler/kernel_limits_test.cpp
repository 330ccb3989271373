// Small models keep the kernels' limits under each strategy, and damaged ops are refused.
#include "profiler/kernel_limits.h"

#include <gmock/gmock.h>

#include <functional>

#include "simulator/strategies/strategy.h"
#include "tests/support/small_models.h"
#include "traces/trace_builder.h"
#include "traces/trace_check.h"

namespace tidemark::profiler::kernel_limits_test {
namespace {

using testing::HasSubstr;

TEST(KernelLimits, EveryModelOfEveryStrategyKeepsThem) {
  for (const Model& model : small_models())
    for (const Precision precision : {Precision::Fp32, Precision::AmpFp16, Precision::Bf16})
      for (const char* strategy : {"vanilla", "lowmemorybp", "reversible"}) {
        StepOptions options{.batch = 2};
        options.precision = precision;
        const PlannedStep planned = plan_step(std::make_shared<Trace>(build_trace(model, options)),
                                              parse_strategy(strategy));
        for (const Op& op : planned.trace->ops)
          EXPECT_EQ(kernel_defect(*planned.trace, op), "") << model.name << " " << op.name;
      }
}

// A pooling of [2, 3, 8, 8] by windows of 3 in steps of 2, with one thing changed.
std::string defect_of_pool(const std::function<void(Trace&)>& change) {
  TraceBuilder b("test", "", {});
  const TensorId x = b.parameter("x", {2, 3, 8, 8});
  Trace trace = b.finish(b.max_pool("pool", x, {2, 3, 4, 4}, 3, 2));
  change(trace);
  return kernel_defect(trace, trace.ops[0]);
}

void set_attribute(Trace& trace, AttributeKey key, double value) {
  for (Attribute& attribute : trace.attributes)
    if (attribute.key == key) attribute.value = value;
}

TEST(KernelLimits, AnOpaqueOpHasNoKernel) {
  TraceBuilder b("test", "", {});
  const TensorId x = b.parameter("x", {2});
  const OutputSpec output{"", {}, DType::Float32};
  const Trace trace = b.finish(
      b.opaque("norm", std::span(&x, 1), std::span(&output, 1), {.operation = "aten::norm"}));
  EXPECT_EQ(kernel_defect(trace, trace.ops[0]),
            "'aten::norm' is opaque; no kernel is known for it");
}

TEST(KernelLimits, APoolingMustSuitItsPlanes) {
  EXPECT_EQ(defect_of_pool([](Trace&) {}), "");
  for (const double window : {0.0, -1.0, 2.5, 18.0})
    EXPECT_THAT(defect_of_pool([&](Trace& t) { set_attribute(t, AttributeKey::Window, window); }),
                HasSubstr("its window, stride and padding"))
        << window;
  for (const double stride : {0.0, 1.0, 3.0, 0.5})
    EXPECT_THAT(defect_of_pool([&](Trace& t) { set_attribute(t, AttributeKey::Stride, stride); }),
                HasSubstr("its window, stride and padding"))
        << stride;
  EXPECT_EQ(defect_of_pool([](Trace& t) { set_attribute(t, AttributeKey::Stride, 1e300); }),
            "its stride is beyond 2^53");
  for (const Shape& shape : {Shape{2, 3, 16}, Shape{3, 2, 4, 4}, Shape{1, 3, 4, 4}})
    EXPECT_THAT(defect_of_pool([&](Trace& t) { t.tensors[1].shape = shape; }),
                HasSubstr("kernels pool planes"));
  EXPECT_THAT(defect_of_pool([](Trace& t) { t.tensors[2].dtype = DType::UInt8; }),
              HasSubstr("is uint8; kernels need int64"));
  EXPECT_THAT(defect_of_pool([](Trace& t) { t.ops[0].outputs = 1; }), HasSubstr("second output"));
}

TEST(KernelLimits, NumbersAreNoIndicesAndIndicesNoNumbers) {
  TraceBuilder b("test", "", {});
  const TensorId ids = b.input("ids", {4}, DType::UInt8);
  const TensorId table = b.parameter("table", {9, 2});
  Trace trace = b.finish(b.embedding("embed", ids, table));
  EXPECT_EQ(kernel_defect(trace, trace.ops[0]), "'ids' is uint8; kernels need int64");
  trace.tensors[index(ids)].dtype = DType::Int64;
  EXPECT_EQ(kernel_defect(trace, trace.ops[0]), "");
  trace.tensors[index(table)].dtype = DType::Int64;
  EXPECT_THAT(kernel_defect(trace, trace.ops[0]), HasSubstr("need a floating-point number"));
}

TEST(KernelLimits, ANormNeedsItsWeight) {
  Trace trace = build_trace(small_vit(), {.batch = 2});
  const auto norm = std::ranges::find(trace.ops, OpKind::LayerNorm, &Op::kind);
  ASSERT_NE(norm, trace.ops.end());
  EXPECT_EQ(kernel_defect(trace, *norm), "");
  norm->inputs = 1;
  EXPECT_EQ(kernel_defect(trace, *norm), "it has no weight; kernels need one");
}

TEST(KernelLimits, WhatIsMovedKeepsItsDtype) {
  TraceBuilder b("test", "", {});
  const TensorId x = b.parameter("x", {2, 4});
  Trace trace = b.finish(b.copy("move", x, {8}));
  EXPECT_EQ(kernel_defect(trace, trace.ops[0]), "");
  trace.tensors[1].dtype = DType::Float16;
  EXPECT_EQ(kernel_defect(trace, trace.ops[0]),
            "'x' is float32; kernels need float16 for all that it moves");
}

TEST(KernelLimits, AMeanIsOverTheAxesBetweenTheFirstAndTheLast) {
  TraceBuilder b("test", "", {});
  const TensorId x = b.parameter("x", {2, 6, 4});
  Trace trace = b.finish(b.mean_pool("mean", x, {2, 4}));
  EXPECT_EQ(kernel_defect(trace, trace.ops[0]), "");
  trace.tensors[1].shape = {4, 2};
  EXPECT_EQ(kernel_defect(trace, trace.ops[0]), "kernels pool [b, ..., c] to [b, c]");
}

}  // namespace
}  // namespace tidemark::profiler::kernel_limits_test
