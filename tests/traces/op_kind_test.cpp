// The table of op kinds agrees with itself, and what is saved follows from who wants a gradient.
#include "traces/op_kind.h"

#include <gtest/gtest.h>

#include <set>

#include "traces/shape_rules.h"
#include "traces/trace.h"

namespace tidemark::op_kind_test {
namespace {

TEST(OpRows, StandInTheOrderOfTheEnumAndHaveTheirOwnNames) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < op_rows.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(op_rows[i].value), i);
    EXPECT_TRUE(names.insert(op_rows[i].name).second) << op_rows[i].name;
    EXPECT_EQ(to_string(op_rows[i].value), op_rows[i].name);
  }
}

// A need for an operand that no op of the kind can have would silently never be kept.
TEST(OpRows, NeedOnlyOperandsThatCanExist) {
  for (const OpRow& row : op_rows) {
    const std::size_t inputs = input_counts(row.value).most;
    const std::size_t outputs = output_counts(row.value).most;
    for (const GradientRule& rule : row.gradients)
      for (int bit = 0; bit < 32; ++bit) {
        const auto position = static_cast<std::size_t>(bit % 16);
        EXPECT_TRUE((rule.needs >> bit & 1) == 0 || position < (bit < 16 ? inputs : outputs))
            << row.name << ' ' << operand_label(bit);
      }
  }
}

TEST(OpRows, HaveNeedsOnlyWhereThereIsAGradient) {
  for (const OpRow& row : op_rows)
    for (const GradientRule& rule : row.gradients)
      EXPECT_TRUE(rule.flow != Flow::None || rule.needs == 0) << row.name;
}

TEST(OpRows, ViewsLaunchNothing) {
  for (const OpRow& row : op_rows) EXPECT_EQ(is_view(row.value), row.kernels == 0) << row.name;
}

// input 0 = output 0 − input 1 holds for a sum only.
TEST(OpRows, OnlyAddInverts) {
  for (const OpRow& row : op_rows)
    EXPECT_EQ(row.inverts_input0, row.value == OpKind::Add) << row.name;
}

TEST(GradientRules, TheLastOneRepeats) {
  const Op attention{.name = "a", .kind = OpKind::FlashAttention, .inputs = 4, .outputs = 2};
  EXPECT_EQ(gradient_rule({}, attention, 3).needs, gradient_rule({}, attention, 2).needs);
}

Op linear() { return {.name = "fc", .kind = OpKind::Linear, .inputs = 3, .outputs = 1}; }

// dx needs the weight, dw needs x, db needs neither.
TEST(SavedOperands, FollowFromWhoRequiresAGradient) {
  EXPECT_EQ(saved_operands({}, linear(), 0b000), 0u);
  EXPECT_EQ(saved_operands({}, linear(), 0b001), input_bit(1));
  EXPECT_EQ(saved_operands({}, linear(), 0b010), input_bit(0));
  EXPECT_EQ(saved_operands({}, linear(), 0b100), 0u);
  EXPECT_EQ(saved_operands({}, linear(), 0b111), input_bit(0) | input_bit(1));
}

TEST(SavedOperands, IncludeWhatTheFrameworkKeepsIfThereIsABackward) {
  Op softmax{.name = "p", .kind = OpKind::Softmax, .inputs = 1, .outputs = 1};
  softmax.also_keeps = input_bit(0);
  EXPECT_EQ(saved_operands({}, softmax, 1), input_bit(0) | output_bit(0));
  EXPECT_EQ(saved_operands({}, softmax, 0), 0u);
}

TEST(SavedOperands, ExistInTheOp) {
  const Op without_statistics{.name = "n", .kind = OpKind::LayerNorm, .inputs = 3, .outputs = 1};
  EXPECT_EQ(saved_operands({}, without_statistics, 0b111), input_bit(0) | input_bit(1));
  Op full{.name = "c", .kind = OpKind::Concat, .inputs = max_operands, .outputs = max_operands};
  full.also_keeps = ~Operands{0};
  EXPECT_EQ(saved_operands({}, full, 1), ~Operands{0});
}

}  // namespace
}  // namespace tidemark::op_kind_test
