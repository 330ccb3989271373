// Two equal blocks of a trace known by heart, and what makes an op of the second another.
#include "simulator/cost/alike_ops.h"

#include <gtest/gtest.h>

#include "tests/traces/small_trace.h"

namespace tidemark::alike_ops_test {
namespace {

constexpr std::size_t fc = 1, drop = 2, ops_of_block = 6;  // the second block's begin behind them

AlikeOps alike_ops(const Trace& trace) {
  const Needs needs = derive_needs(trace);
  return find_alike_ops(trace, needs, Traffic(trace, needs));
}

// The first block's input is the batch, which gets no gradient; so its first norm, and the add that
// passes it on, are alone.
TEST(AlikeOps, AreThoseAtTheSamePlaceOfEqualBlocks) {
  const Trace trace = small_trace();
  const AlikeOps alike = alike_ops(trace);
  ASSERT_EQ(alike.group.size(), trace.ops.size());
  for (const std::size_t op : {fc, drop, std::size_t{4}, std::size_t{5}})
    EXPECT_EQ(alike.group[ops_of_block + op], alike.group[op]) << trace.ops[op].name;
  for (const std::size_t op : {0, 3})
    EXPECT_NE(alike.group[ops_of_block + op], alike.group[op]) << trace.ops[op].name;
  EXPECT_EQ(alike.first.size(), trace.ops.size() - 4);
  for (std::size_t op = 0; op < trace.ops.size(); ++op)
    EXPECT_LE(index(alike.first[alike.group[op]]), op);
}

using Change = void (*)(Trace&, std::size_t op);

void expect_alone(const char* what, Change change, std::size_t op) {
  Trace trace = small_trace();
  ASSERT_EQ(alike_ops(trace).group[ops_of_block + op], alike_ops(trace).group[op]);
  change(trace, ops_of_block + op);
  const AlikeOps alike = alike_ops(trace);
  EXPECT_NE(alike.group[ops_of_block + op], alike.group[op]) << what;
}

Tensor& output_of(Trace& trace, std::size_t op) {
  return trace.tensors[index(trace.outputs(trace.ops[op])[0])];
}

TEST(AlikeOps, DifferByWhateverTheirCostDependsOn) {
  expect_alone(
      "kind", [](Trace& t, std::size_t op) { t.ops[op].kind = OpKind::DropPath; }, drop);
  expect_alone(
      "dtype", [](Trace& t, std::size_t op) { output_of(t, op).dtype = DType::Float16; }, fc);
  expect_alone(
      "shape",
      [](Trace& t, std::size_t op) {
        output_of(t, op).shape = {2, 3, 5};
      },
      fc);
  expect_alone(
      "attribute",
      [](Trace& t, std::size_t op) { t.attributes[t.ops[op].first_attribute].value = 0.5; }, drop);
  expect_alone(
      "gradient of the weight",
      [](Trace& t, std::size_t op) { t.tensors[index(t.inputs(t.ops[op])[1])].trainable = false; },
      fc);
  expect_alone(
      "number of inputs", [](Trace& t, std::size_t op) { --t.ops[op].inputs; }, drop);
  expect_alone(
      "what is saved", [](Trace& t, std::size_t op) { t.ops[op].also_keeps |= output_bit(0); }, fc);
}

TEST(AlikeOps, AreNoneWithoutBlocks) {
  Trace trace = small_trace();
  trace.blocks.clear();
  EXPECT_EQ(alike_ops(trace).first.size(), trace.ops.size());
}

// The second block has an op more, so that what follows is shifted and compared with another kind.
TEST(AlikeOps, EndWhereTheShorterBlockEnds) {
  Trace trace = small_trace();
  trace.blocks[0].end = OpId{3};
  const AlikeOps alike = alike_ops(trace);
  EXPECT_EQ(alike.group[ops_of_block + drop], alike.group[drop]);
  for (std::size_t op = 3; op < ops_of_block; ++op)
    EXPECT_NE(alike.group[ops_of_block + op], alike.group[op]);
}

}  // namespace
}  // namespace tidemark::alike_ops_test
