// Built ViTs are sound, and defects of step, loss and blocks are all listed in file order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/traces/small_trace.h"
#include "traces/models/model_config.h"

namespace tidemark::trace_check_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
using Damage = void (*)(Trace&);

std::vector<std::string> defects_after(Damage damage) {
  Trace trace = small_trace();
  damage(trace);
  return check(trace);
}

TEST(TraceCheck, SmallTraceIsSound) { EXPECT_THAT(check(small_trace()), IsEmpty()); }

// The builder's rules and the shape rules were written apart from each other.
TEST(TraceCheck, EveryVitIsSound) {
  const VitConfig small{.image = 8,
                        .patch = 4,
                        .width = 8,
                        .depth = 2,
                        .heads = 2,
                        .mlp = 16,
                        .classes = 3,
                        .dropout = 0.1,
                        .attention_dropout = 0.1,
                        .drop_path = 0.1};
  VitConfig pooled = small;
  pooled.prefix_tokens = 0;
  pooled.unpacking = Unpacking::Select;
  pooled.scales_query = false;
  for (const Framework& framework : frameworks())
    for (const auto& precision : precisions)
      for (const auto& attention : attentions)
        for (const char* tuning : {"full", "lora:r=2,targets=fc1,proj", "frozen:blocks.0.*"})
          for (const VitConfig& config : {small, pooled}) {
            const Trace trace = build_vit("small-vit", config,
                                          {.batch = 2,
                                           .precision = precision.value,
                                           .attention = attention.value,
                                           .tuning = parse_tuning(tuning),
                                           .framework = std::string(framework.name)});
            EXPECT_THAT(check(trace), IsEmpty()) << framework.name << ' ' << precision.name << ' '
                                                 << attention.name << ' ' << tuning;
          }
}

// Three separate projections and three LoRA adapters cast the same tensor under autocast.
TEST(TraceCheck, NamesAreUniqueWhereATensorIsCastTwice) {
  const VitConfig config{.image = 8,
                         .patch = 4,
                         .width = 8,
                         .depth = 1,
                         .heads = 2,
                         .mlp = 16,
                         .classes = 3,
                         .packed_qkv = false};
  for (const char* tuning : {"full", "lora:targets=all"})
    EXPECT_THAT(check(build_vit("small-vit", config,
                                {.precision = Precision::AmpBf16, .tuning = parse_tuning(tuning)})),
                IsEmpty());
}

TEST(TraceCheck, AllDefectsAreListedInTheOrderOfTheFile) {
  EXPECT_THAT(defects_after([](Trace& t) {
                t.step.batch = 0;
                t.blocks[1].name = "b0";
                t.tensors[9].name = {};
                t.ops[1].name = "b0.norm";
                t.attributes[1].value = std::nan("");
              }),
              ElementsAre("/step/batch: found 0; need a whole number from 1 to 1099511627776",
                          "/blocks/1/name: 'b0' is the name of /blocks/0, too; need another",
                          "/tensors/9/name: found ''; need a name",
                          "/ops/1/name: 'b0.norm' is the name of /ops/0, too; need another",
                          "/ops/2/attributes/probability: found nan; need a finite number"));
}

TEST(TraceCheck, LinesOfCodeStandInTheOrderOfTheirOps) {
  EXPECT_THAT(defects_after([](Trace& t) { t.lines = {"net.py:3"}; }),
              ElementsAre("/ops: 1 of 1 lines of code are named by no op"));
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[2].line = LineId{0}; }),
              ElementsAre("/ops/2/line: found line number 0 of 0; need at most 0"));
  // Of two lines the first two ops have one each; a single one is named by a number too high.
  const auto with_lines = [](const std::vector<std::string>& lines) {
    Trace trace = small_trace();
    trace.lines = lines;
    trace.ops[0].line = LineId{lines.size() == 1};
    if (lines.size() == 2) trace.ops[1].line = LineId{1};
    return check(trace);
  };
  EXPECT_THAT(with_lines({"net.py:3", "net.py:4"}), IsEmpty());
  EXPECT_THAT(with_lines({"net.py:3"}),
              ElementsAre("/ops/0/line: found line number 1 of 1; need at most 0"));
  EXPECT_THAT(with_lines({"net.py:3", "net.py:3"}),
              ElementsAre("/ops: line of code 1 is there twice; need a text of its own"));
  EXPECT_THAT(with_lines({"net.py:3", ""}),
              ElementsAre("/ops: line of code 1 is empty; need a text of its own"));
}

TEST(TraceCheck, ATraceWithoutAnythingHasTwoDefects) {
  EXPECT_THAT(check(Trace{}), ElementsAre("/loss: found tensor number 4294967295; need one below 0",
                                          "/ops: found no op; need at least one"));
}

TEST(TraceCheck, LinesStayShortAndWhole) {
  const auto defects = defects_after([](Trace& t) {
    for (int i : {4, 5})
      t.tensors[static_cast<std::size_t>(i)].name = t.names.add(std::string(1'000'000, '\n'));
  });
  ASSERT_EQ(defects.size(), 1u);
  EXPECT_LT(defects[0].size(), 300u);
  EXPECT_EQ(defects[0].find('\n'), std::string::npos);
}

TEST(TraceCheckStep, OptionsAreInRange) {
  EXPECT_THAT(defects_after([](Trace& t) {
                t.step.sequence = 0;
                t.step.image = -7;
                t.step.dropout = 1.5;
              }),
              ElementsAre("/step/sequence: found 0; need a whole number from 1 to 1099511627776",
                          "/step/image: found -7; need a whole number from 1 to 1099511627776",
                          "/step/dropout: found 1.5; need a number from 0 to below 1"));
}

// Traces made in code may say what no reader lets through.
TEST(TraceCheckStep, NoMicroBatchesAreADefect) {
  EXPECT_THAT(defects_after([](Trace& t) { t.step.accumulate = {0}; }),
              ElementsAre(StartsWith("/step/accumulate: found 0; need ")));
}

TEST(TraceCheckStep, DropoutIsANumber) {
  EXPECT_THAT(defects_after([](Trace& t) { t.step.dropout = std::nan(""); }),
              ElementsAre("/step/dropout: found nan; need a number from 0 to below 1"));
}

TEST(TraceCheckStep, FrameworkIsKnown) {
  EXPECT_THAT(defects_after([](Trace& t) { t.step.framework = "torch-1.3"; }),
              ElementsAre(StartsWith("/step/framework: unknown framework 'torch-1.3' (did you mean "
                                     "'torch-1.13'? known: transformers-5, ")));
}

TEST(TraceCheckStep, TuningHasAText) {
  EXPECT_THAT(defects_after([](Trace& t) { t.step.tuning.rank = 4; }),
              ElementsAre("/step/tuning: found more than its text 'full' says"));
  EXPECT_THAT(defects_after([](Trace& t) {
                t.step.tuning = {.kind = Tuning::Kind::Lora, .rank = 4, .targets = {"a=b"}};
              }),
              ElementsAre(StartsWith("/step/tuning: tuning: 'a=b' is not understood")));
}

TEST(TraceCheckLoss, IsMadeByAnOp) {
  EXPECT_THAT(defects_after([](Trace& t) { t.loss = TensorId{8}; }),
              ElementsAre("/loss: no op makes 'b0.fc.bias'; need an output",
                          "/loss: 'b0.fc.bias' is float32 [4]; need a floating-point scalar"));
}

TEST(TraceCheckLoss, IsAScalar) {
  EXPECT_THAT(defects_after([](Trace& t) { t.loss = tensor_named(t, "head"); }),
              ElementsAre("/loss: 'head' is float32 [2, 5]; need a floating-point scalar"));
}

TEST(TraceCheckBlocks, AreInOrder) {
  EXPECT_THAT(defects_after([](Trace& t) { t.blocks[1].begin = OpId{5}; }),
              ElementsAre("/blocks/1: 'b1' holds ops [5, 12) of 16; need at least one, all behind "
                          "the block before",
                          "/blocks/1/input: 'b0.add2' is read before /ops/5 makes it; need it "
                          "earlier"));
}

TEST(TraceCheckBlocks, AreNotEmpty) {
  EXPECT_THAT(defects_after([](Trace& t) { t.blocks[1].end = OpId{6}; }),
              ElementsAre("/blocks/1: 'b1' holds ops [6, 6) of 16; need at least one, all behind "
                          "the block before"));
}

TEST(TraceCheckBlocks, EndWithTheTrace) {
  EXPECT_THAT(defects_after([](Trace& t) { t.blocks[1].end = OpId{17}; }),
              ElementsAre("/blocks/1: 'b1' holds ops [6, 17) of 16; need at least one, all behind "
                          "the block before"));
}

TEST(TraceCheckBlocks, AreFedByATensor) {
  EXPECT_THAT(defects_after([](Trace& t) { t.blocks[0].input = TensorId{99}; }),
              ElementsAre("/blocks/0/input: found tensor number 99; need one below 39"));
}

TEST(TraceCheckBlocks, HaveANumberedStackOrNone) {
  EXPECT_THAT(defects_after([](Trace& t) { t.blocks[1].stack = -1; }), IsEmpty());
  EXPECT_THAT(defects_after([](Trace& t) { t.blocks[1].stack = -2; }),
              ElementsAre("/blocks/1/stack: found -2; need -1 or a number from 0"));
}

TEST(TraceCheckBlocks, OfOneStackAreChained) {
  EXPECT_THAT(defects_after([](Trace& t) { t.blocks[1].input = TensorId{0}; }),
              ElementsAre("/blocks/1/input: 'x' is not made by block 'b0'; need that in a stack"));
  EXPECT_THAT(defects_after([](Trace& t) { t.blocks[1].input = tensor_named(t, "b0.norm.mean"); }),
              ElementsAre("/blocks/1/input: 'b0.norm.mean' is [2, 3, 1]; need [2, 3, 4] as before, "
                          "in a stack"));
}

}  // namespace
}  // namespace tidemark::trace_check_test
