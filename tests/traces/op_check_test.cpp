// Each way to damage an op of a sound trace is named as a defect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/traces/small_trace.h"

namespace tidemark::op_check_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> defects_after(void (*damage)(Trace&)) {
  Trace trace = small_trace();
  damage(trace);
  return check(trace);
}

TensorId& input_of(Trace& trace, std::size_t op, std::size_t input) {
  return trace.operands[trace.ops[op].first_operand + input];
}
TensorId& output_of(Trace& trace, std::size_t op, std::size_t output) {
  return trace.operands[trace.ops[op].first_operand + trace.ops[op].inputs + output];
}

TEST(OpCheck, InputsExist) {
  EXPECT_THAT(defects_after([](Trace& t) { input_of(t, 4, 1) = TensorId{39}; }),
              ElementsAre("/ops/4/inputs/1: found tensor number 39; need one below 39"));
}

TEST(OpCheck, InputsAreMadeEarlier) {
  EXPECT_THAT(defects_after([](Trace& t) { input_of(t, 0, 0) = tensor_named(t, "b0.add2"); }),
              ElementsAre("/ops/0/inputs/0: 'b0.add2' is read before /ops/5 makes it; need it "
                          "earlier"));
}

TEST(OpCheck, AnOpDoesNotReadItsOwnOutput) {
  EXPECT_THAT(defects_after([](Trace& t) { input_of(t, 3, 1) = tensor_named(t, "b0.add1"); }),
              ElementsAre("/ops/3/inputs/1: 'b0.add1' is read before /ops/3 makes it; need it "
                          "earlier"));
}

TEST(OpCheck, InputsThatNobodyMakesAreExternal) {
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[1].category = Category::Unknown; }),
              ElementsAre("/ops/15/inputs/1: no op makes 'targets'; need an earlier output, a "
                          "parameter or an input"));
}

TEST(OpCheck, OutputsExist) {
  EXPECT_THAT(defects_after([](Trace& t) { output_of(t, 15, 1) = no_tensor; }),
              ElementsAre("/ops/15/outputs/1: found tensor number 4294967295; need one below 39"));
}

TEST(OpCheck, ATensorIsMadeOnce) {
  EXPECT_THAT(defects_after([](Trace& t) { output_of(t, 11, 0) = tensor_named(t, "b0.add2"); }),
              Contains("/ops/11/outputs/0: /ops/5 has made 'b0.add2' already; need a tensor of its "
                       "own"));
  EXPECT_THAT(defects_after([](Trace& t) { output_of(t, 0, 2) = tensor_named(t, "b0.norm.mean"); }),
              ElementsAre("/ops/0/outputs/2: /ops/0 has made 'b0.norm.mean' already; need a tensor "
                          "of its own"));
}

TEST(OpCheck, WhatIsMadeIsNoParameter) {
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[10].category = Category::Input; }),
              ElementsAre("/ops/2/outputs/0: 'b0.drop' is a tensor of category input; need one "
                          "that ops make"));
}

TEST(OpCheck, AViewSharesTheStorageOfItsInput) {
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[32].storage = TensorId{32}; }),
              ElementsAre("/ops/12/outputs/0: 'flat' does not share the storage of in0; need that "
                          "for a view"));
}

TEST(OpCheck, AResultInPlaceSharesTheStorageOfAnInput) {
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[12].storage = tensor_named(t, "b0.drop"); }),
              IsEmpty());
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[12].storage = tensor_named(t, "b0.norm"); }),
              ElementsAre("/ops/3/outputs/0: 'b0.add1' shares a storage that no input has; need "
                          "its own"));
}

TEST(OpCheck, ShapesFitTheKind) {
  EXPECT_THAT(defects_after([](Trace& t) {
                t.tensors[7].shape = {4, 5};
              }),
              ElementsAre("/ops/1: linear 'b0.fc': in1 is [4, 5]; need [out, in] beside in0 [2, 3, "
                          "4]"));
}

TEST(OpCheck, OperandsHaveABitEach) {
  Trace trace = small_trace();
  Op concat{.name = "concat", .kind = OpKind::Concat, .inputs = 17, .outputs = 1};
  concat.first_operand = static_cast<std::uint32_t>(trace.operands.size());
  concat.first_attribute = static_cast<std::uint32_t>(trace.attributes.size());
  trace.operands.insert(trace.operands.end(), 17, TensorId{0});
  trace.operands.push_back(TensorId{39});
  trace.tensors.push_back({.name = "concat", .shape = {2, 51, 4}, .storage = TensorId{39}});
  trace.ops.push_back(concat);
  EXPECT_THAT(check(trace), ElementsAre("/ops/16/inputs: found 17; need at most 16"));
  trace.ops.back().outputs = 0;
  EXPECT_THAT(check(trace), ElementsAre("/ops/16/inputs: found 17; need at most 16",
                                        "/ops/16/outputs: found 0; need 1 to 16",
                                        "/ops: 1 operands belong to no op; need none"));
}

TEST(OpCheck, PoolsAreFilledInOrder) {
  EXPECT_THAT(
      defects_after([](Trace& t) { t.ops[5].first_operand -= 3; }),
      Contains("/ops/5: has operands 17 to 20 of 58; need them from 20, where the op before "
               "ends"));
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[8].first_attribute = 0; }),
              Contains("/ops/8: has attributes 0 to 1 of 4; need them from 3, where the op before "
                       "ends"));
}

TEST(OpCheck, PoolsAreNotLeft) {
  EXPECT_THAT(defects_after([](Trace& t) {
                t.ops[15].first_operand = std::numeric_limits<std::uint32_t>::max();
              }),
              Contains("/ops/15: has operands 4294967295 to 4294967299 of 58; need them from 54, "
                       "where the op before ends"));
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[15].attributes = 65535; }),
              ElementsAre("/ops/15: has attributes 4 to 65539 of 4; need them from 4, where the op "
                          "before ends"));
  EXPECT_THAT(defects_after([](Trace& t) { t.attributes.resize(6); }),
              ElementsAre("/ops: 2 attributes belong to no op; need none"));
}

TEST(OpCheck, AttributesAreFiniteAndGivenOnce) {
  EXPECT_THAT(defects_after([](Trace& t) {
                t.attributes[0].value = std::numeric_limits<double>::infinity();
              }),
              ElementsAre("/ops/0/attributes/epsilon: found inf; need a finite number"));
  EXPECT_THAT(defects_after([](Trace& t) {
                t.attributes.push_back({AttributeKey::Factor, 1});
                t.attributes.push_back({AttributeKey::Factor, 2});
                t.ops[15].attributes = 2;
              }),
              ElementsAre("/ops/15/attributes/factor: found it twice; need it once"));
}

TEST(OpCheck, OnlyOperandsAreKept) {
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[12].also_keeps = input_bit(0) | output_bit(0); }),
              IsEmpty());
  EXPECT_THAT(
      defects_after([](Trace& t) { t.ops[12].also_keeps = input_bit(3) | output_bit(15); }),
      ElementsAre("/ops/12/also_keeps: found in3; need an operand that the op has (inputs: 1)",
                  "/ops/12/also_keeps: found out15; need an operand that the op has (outputs: 1)"));
}

TEST(OpCheck, RandomOpsHaveKeysOfTheirOwn) {
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[2].rng_key = 0; }),
              ElementsAre("/ops/2/rng_key: found none; dropout is random and needs a key from 1"));
  EXPECT_THAT(
      defects_after([](Trace& t) { t.ops[8].rng_key = t.ops[2].rng_key; }),
      ElementsAre("/ops/8/rng_key: 3 is the key of /ops/2, too; need other random numbers"));
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[0].rng_key = (1ull << 53) + 1; }),
              ElementsAre("/ops/0/rng_key: found 9007199254740993; need a number up to 2^53"));
}

TEST(OpCheck, OpsKnowTheirBlock) {
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[4].block = 1; }),
              ElementsAre("/ops/4/block: found 'b1'; need 'b0', as a block is one run of ops"));
  EXPECT_THAT(
      defects_after([](Trace& t) { t.ops[13].block = 1; }),
      ElementsAre("/ops/13/block: found 'b1'; need no block, as a block is one run of ops"));
  EXPECT_THAT(defects_after([](Trace& t) {
                t.blocks[1].end = OpId{6};
                t.ops[4].block = 2;
              }),
              Contains("/ops/4/block: found block 2; need one below 2, or no block"));
}

TEST(OpCheck, PartsAreInsideBlocks) {
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[13].part = Part::G; }),
              ElementsAre("/ops/13/part: found a part, but no block; need both or none"));
}

TEST(OpCheck, APartHasOneResidualAdd) {
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[5].part = Part::F; }),
              ElementsAre("/ops/5/residual: this part of 'b0' has its residual add already; need "
                          "one per part"));
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[1].residual = true; }),
              ElementsAre("/ops/1/residual: found it on linear; need an add",
                          "/ops/3/residual: this part of 'b0' has its residual add already; need "
                          "one per part"));
}

}  // namespace
}  // namespace tidemark::op_check_test
