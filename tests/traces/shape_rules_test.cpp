// Each kind of op with operands that fit, and with operands that do not.
#include "traces/shape_rules.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace tidemark::shape_rules_test {
namespace {

using enum OpKind;

struct Operand {
  Operand(std::initializer_list<std::int64_t> dims, DType type = DType::Float32)
      : shape(dims), dtype(type) {}
  Shape shape;
  DType dtype;
};

Operand int64s(std::initializer_list<std::int64_t> dims) { return {dims, DType::Int64}; }
Operand bytes(std::initializer_list<std::int64_t> dims) { return {dims, DType::UInt8}; }

struct Example {
  OpKind kind;
  std::vector<Operand> inputs, outputs;
  std::string defect = {};
  std::vector<Attribute> attributes = {};
};

void PrintTo(const Example& example, std::ostream* out) {
  *out << to_string(example.kind);
  for (const auto* list : {&example.inputs, &example.outputs})
    for (const Operand& operand : *list) *out << ' ' << to_text(operand.shape);
}

std::string defect_of(const Example& example) {
  Trace trace;
  Op op{.name = "op", .kind = example.kind};
  for (const auto* list : {&example.inputs, &example.outputs})
    for (const Operand& operand : *list) {
      const auto id = static_cast<TensorId>(trace.tensors.size());
      trace.tensors.push_back(
          {.name = "x", .shape = operand.shape, .dtype = operand.dtype, .storage = id});
      trace.operands.push_back(id);
    }
  op.inputs = static_cast<std::uint16_t>(example.inputs.size());
  op.outputs = static_cast<std::uint16_t>(example.outputs.size());
  trace.attributes = example.attributes;
  op.attributes = static_cast<std::uint16_t>(example.attributes.size());
  return shape_defect(trace, op);
}

class ShapeRule : public testing::TestWithParam<Example> {};

TEST_P(ShapeRule, Judges) { EXPECT_EQ(defect_of(GetParam()), GetParam().defect); }

std::string name_of(const testing::TestParamInfo<Example>& info) {
  return std::string(to_string(info.param.kind)) + "_" + std::to_string(info.index);
}

const Attribute stride2{AttributeKey::Stride, 2}, padding1{AttributeKey::Padding, 1};
const Attribute groups2{AttributeKey::Groups, 2}, half{AttributeKey::Stride, 0.5};

INSTANTIATE_TEST_SUITE_P(
    Accepts, ShapeRule,
    testing::Values(
        Example{Linear, {{2, 3, 8}, {5, 8}}, {{2, 3, 5}}},
        Example{Linear, {{8}, {5, 8}, {5}}, {{5}}},  //
        Example{MatMul, {{2, 4, 3, 8}, {2, 4, 8, 5}}, {{2, 4, 3, 5}}},
        Example{MatMul, {{2, 4, 3, 8}, {8, 5}}, {{2, 4, 3, 5}}},
        // (7 + 2·1 − 3) / 2 + 1 = 4
        Example{Conv2d,
                {{2, 4, 7, 7}, {6, 2, 3, 3}, {6}},
                {{2, 6, 4, 4}},
                "",
                {stride2, padding1, groups2}},
        Example{FlashAttention, {{2, 4, 3, 8}, {2, 2, 5, 8}, {2, 2, 5, 6}}, {{2, 4, 3, 6}}},
        Example{FlashAttention,
                {{2, 4, 3, 8}, {2, 4, 3, 8}, {2, 4, 3, 8}, {4, 3, 3}},
                {{2, 4, 3, 8}, {2, 4, 3}}},
        Example{LayerNorm, {{2, 3, 8}, {8}, {8}}, {{2, 3, 8}, {2, 3, 1}, {2, 3, 1}}},
        Example{LayerNorm, {{2, 8}}, {{2, 8}}},
        Example{RmsNorm, {{2, 8}, {8}}, {{2, 8}, {2, 1}, {2, 8}}},
        Example{MsLayerNorm, {{2, 8}}, {{2, 8}, {2, 1}}},
        Example{MsRmsNorm, {{2, 8}}, {{2, 8}, {2, 1}}},  //
        Example{Gelu, {{2, 8}}, {{2, 8}}}, Example{GeluComposed, {{2}}, {{2}, {2}, {2}, {2}}},
        // 9 elements of 2 bits are 3 bytes
        Example{ReGelu2, {{3, 3}}, {{3, 3}, bytes({3})}},
        Example{ReSilu2, {{4, 3}}, {{4, 3}, bytes({3, 1})}},
        Example{Add, {{2, 3, 8}, {8}}, {{2, 3, 8}}}, Example{Mul, {{2, 1}, {1, 8}}, {{2, 8}}},
        // two windows per image, three images
        Example{Add, {{6, 4, 5, 5}, {2, 1, 5, 5}}, {{6, 4, 5, 5}}},
        Example{Scale, {{2, 8}}, {{2, 8}, {{}, DType::Float64}}},
        Example{Average, {{2, 8}, {2, 8}, {2, 8}}, {{2, 8}}},
        Example{Dropout, {{2, 8}}, {{2, 8}, {{2, 8}, DType::Bool}}},
        Example{DropPath, {{2, 3, 8}}, {{2, 3, 8}, {2, 1, 1}}},
        Example{Rope, {{2, 4, 3, 8}, {3, 8}, {3, 8}}, {{2, 4, 3, 8}}},
        Example{Rope, {{2, 4, 3, 8}, {3, 4}, {3, 4}}, {{2, 4, 3, 8}}},
        Example{View, {{2, 3, 8}}, {{6, 8}}}, Example{Select, {{2, 3, 8}}, {{2, 8}}},
        Example{Split, {{2, 9}}, {{2, 3}, {2, 3}, {2, 3}}}, Example{Copy, {{2, 3}}, {{3, 2}}},
        Example{Copy, {{2, 3, 5}}, {{2, 2, 5}}},  // the logits of all but the last token
        Example{Concat, {{2, 3, 8}, {2, 4, 8}}, {{2, 7, 8}}},
        Example{Concat, {{1, 1, 8}, {2, 4, 8}}, {{2, 5, 8}}},  // one class token for all images
        Example{RepeatHeads, {{2, 2, 3, 8}}, {{2, 6, 3, 8}}},
        Example{Embedding, {int64s({2, 3}), {10, 8}}, {{2, 3, 8}}},
        Example{MeanPool, {{2, 3, 8}}, {{2, 8}}},
        Example{MaxPool, {{2, 8, 4, 4}}, {{2, 8, 2, 2}, int64s({2, 8, 2, 2})}},
        Example{NllLoss, {{2, 5}, int64s({2})}, {{}, {}}},
        Example{NllLoss, {{2, 3, 5}, int64s({2, 3})}, {{}}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Counts, ShapeRule,
    testing::Values(Example{Linear, {{2, 8}}, {{2, 5}}, "found 1 inputs; need 2 to 3"},
                    Example{Add, {{2}, {2}, {2}}, {{2}}, "found 3 inputs; need 2"},
                    Example{Gelu, {{2}}, {{2}, {2}}, "found 2 outputs; need 1"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    MatrixProducts, ShapeRule,
    testing::Values(
        Example{Linear, {{}, {5, 8}}, {{5}}, "in0 is []; need at least one dimension"},
        Example{
            Linear, {{2, 8}, {8, 5}}, {{2, 5}}, "in1 is [8, 5]; need [out, in] beside in0 [2, 8]"},
        Example{Linear, {{2, 8}, {5, 8}, {8}}, {{2, 5}}, "in2 is [8]; need [5] beside in0 [2, 8]"},
        Example{
            Linear, {{2, 8}, {5, 8}}, {{2, 8}}, "out0 is [2, 8]; need [2, 5] beside in0 [2, 8]"},
        Example{MatMul, {{8}, {8, 5}}, {{5}}, "in0 is [8]; need [..., m, k]"},
        Example{MatMul,
                {{3, 8}, {5, 8}},
                {{3, 5}},
                "in1 is [5, 8]; need [..., k, n] beside in0 [3, 8]"},
        Example{MatMul,
                {{3, 8}, {8, 5}},
                {{5, 3}},
                "out0 is [5, 3]; need [..., m, n] beside in0 [3, 8]"},
        Example{MatMul,
                {{2, 3, 8}, {8, 5}},
                {{4, 3, 5}},
                "out0 is [4, 3, 5]; need the batch dimensions of both inputs beside in0 [2, 3, 8]"},
        Example{Conv2d,
                {{2, 4, 7}, {6, 4, 3, 3}},
                {{2, 6, 5, 5}},
                "in0 is [2, 4, 7]; need [batch, in, height, width], and whole stride, padding and "
                "groups"},
        Example{Conv2d,
                {{2, 4, 7, 7}, {6, 4, 3, 3}},
                {{2, 6, 5, 5}},
                "in0 is [2, 4, 7, 7]; need [batch, in, height, width], and whole stride, padding "
                "and groups",
                {half}},
        Example{Conv2d,
                {{2, 4, 7, 7}, {6, 4, 3, 3}},
                {{2, 6, 5, 5}},
                "in1 is [6, 4, 3, 3]; need [out, in / groups, kernel, kernel] beside in0 [2, 4, 7, "
                "7]",
                {groups2}},
        Example{Conv2d,
                {{2, 4, 7, 7}, {6, 4, 3, 3}},
                {{2, 6, 7, 7}},
                "out0 is [2, 6, 7, 7]; need [batch, out, height, width] with (n + 2·padding − "
                "kernel) / stride + 1 for n beside in0 [2, 4, 7, 7]"},
        Example{
            FlashAttention,
            {{2, 4, 3, 8}, {2, 3, 3, 8}, {2, 3, 3, 8}},
            {{2, 4, 3, 8}},
            "in1 is [2, 3, 3, 8]; need [batch, key heads, keys, d] with heads a multiple of key "
            "heads beside in0 [2, 4, 3, 8]"},
        Example{FlashAttention,
                {{2, 4, 3, 8}, {2, 4, 3, 8}, {2, 4, 5, 8}},
                {{2, 4, 3, 8}},
                "in2 is [2, 4, 5, 8]; need the same heads and keys as in1 beside in0 [2, 4, 3, 8]"},
        Example{FlashAttention,
                {{2, 4, 3, 8}, {2, 4, 3, 8}, {2, 4, 3, 8}, {3, 4}},
                {{2, 4, 3, 8}},
                "in3 is [3, 4]; need a bias for [batch, heads, tokens, keys] beside in0 [2, 4, 3, "
                "8]"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    RowsAndElements, ShapeRule,
    testing::Values(
        Example{LayerNorm, {{2, 8}, {2}}, {{2, 8}}, "in1 is [2]; need [8] beside in0 [2, 8]"},
        Example{LayerNorm, {{2, 8}}, {{2, 8}, {2}}, "out1 is [2]; need [2, 1] beside in0 [2, 8]"},
        Example{RmsNorm,
                {{2, 8}},
                {{2, 8}, {2, 1}, {2, 1}},
                "out2 is [2, 1]; need [2, 8] beside in0 [2, 8]"},
        Example{Tanh, {{2, 8}}, {{8, 2}}, "out0 is [8, 2]; need [2, 8] beside in0 [2, 8]"},
        Example{Sigmoid, {{2, 8}}, {{8, 2}}, "out0 is [8, 2]; need [2, 8] beside in0 [2, 8]"},
        Example{Relu, {{2, 8}}, {{8, 2}}, "out0 is [8, 2]; need [2, 8] beside in0 [2, 8]"},
        Example{ReGelu2,
                {{3, 3}},
                {{3, 3}, bytes({2})},
                "out1 is [2]; need uint8 with two bits per element, four to a byte, beside in0 [3, "
                "3]"},
        Example{Add,
                {{2, 3}, {2}},
                {{2, 3}},
                "out0 is [2, 3]; need what in1 [2] broadcasts to beside in0 [2, 3]"},
        Example{Add,
                {{1, 3}, {3}},
                {{2, 3}},  // nobody has the 2
                "out0 is [2, 3]; need what in1 [3] broadcasts to beside in0 [1, 3]"},
        Example{Scale, {{2}}, {{2}, {1}}, "out1 is [1]; need [] beside in0 [2]"},
        Example{Average, {{2}, {3}}, {{2}}, "in1 is [3]; need [2] beside in0 [2]"},
        Example{DropPath,
                {{2, 3}},
                {{2, 3}, {3}},
                "out1 is [3]; need one element per sample beside in0 [2, 3]"},
        Example{Rope,
                {{2, 4, 3, 8}, {5, 8}, {5, 8}},
                {{2, 4, 3, 8}},
                "in1 is [5, 8]; need a table [..., tokens, d] or [..., tokens, d/2] beside in0 [2, "
                "4, 3, 8]"},
        Example{Rope,
                {{3, 8}, {3, 8}, {3, 4}},
                {{3, 8}},
                "in2 is [3, 4]; need [3, 8] beside in0 [3, 8]"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    DataMovement, ShapeRule,
    testing::Values(
        Example{View, {{2, 3}}, {{5}}, "out0 is [5]; need as many elements beside in0 [2, 3]"},
        Example{Select,
                {{2, 3}},
                {{7}},
                "out0 is [7]; need at most as many elements beside in0 [2, 3]"},
        Example{Split,
                {{2, 3}},
                {{2}, {2}},
                "out0 is [2]; need outputs with as many elements together beside in0 [2, 3]"},
        Example{Concat,
                {{2, 3}, {2, 4}},
                {{2, 8}},
                "out0 is [2, 8]; need the inputs joined along one axis beside in0 [2, 3]"},
        Example{RepeatHeads,
                {{2, 2, 3}},
                {{2, 3, 3}},
                "out0 is [2, 3, 3]; need the same shape with a multiple of the heads, dimension 1, "
                "beside in0 [2, 2, 3]"},
        Example{Embedding,
                {{2, 3}, {10, 8}},
                {{2, 3, 8}},
                "in0 is [2, 3]; need indices, of an integer dtype"},
        Example{Embedding,
                {int64s({2, 3}), {10}},
                {{2, 3}},
                "in1 is [10]; need a table [rows, width] beside in0 [2, 3]"},
        Example{Embedding,
                {int64s({2, 3}), {10, 8}},
                {{2, 3, 10}},
                "out0 is [2, 3, 10]; need a row of the table in1 per index beside in0 [2, 3]"},
        Example{
            MeanPool,
            {{2, 3}},
            {{4}},
            "out0 is [4]; need a number of elements that divides the input's beside in0 [2, 3]"},
        Example{
            MaxPool, {{2, 4}}, {{2, 2}, int64s({4})}, "out1 is [4]; need [2, 2] beside in0 [2, 4]"},
        Example{NllLoss, {{2, 5}, int64s({5})}, {{}}, "in1 is [5]; need [2] beside in0 [2, 5]"},
        Example{NllLoss,
                {{2, 5}, {2}},
                {{}},
                "in1 is [2]; need class numbers, of an integer dtype beside in0 [2, 5]"},
        Example{NllLoss, {{2, 5}, int64s({2})}, {{2}}, "out0 is [2]; need [] beside in0 [2, 5]"}),
    name_of);

TEST(OperandCounts, AreThoseOfTheKind) {
  EXPECT_EQ(input_counts(Linear).fewest, 2u);
  EXPECT_EQ(input_counts(Linear).most, 3u);
  EXPECT_EQ(output_counts(Split).most, max_operands);
}

TEST(OperandLabel, CountsInputsAndOutputsApart) {
  EXPECT_EQ(operand_label(0), "in0");
  EXPECT_EQ(operand_label(15), "in15");
  EXPECT_EQ(operand_label(16), "out0");
  EXPECT_EQ(operand_label(31), "out15");
}

}  // namespace
}  // namespace tidemark::shape_rules_test
