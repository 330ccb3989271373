// Small models keep the kernels' limits under each strategy, and damaged ops are refused.
#include "profiler/kernel_limits.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

#include "base/error.h"
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

// The same pooling with another window, in steps of 2 as before, and planes padded with infinities.
std::string defect_of_padding(double window, double padding, const Shape& pooled) {
  return defect_of_pool([&](Trace& t) {
    set_attribute(t, AttributeKey::Window, window);
    t.attributes.push_back({AttributeKey::Padding, padding});
    ++t.ops[0].attributes;
    t.tensors[1].shape = pooled;
    t.tensors[2].shape = pooled;
  });
}

TEST(KernelLimits, APoolingMayBePaddedByHalfItsWindow) {
  EXPECT_EQ(defect_of_padding(2, 0, {2, 3, 4, 4}), "");
  EXPECT_EQ(defect_of_padding(2, 1, {2, 3, 5, 5}), "");  // a window of padding and one element
  EXPECT_EQ(defect_of_padding(4, 2, {2, 3, 5, 5}), "");
  const std::string unsuitable = "its window, stride and padding do not suit its planes";
  EXPECT_EQ(defect_of_padding(2, 2, {2, 3, 6, 6}), unsuitable);  // a window of padding alone
  EXPECT_EQ(defect_of_padding(3, 2, {2, 3, 5, 5}), unsuitable);
  EXPECT_EQ(defect_of_padding(3, -1, {2, 3, 2, 2}), unsuitable);
}

TEST(KernelLimits, APoolingHasNoWindowLargerThanItsPaddedPlane) {
  const std::string other = "its window, stride and padding do not make that shape";
  EXPECT_EQ(defect_of_padding(8, 0, {2, 3, 1, 1}), "");   // the plane is one window
  EXPECT_EQ(defect_of_padding(16, 4, {2, 3, 1, 1}), "");  // as padded as it may be, and one window
  // (8 - 9) / 2 + 1 is 1, too: a window that reaches beyond is no window of that shape.
  EXPECT_EQ(defect_of_padding(9, 0, {2, 3, 1, 1}), other);
  EXPECT_EQ(defect_of_padding(2, 0, {2, 3, 4, 5}), other);
  EXPECT_EQ(defect_of_padding(2, 0, {2, 3, 3, 4}), other);
}

TEST(KernelLimits, AMeanIsOverTheAxesBetweenTheFirstAndTheLast) {
  TraceBuilder b("test", "", {});
  const TensorId x = b.parameter("x", {2, 6, 4});
  Trace trace = b.finish(b.mean_pool("mean", x, {2, 4}));
  EXPECT_EQ(kernel_defect(trace, trace.ops[0]), "");
  const auto defect_of = [&](const Shape& from, const Shape& to) {
    trace.tensors[0].shape = from;
    trace.tensors[1].shape = to;
    return kernel_defect(trace, trace.ops[0]);
  };
  const std::string refused = "kernels pool [b, ..., c] to [b, c]";
  EXPECT_EQ(defect_of({2, 6, 4}, {4, 2}), refused);
  EXPECT_EQ(defect_of({2, 6, 4}, {2, 6}), refused);
  EXPECT_EQ(defect_of({2, 6, 4}, {2, 1, 4}), refused);
  EXPECT_EQ(defect_of({2, 3, 2, 4}, {2, 4}), "");
  EXPECT_EQ(defect_of({2, 4}, {2, 4}), "");
  EXPECT_EQ(defect_of({4}, {4, 4}), refused);  // one axis is not the first and the last
}

// Six inputs and a result are what the CPU's loop has room for.
TEST(KernelLimits, AnAverageIsOfUpToSixTensors) {
  for (const std::size_t n : {1u, 6u, 7u}) {
    TraceBuilder b("test", "", {});
    std::vector<TensorId> x;
    for (std::size_t i = 0; i < n; ++i) x.push_back(b.parameter(fmt::format("x{}", i), {2}));
    const Trace trace = b.finish(b.average("average", x));
    EXPECT_EQ(kernel_defect(trace, trace.ops[0]),
              n <= 6 ? "" : "it averages 7 tensors; kernels do up to 6");
  }
}

// Both see their input with one axis more.
TEST(KernelLimits, HeadsAreRepeatedAndPathsDroppedOfUpToFiveAxes) {
  const Shape five{2, 1, 2, 2, 2}, six{2, 1, 1, 2, 2, 2};
  const std::string refused = "its input has 6 axes; kernels do up to 5";
  for (const Shape& shape : {five, six}) {
    TraceBuilder b("test", "", {});
    const TensorId x = b.parameter("x", shape);
    const Trace trace = b.finish(b.drop_path("path", b.repeat_heads("repeat", x, shape), 0.5));
    for (const Op& op : trace.ops)
      EXPECT_EQ(kernel_defect(trace, op), shape == five ? "" : refused) << op.name;
  }
}

TEST(KernelLimits, AnAttributeIsAWholeNumberOfADouble) {
  TraceBuilder b("test", "", {});
  Trace trace = b.finish(b.scale("scale", b.parameter("x", {2}), 0.5));
  const auto defect_of = [&](double factor) {
    trace.attributes.at(0).value = factor;
    return kernel_defect(trace, trace.ops[0]);
  };
  for (const double last : {0x1p53, -0x1p53}) EXPECT_EQ(defect_of(last), "") << last;
  for (const double more : {0x1p53 + 2, -0x1p53 - 2})
    EXPECT_THAT(defect_of(more), HasSubstr("is beyond 2^53")) << more;
}

TEST(KernelLimits, AConcatenationConvertsNumbersAndNothingElse) {
  TraceBuilder b("test", "", {});
  const std::vector<TensorId> parts = {b.parameter("token", {1, 4}), b.parameter("rest", {2, 4})};
  Trace trace = b.finish(b.concat("join", parts, {3, 4}));
  trace.tensors[0].dtype = DType::Float16;
  EXPECT_EQ(kernel_defect(trace, trace.ops[0]), "");
  trace.tensors[0].dtype = DType::Int64;
  EXPECT_EQ(kernel_defect(trace, trace.ops[0]),
            "'token' is int64; kernels need float32 for all that it moves");
}

TEST(KernelLimits, AnExchangeNeedsOtherRanks) {
  TraceBuilder b("test", "", {});
  Trace trace = b.finish(b.relu("sum", b.parameter("x", {2})));
  for (const OpKind kind :
       {OpKind::Replicate, OpKind::AllReduce, OpKind::AllGather, OpKind::ReduceScatter,
        OpKind::Scatter, OpKind::Receive, OpKind::Send, OpKind::VocabularyLoss}) {
    trace.ops[0].kind = kind;
    EXPECT_EQ(kernel_defect(trace, trace.ops[0]),
              "it exchanges something with other ranks, and a replay has none");
  }
}

TEST(KernelLimits, AReplayNamesTheFirstOpThatHasNoKernel) {
  TraceBuilder b("test", "", {});
  const TensorId x = b.view("seen", b.parameter("x", {2, 6}), {3, 4});
  Trace trace = b.finish(b.mean_pool("mean", b.mean_pool("first", x, {3, 4}), {3, 4}));
  EXPECT_NO_THROW(require_kernels(trace));
  for (Tensor& tensor : trace.tensors)
    if (tensor.shape == Shape{3, 4} && tensor.name != "seen") tensor.shape = {4, 3};
  try {
    require_kernels(trace);
    FAIL() << "it has kernels";
  } catch (const InputError& e) {
    EXPECT_STREQ(e.what(), "cannot replay forward of 'first': kernels pool [b, ..., c] to [b, c]");
  }
}

}  // namespace
}  // namespace tidemark::profiler::kernel_limits_test
