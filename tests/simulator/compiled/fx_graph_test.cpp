// Which calls a compiler sees of an op, and which of their values the backward reads.
#include "simulator/compiled/fx_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/small_trace.h"
#include "traces/models/titan.h"
#include "traces/presets.h"

namespace tidemark::fx_graph_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// x [2, 8] is trained; `build` makes a scalar of it.
template <typename Build>
Trace trace_of(Build build, Precision precision = Precision::Fp32) {
  StepOptions options;
  options.precision = precision;
  TraceBuilder b("small", "toy", options);
  const TensorId x = b.parameter("x", {2, 8});
  return b.finish(b.mean("loss", build(b, x)));
}

/// What the values are called that the backward of the op reads, in order.
std::vector<std::string> read_by(const Trace& trace, std::string_view op, bool by_kernel) {
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  std::vector<std::string> names;
  for (const BackwardRead& read : graph.backward) {
    if (read.op != op_named(trace, op) || read.by_kernel != by_kernel) continue;
    const FxNode& call = graph[base_of(graph, read.value)];
    names.emplace_back(call.tensor != no_tensor ? std::string_view(trace[call.tensor].name)
                                                : call.suffix);
  }
  return names;
}

std::size_t calls_named(const FxGraph& graph, std::string_view suffix) {
  return static_cast<std::size_t>(std::ranges::count(graph.calls, suffix, &FxNode::suffix));
}

// The quotient of 1/σ and the width needs nothing of the backward.
TEST(FxGraph, OfALayerNormHasTheNormalizedInput) {
  const Trace trace =
      trace_of([](TraceBuilder& b, TensorId x) { return b.layer_norm("norm", x, 1e-5); });
  EXPECT_THAT(read_by(trace, "norm", false), ElementsAre("normalized", "div", "norm.weight"));
  EXPECT_THAT(read_by(trace, "norm", true), IsEmpty());
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  const auto later = std::ranges::count(graph.calls, true, &FxNode::in_backward);
  EXPECT_EQ(later, 1);
}

// Blocks whose attention and MLP stand side by side have two norms of one x.
TEST(FxGraph, OfTwoNormsOfOneInputDividesOnceInTheBackward) {
  const Trace trace = trace_of([](TraceBuilder& b, TensorId x) {
    return b.add("sum", b.layer_norm("a", x, 1e-5), b.layer_norm("b", x, 1e-5));
  });
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  EXPECT_EQ(calls_named(graph, "normalized"), 1u);
  EXPECT_EQ(calls_named(graph, "div"), 1u);
  EXPECT_EQ(std::ranges::count(graph.calls, true, &FxNode::in_backward), 1);
}

// A call that nobody reads would be a kernel of its own, and a reader that gives no gradient.
TEST(FxGraph, HasNoCallsThatNobodyReads) {
  for (const char* model : {"gpt2", "gemma-2b", "llama-3.2-1b", "bert-base", "vit-b-16"}) {
    StepOptions step{.batch = 2, .framework = "transformers-4.57"};
    if (!sees_images(find_model(model).config)) step.sequence = 24;
    const Trace trace = build_trace(find_model(model), step);
    const FxGraph graph = fx_graph_of(trace, whole_step(trace));
    std::vector<bool> is_read(graph.calls.size());
    for (const FxNode& call : graph.calls)
      for (const FxId read : call.reads) is_read[index(read)] = true;
    for (const BackwardRead& read : graph.backward) is_read[index(read.value)] = true;
    for (std::size_t i = 0; i < graph.calls.size(); ++i) {
      const FxNode& call = graph.calls[i];
      if (call.kind != FxKind::Pointwise) continue;
      EXPECT_TRUE(is_read[i] || call.tensor != no_tensor)
          << model << " " << trace[call.op].name << " " << call.suffix;
    }
  }
}

// Rounded for a call in 16 bits that widens its operands again: Inductor leaves the rounding out.
TEST(FxGraph, OfACastOfACastCastsOnce) {
  const Trace trace = trace_of([](TraceBuilder& b, TensorId x) {
    const TensorId narrow = b.cast("narrow", b.relu("h", x), DType::BFloat16);
    return b.relu("y", b.cast("wide", narrow, DType::Float32));
  });
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  const FxNode& wide = graph[graph.by_tensor[index(tensor_named(trace, "wide"))]];
  EXPECT_EQ(wide.kind, FxKind::View);
  EXPECT_EQ(graph[wide.reads[0]].dtype, DType::Float32);
}

TEST(FxGraph, OfACastThatOthersReadTooKeepsIt) {
  const Trace trace = trace_of([](TraceBuilder& b, TensorId x) {
    const TensorId narrow = b.cast("narrow", b.relu("h", x), DType::BFloat16);
    const TensorId wide = b.relu("y", b.cast("wide", narrow, DType::Float32));
    return b.add("sum", wide, b.relu("z", narrow));
  });
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  EXPECT_EQ(graph[graph.by_tensor[index(tensor_named(trace, "wide"))]].kind, FxKind::Pointwise);
  EXPECT_EQ(graph[graph.by_tensor[index(tensor_named(trace, "narrow"))]].dtype, DType::BFloat16);
}

// SiLU's backward widens its input by itself: a second reader, when Inductor looks.
TEST(FxGraph, OfACastThatABackwardCastsAgainKeepsIt) {
  const Trace trace = trace_of([](TraceBuilder& b, TensorId x) {
    return b.silu("y", b.cast("narrow", b.relu("h", x), DType::BFloat16));
  });
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  EXPECT_EQ(graph[graph.by_tensor[index(tensor_named(trace, "narrow"))]].dtype, DType::BFloat16);
}

// An attention that is composed in fp32, under autocast: the backward's products are in bf16.
TEST(FxGraph, OfAProductInFp32UnderAutocastReadsCastsInTheBackward) {
  const auto build = [](TraceBuilder& b, TensorId x) {
    return b.product("product", b.view("a", x, {1, 2, 8}), b.view("b", x, {1, 8, 2}));
  };
  const Trace amp = trace_of(build, Precision::AmpBf16);
  EXPECT_THAT(read_by(amp, "product", true),
              ElementsAre("convert_element_type", "convert_element_type"));
  const FxGraph graph = fx_graph_of(amp, whole_step(amp));
  EXPECT_EQ(std::ranges::count(graph.calls, true, &FxNode::in_backward), 2);
  EXPECT_THAT(read_by(trace_of(build), "product", true), ElementsAre("x", "x"));
}

// In 16 bits the backward of a softmax reads what was rounded, which a product reads as well.
TEST(FxGraph, OfASoftmaxIsReadAsItWasMade) {
  const Trace trace = trace_of(
      [](TraceBuilder& b, TensorId x) { return b.softmax("weights", x, false); }, Precision::Bf16);
  EXPECT_THAT(read_by(trace, "weights", false), ElementsAre("weights"));
}

TEST(FxGraph, OfAReluIsReadWhereItIsNotPositive) {
  const Trace trace = trace_of([](TraceBuilder& b, TensorId x) { return b.relu("h", x); });
  EXPECT_THAT(read_by(trace, "h", false), ElementsAre("le"));
}

TEST(FxGraph, OfADroppedPathHasANumberPerSample) {
  const Trace trace = trace_of([](TraceBuilder& b, TensorId x) {
    return b.drop_path("path", b.view("rows", x, {1, 2, 8}), 0.5);
  });
  EXPECT_THAT(read_by(trace, "path", false), ElementsAre("path.mask"));
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  EXPECT_EQ(size(graph[graph.by_tensor[index(tensor_named(trace, "path.mask"))]]), Bytes{4});
}

// A sum of bf16 and fp32 is fp32, and cast to where it is added.
TEST(FxGraph, AddsInPlaceInTheWiderDtype) {
  const Trace trace = trace_of([](TraceBuilder& b, TensorId x) {
    const TensorId narrow = b.relu("h", b.cast("narrow", x, DType::BFloat16));
    return b.add_in_place("sum", narrow, x);
  });
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  const FxNode& sum = graph[graph.by_tensor[index(tensor_named(trace, "sum"))]];
  EXPECT_EQ(sum.dtype, DType::BFloat16);
  const FxNode& cast = graph[sum.reads[0]];
  EXPECT_EQ(graph[cast.reads[0]].dtype, DType::Float32);
  EXPECT_TRUE(graph[cast.reads[0]].is_sum);
}

// The logits, which models return beside the loss.
TEST(FxGraph, ReturnsWhatIsScoredAndTheLoss) {
  const Model model = find_model("gpt2");
  const Trace trace = build_trace(model, {.batch = 1, .sequence = 8});
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  ASSERT_EQ(graph.returned.size(), 2u);
  EXPECT_EQ(trace[graph[graph.returned[0]].tensor].name, "lm_head");
  EXPECT_EQ(graph[graph.returned[1]].tensor, trace.loss);
}

// A block reads what is made in front of it: its input, and the rotary table that a whole model's
// graph makes itself. It returns what the next one reads.
TEST(FxGraph, OfABlockIsGivenAndReturnsItsEnds) {
  const Model model = find_model("llama-3.2-1b");
  const Trace trace = build_trace(model, {.batch = 1, .sequence = 8, .precision = Precision::Bf16});
  const FxRegion region = region_of(trace, trace.blocks[1]);
  EXPECT_EQ(region.outputs, std::vector{trace.blocks[2].input});
  const FxGraph graph = fx_graph_of(trace, region);
  ASSERT_EQ(graph.returned.size(), 1u);
  EXPECT_EQ(graph[graph.returned[0]].tensor, trace.blocks[2].input);
  std::vector<std::string> given;
  for (const FxNode& call : graph.calls)
    if (call.kind == FxKind::Input && trace[call.tensor].category != Category::Parameter)
      given.push_back(std::string(trace[call.tensor].name));
  EXPECT_EQ(given,
            (std::vector<std::string>{trace[trace.blocks[1].input].name, "rope.cos", "rope.sin"}));
}

// bf16 is normalized in fp32; y is rounded.
TEST(FxGraph, OfSixteenBitsCasts) {
  const Trace trace = trace_of(
      [](TraceBuilder& b, TensorId x) { return b.layer_norm("norm", x, 1e-5); }, Precision::Bf16);
  EXPECT_EQ(calls_named(fx_graph_of(trace, whole_step(trace)), "convert_element_type"), 2u);
}

TEST(FxGraph, OfALinearIsAProductWhoseGradientsReadBothOperands) {
  const Trace trace =
      trace_of([](TraceBuilder& b, TensorId x) { return b.linear("fc", b.relu("h", x), 5); });
  EXPECT_THAT(read_by(trace, "fc", true), UnorderedElementsAre("h", "fc.weight"));
}

// Nobody asks for the gradient of a frozen weight, which is what reads x.
TEST(FxGraph, OfAFrozenLinearReadsTheWeightAlone) {
  StepOptions options;
  options.tuning = parse_tuning("frozen:fc*");
  TraceBuilder b("small", "toy", options);
  const TensorId x = b.parameter("x", {2, 8});
  const Trace trace = b.finish(b.mean("loss", b.linear("fc", x, 5)));
  EXPECT_THAT(read_by(trace, "fc", true), ElementsAre("fc.weight"));
}

// Two casts of one tensor are one call, and so is what is made of them.
TEST(FxGraph, MakesAlikeCallsOnce) {
  const Trace trace = trace_of([](TraceBuilder& b, TensorId x) {
    const TensorId a = b.relu("a", b.cast("one", x, DType::BFloat16));
    return b.add("sum", a, b.relu("b", b.cast("two", x, DType::BFloat16)));
  });
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  EXPECT_EQ(graph.by_tensor[index(tensor_named(trace, "a"))],
            graph.by_tensor[index(tensor_named(trace, "b"))]);
}

TEST(FxGraph, DrawsEachMaskAnew) {
  const Trace trace = trace_of([](TraceBuilder& b, TensorId x) {
    return b.add("sum", b.dropout("a", x, 0.5), b.dropout("b", x, 0.5));
  });
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  EXPECT_EQ(std::ranges::count(graph.calls, true, &FxNode::is_random), 2);
  EXPECT_NE(graph.by_tensor[index(tensor_named(trace, "a.mask"))],
            graph.by_tensor[index(tensor_named(trace, "b.mask"))]);
}

// Of a loss the user knows the head that it belongs to.
TEST(FxGraph, OfALossThatNobodyKnowsIsRefusedAsTheHead) {
  TraceBuilder b("small", "toy", {});
  const TensorId mean = b.mean("mean", b.parameter("x", {2, 8}));
  const Trace trace = b.finish(b.average("loss", std::array{mean, mean}));
  try {
    fx_graph_of(trace, whole_step(trace));
    FAIL() << "was taken";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(
                                  "torch.compile makes of this head of small, whose loss is 'loss' "
                                  "(average), is not known here"));
  }
}

TEST(FxGraph, OfWhatNobodyKnowsIsRefusedWithAWayOut) {
  const Trace trace = trace_of([](TraceBuilder& b, TensorId x) {
    const OutputSpec output{"", {2, 8}, DType::Float32};
    return b.opaque("odd", std::array{x}, std::span(&output, 1), {.operation = "aten::odd"});
  });
  try {
    fx_graph_of(trace, whole_step(trace));
    FAIL() << "was taken";
  } catch (const UsageError& error) {
    EXPECT_THAT(
        error.what(),
        testing::HasSubstr("torch.compile makes of 'odd' (aten::odd) of small is not known here"));
    EXPECT_THAT(error.what(), testing::HasSubstr("tidemark capture"));
  }
}

// ATen's product, whose operands lie in memory; the backward turns by the table.
TEST(FxGraph, OfTurnedPairsIsAKernelThatReadsTheTableAgain) {
  const Trace trace = trace_of([](TraceBuilder& b, TensorId x) {
    return turn_pairs(b, "turned", b.silu("silu", x), b.input("waves", {2, 8}, DType::Float32));
  });
  EXPECT_THAT(read_by(trace, "turned", true), ElementsAre("waves"));
  EXPECT_THAT(read_by(trace, "turned", false), IsEmpty());
  const FxGraph graph = fx_graph_of(trace, whole_step(trace));
  const FxId made = graph.by_tensor[index(trace.outputs(trace[op_named(trace, "turned")])[0])];
  EXPECT_EQ(graph[made].kind, FxKind::Kernel);
}

}  // namespace
}  // namespace tidemark::fx_graph_test
