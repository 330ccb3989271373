// The builder casts, adapts, freezes and keeps as frameworks do, and refuses what is too large.
#include "traces/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/traces/small_trace.h"

namespace tidemark::trace_builder_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The ops before the loss.
std::vector<std::string> op_names(const Trace& trace) {
  std::vector<std::string> names;
  for (const Op& op : trace.ops)
    if (!op.name.starts_with("loss")) names.push_back(op.name);
  return names;
}

/// Builds with the options and a loss that is the sum of nothing else: cross-entropy of a head.
template <typename Build>
Trace built(const StepOptions& step, Build build) {
  TraceBuilder b("test", "", step);
  const TensorId x = b.input("x", {2, 4}, DType::Float32);
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  return b.finish(b.cross_entropy("loss", build(b, x), targets));
}

StepOptions with_tuning(std::string_view text) { return {.tuning = parse_tuning(text)}; }

TEST(Globs, MatchWholeNames) {
  EXPECT_TRUE(matches_glob("embed.weight", "embed.weight"));
  EXPECT_TRUE(matches_glob("embed.weight", "embed*"));
  EXPECT_TRUE(matches_glob("embed", "embed*"));
  EXPECT_TRUE(matches_glob("blocks.0.fc.weight", "blocks.*.weight"));
  EXPECT_TRUE(matches_glob("abcabd", "*ab*d"));  // the first "ab" is the wrong one
  EXPECT_TRUE(matches_glob("", "**"));
  EXPECT_FALSE(matches_glob("embed.weight", "embed"));
  EXPECT_FALSE(matches_glob("embed", "embed.*"));
  EXPECT_FALSE(matches_glob("x.embed", "embed*"));
  EXPECT_FALSE(matches_glob("abc", "*ab"));
  EXPECT_FALSE(matches_glob("a", ""));
  EXPECT_TRUE(matches_glob("blocks.7.q", "blocks.?.[qv]"));  // as a shell has them
  EXPECT_FALSE(matches_glob("blocks.17.q", "blocks.?.[qv]"));
}

// Exponential backtracking would take longer than the sun.
TEST(Globs, ManyStarsTakeNoTime) {
  std::string glob;
  for (int i = 0; i < 100; ++i) glob += "*a";
  EXPECT_FALSE(matches_glob(std::string(1000, 'a') + "b", glob));
}

TEST(Autocast, CastsActivationsAtEachUseAndWeightsOnce) {
  const Trace trace = built({.precision = Precision::AmpBf16}, [](TraceBuilder& b, TensorId x) {
    const TensorId weight = b.parameter("w", {4, 4});
    b.linear_with("first", x, weight);
    return b.linear_with("second", x, weight);
  });
  EXPECT_THAT(op_names(trace), ElementsAre("x.cast", "w.cast", "first", "x.cast2", "second"));
  EXPECT_EQ(trace[tensor_named(trace, "second")].dtype, DType::BFloat16);
  EXPECT_EQ(trace[tensor_named(trace, "w")].dtype, DType::Float32);
  EXPECT_EQ(trace[trace.loss].dtype, DType::Float32);
  EXPECT_THAT(check(trace), IsEmpty());
}

// Autocast's cache is for weights that are trained. What else it casts goes with its last reader.
TEST(Autocast, CastsFrozenWeightsAtEachUse) {
  StepOptions step = with_tuning("frozen:w");
  step.precision = Precision::AmpBf16;
  const Trace trace = built(step, [](TraceBuilder& b, TensorId x) {
    const TensorId frozen = b.parameter("w", {4, 4}), trained = b.parameter("v", {4, 4});
    const TensorId y = b.linear_with("first", b.linear_with("in", x, trained), frozen);
    return b.linear_with("second", y, frozen);
  });
  EXPECT_THAT(op_names(trace),
              ElementsAre("x.cast", "v.cast", "in", "w.cast", "first", "w.cast2", "second"));
  EXPECT_EQ(trace[tensor_named(trace, "v.cast")].held_until,
            static_cast<OpId>(trace.ops.size() - 1));
  EXPECT_EQ(trace[tensor_named(trace, "w.cast")].held_until, no_op);
}

// Nor is there anything in it for what is no leaf: Falcon's blocks multiply by weight.T.
TEST(Autocast, CastsViewsOfWeightsAtEachUse) {
  const auto held_until = [](const char* family, const char* name) {
    TraceBuilder b("toy", family, {.precision = Precision::AmpBf16});
    TensorId x = b.input("x", {2, 4}, DType::Float32);
    b.begin_block("block", x, 0);
    x = b.linear("fc", x, 4);
    b.end_block();
    const Trace trace = b.finish(b.mean("loss", b.linear("head", x, 4)));
    return trace[tensor_named(trace, name)].held_until;
  };
  EXPECT_EQ(held_until("falcon", "fc.weight.cast"), no_op);
  EXPECT_NE(held_until("falcon", "head.weight.cast"), no_op);
  EXPECT_NE(held_until("toy", "fc.weight.cast"), no_op);
}

TEST(Autocast, NormsWriteFp32AndOtherPrecisionsCastNothing) {
  const auto norm = [](TraceBuilder& b, TensorId x) {
    return b.layer_norm("norm", b.linear("fc", x, 4), 1e-5);
  };
  const Trace amp = built({.precision = Precision::AmpFp16}, norm);
  EXPECT_EQ(amp[tensor_named(amp, "fc")].dtype, DType::Float16);
  EXPECT_EQ(amp[tensor_named(amp, "norm")].dtype, DType::Float32);
  EXPECT_THAT(op_names(built({}, norm)), ElementsAre("fc", "norm"));
}

TEST(Autocast, PapersCountNoCasts) {
  const Trace trace = built({.precision = Precision::AmpFp16, .framework = "paper"},
                            [](TraceBuilder& b, TensorId x) { return b.linear("fc", x, 3); });
  EXPECT_THAT(op_names(trace), ElementsAre("fc"));
}

// y + B(A(x)), A [r, in], B [out, r]; only the adapters are trained.
TEST(Lora, PutsAdaptersBesideItsTargets) {
  const auto two = [](TraceBuilder& b, TensorId x) {
    return b.linear("m.fc", b.linear("m.q", x, 6), 3);
  };
  const Trace trace = built(with_tuning("lora:r=2,targets=q"), two);
  EXPECT_THAT(op_names(trace), ElementsAre("m.q", "m.q.lora_a", "m.q.lora_b", "m.q.lora_scale",
                                           "m.q.lora_add", "m.fc"));
  EXPECT_EQ(trace[tensor_named(trace, "m.q.lora_a.weight")].shape, (Shape{2, 4}));
  EXPECT_EQ(trace[tensor_named(trace, "m.q.lora_b.weight")].shape, (Shape{6, 2}));
  for (const Tensor& tensor : trace.tensors)
    EXPECT_EQ(tensor.trainable, tensor.name.find(".lora_") != std::string::npos &&
                                    tensor.category == Category::Parameter)
        << tensor.name;
  EXPECT_THAT(check(trace), IsEmpty());
}

TEST(Lora, AdaptersAreFp32OnASixteenBitBaseUnlessTheyAreNot) {
  const auto one = [](TraceBuilder& b, TensorId x) {
    return b.linear("m.q", b.linear("fc", x, 4), 6);
  };
  StepOptions step = with_tuning("lora:r=2,dropout=0.5,targets=q");
  step.precision = Precision::Bf16;
  const Trace trace = built(step, one);
  const auto dtype = [](const Trace& of, std::string_view name) {
    return of[tensor_named(of, name)].dtype;
  };
  EXPECT_EQ(dtype(trace, "m.q.lora_a.weight"), DType::Float32);
  EXPECT_EQ(dtype(trace, "m.q.lora_cast"), DType::Float32);
  EXPECT_EQ(dtype(trace, "m.q.lora_drop"), DType::Float32);
  EXPECT_EQ(dtype(trace, "m.q.lora_add"), DType::Float32);
  EXPECT_EQ(dtype(trace, "m.q.lora_result"), DType::BFloat16);
  EXPECT_THAT(check(trace), IsEmpty());

  step.tuning = parse_tuning("lora:r=2,dtype=base,targets=q");
  const Trace as_base = built(step, one);
  EXPECT_EQ(dtype(as_base, "m.q.lora_a.weight"), DType::BFloat16);
  EXPECT_THAT(op_names(as_base), testing::Not(testing::Contains("m.q.lora_cast")));
}

TEST(Lora, FaFreezesTheFirstProjection) {
  const Trace trace = built(with_tuning("lora-fa:r=2,targets=all"),
                            [](TraceBuilder& b, TensorId x) { return b.linear("fc", x, 3); });
  EXPECT_FALSE(trace[tensor_named(trace, "fc.lora_a.weight")].trainable);
  EXPECT_TRUE(trace[tensor_named(trace, "fc.lora_b.weight")].trainable);
}

// What it adds to y needs y: m/‖W + BA‖ is trained through it.
TEST(Lora, DoraHasAMagnitudePerOutputAndKeepsTheProduct) {
  StepOptions step = with_tuning("lora:r=2,dora,targets=q");
  step.precision = Precision::Bf16;
  const Trace trace = built(
      step, [](TraceBuilder& b, TensorId x) { return b.linear("m.q", b.linear("fc", x, 4), 6); });
  EXPECT_EQ(trace[tensor_named(trace, "m.q.lora_magnitude.weight")].shape, Shape{6});
  EXPECT_TRUE(trace[tensor_named(trace, "m.q.lora_magnitude.weight")].trainable);
  EXPECT_EQ(trace[tensor_named(trace, "m.q.dora_norm.eye")].shape, (Shape{4, 4}));
  EXPECT_EQ(trace[tensor_named(trace, "m.q.dora_norm.weight")].dtype, DType::Float32);
  EXPECT_EQ(trace[tensor_named(trace, "m.q.lora_result")].dtype, DType::BFloat16);
  EXPECT_THAT(op_names(trace), testing::Contains("m.q.dora_unbiased"));
  EXPECT_THAT(check(trace), IsEmpty());

  step.tuning.dropout = 0.5;
  const Trace dropped = built(
      step, [](TraceBuilder& b, TensorId x) { return b.linear("m.q", b.linear("fc", x, 4), 6); });
  EXPECT_THAT(op_names(dropped), testing::Contains("m.q.dora_base"));
  EXPECT_THAT(op_names(dropped), testing::Not(testing::Contains("m.q.dora_unbiased")));
  EXPECT_THAT(check(dropped), IsEmpty());
}

// peft's modules_to_save: the original stays, frozen, beside the copy.
TEST(Lora, TrainsCopiesOfWholeModules) {
  const auto one = [](TraceBuilder& b, TensorId x) {
    return b.linear("score", b.linear("fc", x, 4), 3, true, ParameterRole::Head);
  };
  const Trace trace = built(with_tuning("lora:targets=q,save=fc,score"), one);
  for (const char* copy : {"fc.weight", "fc.bias", "score.weight", "score.bias"}) {
    const TensorId original = tensor_named(trace, name_of_original(copy));
    EXPECT_TRUE(trace[tensor_named(trace, copy)].trainable) << copy;
    EXPECT_FALSE(trace[original].trainable) << copy;
    EXPECT_EQ(trace[original].shape, trace[tensor_named(trace, copy)].shape);
  }
}

// Of a tied pair, a copy of one ends the sharing, and the other goes on with the original.
TEST(Lora, CopiesEndTheSharingOfATable) {
  const auto tied = [](TraceBuilder& b, TensorId x) {
    const TensorId table = b.parameter("embed.weight", {5, 4});
    return b.linear_with("lm_head", b.add("sum", x, b.select("row", table, {1, 4})),
                         b.tied("lm_head", table));
  };
  const auto table_of_head = [&](const char* tuning) {
    const Trace trace = built(with_tuning(tuning), tied);
    return std::string(
        trace[trace.inputs(*std::ranges::find(trace.ops, "lm_head", &Op::name))[1]].name);
  };
  EXPECT_EQ(table_of_head("lora"), "embed.weight");
  EXPECT_EQ(table_of_head("lora:save=lm_head"), "lm_head.weight");
  EXPECT_EQ(table_of_head("lora:save=embed_tokens"), "embed.original.weight");
  EXPECT_EQ(table_of_head("lora:save=wte,lm_head"), "lm_head.weight");
}

TEST(Lora, TrainsTheHead) {
  const Trace trace = built(with_tuning("lora"), [](TraceBuilder& b, TensorId x) {
    return b.linear("head", b.linear("fc", x, 4), 3, true, ParameterRole::Head);
  });
  EXPECT_TRUE(trace[tensor_named(trace, "head.weight")].trainable);
  EXPECT_FALSE(trace[tensor_named(trace, "fc.weight")].trainable);
}

// The gradient of a frozen linear's input needs the weight only: x is not saved.
TEST(Frozen, LinearsDoNotSaveTheirInput) {
  const auto two = [](TraceBuilder& b, TensorId x) {
    return b.linear("b", b.linear("a", x, 4), 3);
  };
  const Trace trace = built(with_tuning("frozen:b*"), two);
  const auto required = requires_gradient(trace);
  EXPECT_TRUE(required[index(tensor_named(trace, "a"))]);
  EXPECT_FALSE(required[index(tensor_named(trace, "b.weight"))]);
  EXPECT_FALSE(required[index(tensor_named(trace, "targets"))]);
  const auto saved = [&](std::string_view name) {
    const Op& op = trace[op_named(trace, name)];
    return saved_operands(trace, op, inputs_with_gradient(trace, op, required));
  };
  EXPECT_EQ(saved("a"), input_bit(0));  // x itself needs no gradient, so no weight
  EXPECT_EQ(saved("b"), input_bit(1));
}

TEST(TraceBuilder, KeepsWhatTheFrameworkKeeps) {
  const auto body = [](TraceBuilder& b, TensorId x) {
    return b.scale("scale", b.softmax("softmax", b.linear("fc", x, 4)), 0.5);
  };
  const Trace new_torch = built({}, body);
  EXPECT_EQ(new_torch[op_named(new_torch, "softmax")].also_keeps, 0u);
  EXPECT_EQ(new_torch[op_named(new_torch, "scale")].also_keeps, output_bit(1));
  const Trace old_torch = built({.framework = "torch-1.10"}, body);
  EXPECT_EQ(old_torch[op_named(old_torch, "softmax")].also_keeps, input_bit(0));
}

TEST(TraceBuilder, LeavesOutDropoutThatDropsNothing) {
  const auto body = [](TraceBuilder& b, TensorId x) {
    return b.dropout("drop", b.linear("fc", x, 3), b.dropout_probability(0.1));
  };
  EXPECT_THAT(op_names(built({}, body)), ElementsAre("fc", "drop"));
  EXPECT_THAT(op_names(built({.dropout = 0.0}, body)), ElementsAre("fc"));
}

TEST(TraceBuilder, ViewsShareTheStorageOfTheirRoot) {
  TraceBuilder b("test", "", {});
  const TensorId x = b.input("x", {2, 4}, DType::Float32);
  const TensorId row = b.select("row", b.view("flat", x, {8}), {4});
  EXPECT_EQ(b[row].storage, x);
  EXPECT_EQ(b[row].category, Category::Input);
}

// A gate per row in front of the rows, as Qwen2-MoE's code of transformers 5 writes it.
TEST(TraceBuilder, MakesProductsAsWideAsTheWiderFactor) {
  TraceBuilder b("test", "", {});
  const TensorId gate = b.input("gate", {6, 1}, DType::Float32);
  const TensorId rows = b.input("rows", {6, 4}, DType::Float32);
  EXPECT_EQ(b.shape(b.mul("weighted", gate, rows)), (Shape{6, 4}));
  EXPECT_EQ(b.shape(b.mul("the same", rows, gate)), (Shape{6, 4}));
}

TEST(TraceBuilder, HoldsTheLocalVariablesOfAFunctionUntilItsLastOp) {
  const Trace trace = built({}, [](TraceBuilder& b, TensorId x) {
    b.begin_function();
    const TensorId y = b.local(b.linear("inside", x, 4));
    const TensorId z = b.linear("last", y, 4);
    b.end_function();
    return b.linear("outside", z, 3);
  });
  EXPECT_EQ(trace[tensor_named(trace, "inside")].held_until, op_named(trace, "last"));
  EXPECT_EQ(trace[tensor_named(trace, "last")].held_until, no_op);
}

// y = linear(x), in a loop: what it was is there until the next one is made.
TEST(TraceBuilder, HoldsAVariableOfALoopUntilItIsWrittenAnew) {
  const Trace trace = built({}, [](TraceBuilder& b, TensorId x) {
    b.begin_function();
    TensorId y = no_tensor;
    for (const char* name : {"0", "1"}) {
      y = b.next_local(y, b.linear(name, x, 4));
      b.tanh(std::string("read_") + name, y);
    }
    const TensorId z = b.linear("last", y, 4);
    b.end_function();
    return b.linear("outside", z, 3);
  });
  EXPECT_EQ(trace[tensor_named(trace, "0")].held_until, op_named(trace, "1"));
  EXPECT_EQ(trace[tensor_named(trace, "1")].held_until, op_named(trace, "last"));
}

TEST(TraceBuilder, HoldsWhatAFunctionReturnsUntilItsCallerIsDone) {
  const Trace trace = built({}, [](TraceBuilder& b, TensorId x) {
    b.begin_function();
    b.begin_function();
    const TensorId y = b.local(b.linear("returned", x, 4));
    b.local_of_caller(y);
    const TensorId z = b.local(b.linear("inside", y, 4));
    b.end_function();
    const TensorId last = b.linear("last", z, 4);
    b.end_function();
    return b.linear("outside", last, 3);
  });
  EXPECT_EQ(trace[tensor_named(trace, "returned")].held_until, op_named(trace, "last"));
  EXPECT_EQ(trace[tensor_named(trace, "inside")].held_until, op_named(trace, "inside"));
}

TEST(Tuning, IsRefusedIfItNamesNothing) {
  const auto one_linear = [](const char* tuning) {
    require_used_options(built({.tuning = parse_tuning(tuning)}, [](TraceBuilder& b, TensorId x) {
      return b.linear("mlp.fc1", x, 4);
    }));
  };
  EXPECT_NO_THROW(one_linear("lora:targets=fc1"));
  EXPECT_NO_THROW(one_linear("frozen:mlp.*"));
  EXPECT_THROW(one_linear("lora:targets=fc7"), UsageError);
  EXPECT_THROW(one_linear("frozen:mpl.*"), UsageError);
}

TEST(TraceBuilder, RefusesStepsThatNobodyCanCount) {
  EXPECT_THROW(TraceBuilder("test", "", {.batch = 0}), UsageError);
  TraceBuilder b("test", "", {});
  EXPECT_THROW(b.input("x", {std::int64_t{1} << 32, std::int64_t{1} << 32}, DType::Bool),
               InputError);
  const TensorId x = b.input("x", {std::int64_t{1} << 57}, DType::Float32);  // 2^59 bytes
  EXPECT_THROW(b.finish(x), InputError);
}

}  // namespace
}  // namespace tidemark::trace_builder_test
