// Bytes charged = operands read and written, for every kind of op. The expectations are written
// from what kernels read (kernels/*/*.h; PyTorch's derivative formulas where code composes an op).
#include "simulator/cost/traffic.h"

#include <gtest/gtest.h>

#include <sstream>

#include "simulator/lower.h"
#include "tests/simulator/step_facts.h"

namespace tidemark::traffic_test {
namespace {

struct Spec {
  Shape shape;
  DType dtype = DType::Float32;
};

/// x0 … inputs, y0 … outputs, g0 … gradients of outputs, d0 … gradients of inputs, each once for a
/// read or a write; "8*y0": as many bytes more, of intermediates; a number: bytes. Backward kernels
/// are parted by "|".
struct Case {
  OpKind kind;
  std::vector<Spec> inputs, outputs;
  std::string forward, backward;
  std::string note = {};
};

constexpr DType half = DType::Float16, whole = DType::Int64, byte = DType::UInt8;
const Shape x{2, 3, 8}, per_row{2, 3, 1}, c{8};

const std::vector<Case>& cases() {
  using enum OpKind;
  static const std::vector<Case> all = {
      {Linear, {{x}, {{16, 8}}, {{16}}}, {{{2, 3, 16}}}, "x0 x1 x2 y0", "g0 x1 d0|g0 x0 d1|g0 d2"},
      {MatMul, {{x}, {{2, 8, 5}}}, {{{2, 3, 5}}}, "x0 x1 y0", "g0 x1 d0|g0 x0 d1"},
      {Conv2d,
       {{{2, 4, 8, 8}}, {{6, 4, 3, 3}}, {{6}}},
       {{{2, 6, 6, 6}}},
       "x0 x1 x2 y0",
       "g0 x1 d0|g0 x0 d1|g0 d2"},
      // Its first kernel multiplies output and gradient, so that the gradient is read twice.
      {FlashAttention,
       {{{2, 2, 4, 8}}, {{2, 2, 6, 8}}, {{2, 2, 6, 8}}, {{2, 2, 4, 6}}},
       {{{2, 2, 4, 8}}, {{2, 2, 4}}},
       "x0 x1 x2 x3 y0 y1",
       "g0 y0 g0 x0 x1 x2 x3 y1 d0 d1 d2 d3"},
      {LayerNorm,
       {{x}, {c}, {c}},
       {{x}, {per_row}, {per_row}},
       "x0 x1 x2 y0 y1 y2",
       "g0 x0 x1 y1 y2 d0|g0 x0 y1 y2 d1 d2"},
      {LayerNorm,
       {{x, half}, {c}, {c}},
       {{x}, {per_row}, {per_row}},
       "x0 x1 x2 y0 y1 y2",
       "g0 x0 x1 y1 y2 d0|g0 x0 y1 y2 d1 d2",
       "under autocast"},
      {RmsNorm,
       {{x}, {c}},
       {{x}, {per_row}, {x}},
       "x0 x1 y0 y1 y2 4*y0",
       "g0 x0 x1 y1 d0 16*y0|g0 y2 d1 2*y0",
       "composed"},
      {RmsNorm, {{x}, {c}}, {{x}, {per_row}}, "x0 x1 y0 y1", "g0 x0 x1 y1 d0|g0 x0 y1 d1", "fused"},
      {MsLayerNorm, {{x}}, {{x}, {per_row}}, "x0 y0 y1", "g0 y0 y1 d0"},
      {MsRmsNorm, {{x}}, {{x}, {per_row}}, "x0 y0 y1", "g0 y0 y1 d0"},
      {Gelu, {{x}}, {{x}}, "x0 y0", "g0 x0 d0"},
      // forward 10 reads and 8 writes, backward 17 and 11
      {GeluComposed, {{x}}, {{x}, {x}, {x}, {x}}, "18*x0", "28*x0"},
      {Silu, {{x}}, {{x}}, "x0 y0", "g0 x0 d0"},
      {Tanh, {{x}}, {{x}}, "x0 y0", "g0 y0 d0"},
      {Sigmoid, {{x}}, {{x}}, "x0 y0", "g0 y0 d0"},
      {Relu, {{x}}, {{x}}, "x0 y0", "g0 y0 d0"},
      {ReGelu2, {{x}}, {{x}, {{12}, byte}}, "x0 y0 y1", "g0 y1 d0"},
      {ReSilu2, {{x}}, {{x}, {{12}, byte}}, "x0 y0 y1", "g0 y1 d0"},
      {Softmax, {{x}}, {{x}}, "x0 y0", "g0 y0 d0"},
      {LogSoftmax, {{x}}, {{x}}, "x0 y0", "g0 y0 d0"},
      {Add, {{x}, {c}}, {{x}}, "x0 x1 y0", "g0 d1", "that broadcasts"},
      {Mul, {{x}, {x}}, {{x}}, "x0 x1 y0", "g0 x1 d0|g0 x0 d1"},
      {Scale, {{x}}, {{x}, {{}, DType::Float64}}, "x0 y0 y1", "g0 d0"},
      {Average, {{x}, {x}}, {{x}}, "x0 x1 y0 2*y0", "g0 d0 d1"},
      {Dropout, {{x}}, {{x}, {x, DType::Bool}}, "x0 y0 y1", "g0 y1 d0"},
      {DropPath, {{x}}, {{x}, {{2, 1, 1}}}, "x0 y0 y1 2*y0", "g0 y1 d0 2*y0"},
      {Cast, {{x}}, {{x, half}}, "x0 y0", "g0 d0"},
      {Rope, {{x}, {{3, 8}}, {{3, 8}}}, {{x}}, "x1 x2 10*x0", "x1 x2 15*x0"},
      {View, {{x}}, {{{6, 8}}}, "", ""},
      {Select, {{x}}, {{{2, 8}}}, "", "g0 d0 y0"},
      {Split, {{x}}, {{x}}, "", "g0 d0"},
      {Copy, {{x}}, {{{3, 2, 8}}}, "x0 y0", "g0 d0"},
      {Concat, {{x}, {x}}, {{{2, 3, 16}}}, "x0 x1 y0", ""},
      {RepeatHeads, {{{2, 2, 3, 4}}}, {{{2, 4, 3, 4}}}, "x0 y0", "g0 d0"},
      {Embedding, {{{5}, whole}, {{100, 8}}}, {{{5, 8}}}, "x0 y0 y0", "x0 g0 d1 y0"},
      {MeanPool, {{x}}, {{{2, 8}}}, "x0 y0", "g0 d0"},
      {MaxPool, {{{2, 4, 6, 6}}}, {{{2, 4, 3, 3}}, {{2, 4, 3, 3}, whole}}, "x0 y0 y1", "g0 y1 d0"},
      {Replicate, {{x}}, {{x}}, "", "g0 d0"},
      {AllReduce, {{x}}, {{x}}, "x0 y0", ""},
      {AllGather, {{x}}, {{{2, 6, 8}}}, "x0 y0", "g0 d0"},
      {ReduceScatter, {{{2, 6, 8}}}, {{x}}, "x0 y0", "g0 d0"},
      {Scatter, {{{2, 6, 8}}}, {{x}}, "x0 y0", "g0 d0"},
      {Receive, {{{}}}, {{x}}, "x0 y0", "g0 d0"},
      {Send, {{x}}, {{{}}}, "x0 y0", "g0 d0"},
      {VocabularyLoss,
       {{{6, 10}}, {{6}, whole}},
       {{{}}, {{6, 10}}, {{6}, DType::Bool}, {{6}, whole}},
       "x0 x1 y0 y1 y2 y3",
       "g0 y1 y2 y3 d0"},
      // one number of each of the six rows
      {NllLoss, {{{6, 10}}, {{6}, whole}}, {{{}}, {{}}}, "24 x1 y0 y1", "g0 x1 y1 d0"},
  };
  return all;
}

Trace trace_of(const Case& one) {
  Trace trace;
  const auto add = [&](const Spec& spec, Category category) {
    const auto id = static_cast<TensorId>(trace.tensors.size());
    trace.operands.push_back(id);
    trace.tensors.push_back({.name = trace.names.add("t" + std::to_string(index(id))),
                             .shape = spec.shape,
                             .dtype = spec.dtype,
                             .category = category,
                             .trainable = category == Category::Parameter,
                             .storage = id});
  };
  for (const Spec& spec : one.inputs)
    add(spec, is_floating(spec.dtype) ? Category::Parameter : Category::Input);
  for (const Spec& spec : one.outputs) add(spec, Category::Activation);
  trace.loss = static_cast<TensorId>(one.inputs.size());
  if (is_view(one.kind)) trace.tensors[index(trace.loss)].storage = TensorId{0};
  trace.ops.push_back({.name = "op",
                       .kind = one.kind,
                       .inputs = static_cast<std::uint16_t>(one.inputs.size()),
                       .outputs = static_cast<std::uint16_t>(one.outputs.size()),
                       .rng_key = row_of(one.kind).is_random ? 1u : 0u});
  return trace;
}

/// Of "g0 x1 d0".
double bytes_of(const Trace& trace, const std::string& text) {
  const Op& op = trace.ops[0];
  double sum = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t star = word.find('*');
    const double times = star == word.npos ? 1 : std::stod(word);
    if (star != word.npos) word.erase(0, star + 1);
    if (std::isdigit(word[0])) {
      sum += std::stod(word);
      continue;
    }
    const auto place = static_cast<std::size_t>(word[1] - '0');
    const bool is_input = word[0] == 'x' || word[0] == 'd';
    const TensorId tensor = is_input ? trace.inputs(op)[place] : trace.outputs(op)[place];
    sum += times * static_cast<double>(size(trace[tensor]).count);
  }
  return sum;
}

std::vector<double> backward_of(const Trace& trace) {
  const Schedule schedule = lower(trace, keep_everything(trace));
  std::vector<double> found;
  for (const Run& run : runs_of(schedule))
    if (run.task == Task::Backward)
      for (const GradientTraffic& one : Traffic(trace, derive_needs(trace)).backward(schedule, run))
        found.push_back(one.bytes);
  return found;
}

TEST(Traffic, OfAForwardIsWhatIsReadAndWritten) {
  for (const Case& one : cases()) {
    const Trace trace = trace_of(one);
    if (is_view(one.kind)) continue;  // nothing runs
    EXPECT_EQ(Traffic(trace, derive_needs(trace)).forward(trace.ops[0]),
              bytes_of(trace, one.forward))
        << to_string(one.kind) << ' ' << one.note;
  }
}

TEST(Traffic, OfABackwardIsWhatIsReadAndWritten) {
  for (const Case& one : cases()) {
    const Trace trace = trace_of(one);
    std::vector<double> expected;
    std::istringstream kernels(one.backward);
    for (std::string kernel; std::getline(kernels, kernel, '|');)
      expected.push_back(bytes_of(trace, kernel));
    EXPECT_EQ(backward_of(trace), expected) << to_string(one.kind) << ' ' << one.note;
  }
}

TEST(Traffic, IsExpectedOfEveryKind) {
  for (const OpRow& row : op_rows) {
    if (row.value == OpKind::Opaque) continue;  // by the op's own row: opaque_step_test.cpp
    EXPECT_NE(std::ranges::find(cases(), row.value, &Case::kind), cases().end()) << row.name;
  }
}

TEST(Traffic, OfAFrozenWeightIsNone) {
  for (const Case& one : cases()) {
    if (one.kind != OpKind::Linear && one.kind != OpKind::Mul) continue;
    Trace trace = trace_of(one);
    trace.tensors[1].trainable = false;
    for (std::size_t i = 2; i < one.inputs.size(); ++i) trace.tensors[i].trainable = false;
    EXPECT_EQ(backward_of(trace), std::vector{bytes_of(trace, "g0 x1 d0")}) << to_string(one.kind);
  }
}

// The first of two halves has no reader: only the second one's gradient is there to be read.
TEST(Traffic, OfASplitIsThatOfThePartsWithAGradient) {
  Case split{OpKind::Split, {{x}}, {{{2, 3, 4}}, {{2, 3, 4}}}, "", ""};
  const Trace trace = trace_of(split);
  EXPECT_EQ(backward_of(trace), std::vector{bytes_of(trace, "g0 d0")});
}

}  // namespace
}  // namespace tidemark::traffic_test
