// Formulas of opaque ops: operands that fit each of them, ways to fit none, and files that say
// them.
#include "traces/formula.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/small_families.h"
#include "traces/trace_builder.h"
#include "traces/trace_json.h"

namespace tidemark::formula_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr DType f = DType::Float32, i = DType::Int64, u = DType::UInt8, m = DType::Bool;

struct Operand {
  Shape shape;
  DType dtype = f;
  int over = -1;  ///< of a result in place: the input whose memory it has
};

struct Case {
  Formula formula;
  std::vector<Operand> inputs, outputs;
  std::vector<Attribute> attributes = {};
};

std::vector<Case> cases() {
  using enum Formula;
  using enum AttributeKey;
  return {
      {EvenTopK, {{{6, 4}}}, {{{6, 2}}, {{6, 2}, i}}},
      {EvenTopK, {{{6, 4}}}, {{{6, 2}, i}}},
      {OneHot, {{{6, 2}, i}}, {{{6, 2, 4}, i}}},
      {FindVisits, {{{6, 2, 4}, i}}, {{{3, 2}, i}}, {{Offset, 3}}},
      {IndexPairs, {{{6, 2}}, {{3, 2}, i}}, {{{3, 1}}}},
      {IndexAdd, {{{6, 8}}, {{3, 2}, i}, {{3, 8}}}, {{{6, 8}, f, 0}}},
      {IndexRows, {{{6, 8}}, {{3}, i}}, {{{3, 8}}}},
      {Gather, {{{6, 4}}, {{6, 2}, i}}, {{{6, 2}}}, {{Axis, 1}}},
      {Zeros, {{{6}}}, {{{2, 3}}}},
      {Sum, {{{6, 2, 4}}}, {{{6, 4}}}, {{Axis, 1}}},
      {Sum, {{{6, 4}}}, {{{6, 1}}}},
      {Divide, {{{6, 4}}, {{6, 1}}}, {{{6, 4}}}},
      {Subtract, {{{6, 4}}}, {{{6, 4}}}},
      {StretchBilinear, {{{1, 3, 4, 4}}}, {{{1, 3, 6, 6}}}},
      {StretchBicubic, {{{1, 16, 3}}}, {{{1, 36, 3}}}},
      {AdaptiveMean, {{{2, 3, 14, 14}}}, {{{2, 3, 7, 7}}}},
      {PadOrCrop, {{{2, 9, 3}}}, {{{2, 16, 3}}}},
      {Nf4Linear, {{{2, 8}}, {{32, 1}, u}, {{1}}, {{16}}}, {{{2, 8}}}},
      {Nf4Linear, {{{2, 8}}, {{32, 1}, u}, {{1}, u}, {{16}}, {{1}}, {{256}}, {{8}}}, {{{2, 8}}}},
      {Int8Linear, {{{2, 8}}, {{4, 8}, u}, {{4}}, {{4}}}, {{{2, 4}}}},
      {TurnPairs, {{{2, 3, 4}}, {{3, 4}}}, {{{2, 3, 4}}}},
      {SortPairs, {{{2, 3, 4}}}, {{{2, 3, 4}}}},
      {HiddenGroups, {{{6, 4}}}, {{{6, 4}, m}}, {{Window, 2}, {Groups, 2}}},
      {MaskedFill, {{{6, 4}}, {{1, 4}, m}}, {{{6, 4}}}},
      {Argsort, {{{6, 2}, i}}, {{{12}, i}}},
      {FloorDivide, {{{12}, i}}, {{{12}, i}}, {{Window, 2}}},
      {JoinRows, {{{2, 4}}, {{3, 4}}}, {{{5, 4}}}},
      {JoinRows, {{{5, 4}}, {{2, 4}}}, {{{5, 4}, f, 0}}, {{Offset, 3}}},
      {PutRows, {{{5, 4}}, {{5}, i}}, {{{5, 4}}}},
      {MulKept, {{{6, 2, 4}}, {{6, 2, 1}}, {{6, 2, 4}}}, {{{6, 2, 4}, f, 0}}},
      {DoraNorm, {{{6, 4}}, {{2, 4}}, {{6, 2}}}, {{{6}}, {{4, 4}}, {{4, 2}}, {{6, 4}}}},
      {Conv1d, {{{2, 3, 8}}, {{5, 3, 3}}, {{5}}}, {{{2, 5, 4}}}, {{Stride, 2}, {Padding, 1}}},
      {InvertedGelu, {{{3, 7}}}, {{{3, 7}}, {{3}, DType::UInt8}}},
      {InvertedTanhGelu, {{{3, 7}}}, {{{3, 7}}, {{3}, DType::UInt8}}},
      {InvertedSilu, {{{3, 7}}}, {{{3, 7}}, {{3}, DType::UInt8}}},
  };
}

/// x ─own─► inputs made by ops, so that results may lie over them ─ the op ─ its outputs, not used.
std::vector<std::string> defects_of(const Case& of) {
  TraceBuilder b("case", "toy", {.batch = 1, .precision = Precision::Fp32});
  std::vector<TensorId> inputs;
  for (std::size_t k = 0; k < of.inputs.size(); ++k) {
    const Operand& operand = of.inputs[k];
    const TensorId given = b.input("given" + std::to_string(k), operand.shape, operand.dtype);
    inputs.push_back(is_floating(operand.dtype) ? b.scale("in" + std::to_string(k), given, 2)
                                                : given);
  }
  std::vector<OutputSpec> outputs;
  static constexpr std::array<std::string_view, 4> suffixes = {"", "b", "c", "d"};
  for (const Operand& made : of.outputs)
    outputs.push_back({suffixes[outputs.size()], made.shape, made.dtype,
                       made.over < 0 ? no_tensor : inputs[static_cast<std::size_t>(made.over)]});
  b.opaque("op", inputs, outputs, {.operation = "toy::op", .computes = of.formula}, of.attributes);
  const TensorId x = b.input("x", {2, 4}, f), targets = b.input("targets", {2}, i);
  return check(b.finish(b.cross_entropy("loss", b.linear("head", x, 3), targets)));
}

TEST(Formula, OperandsThatFitEachOfThem) {
  std::set<Formula> tried = {Formula::None};
  for (const Case& of : cases()) {
    EXPECT_THAT(defects_of(of), IsEmpty()) << to_string(of.formula);
    tried.insert(of.formula);
  }
  EXPECT_EQ(tried.size(), formulas.size());
}

TEST(Formula, AResultOfAnotherShapeFitsNone) {
  for (Case of : cases()) {
    if (of.formula == Formula::Zeros) continue;  // of any
    const Operand right = of.outputs[0];
    std::vector<std::int64_t> dims(right.shape.dims().begin(), right.shape.dims().end());
    dims.push_back(3);
    of.outputs[0].shape = Shape(dims);
    if (right.over < 0) {
      EXPECT_THAT(defects_of(of), testing::Contains(HasSubstr("op"))) << to_string(of.formula);
    }
  }
}

TEST(Formula, AMissingOperandIsADefect) {
  for (Case of : cases()) {
    if (of.inputs.size() < 2 || of.formula == Formula::JoinRows) continue;
    const bool is_optional =
        of.formula == Formula::Int8Linear || of.formula == Formula::Conv1d || of.inputs.size() == 7;
    of.inputs.pop_back();
    if (is_optional) {
      EXPECT_THAT(defects_of(of), IsEmpty()) << to_string(of.formula);
      of.inputs.pop_back();
    }
    EXPECT_FALSE(defects_of(of).empty()) << to_string(of.formula);
  }
}

TEST(Formula, FilesSayThem) {
  for (const SmallStep& step : small_steps_with_formulas()) {
    StepOptions options = step.options;
    options.batch = 2, options.precision = Precision::Bf16;
    const Trace trace = build_trace(step.model, options);
    EXPECT_THAT(check(trace), IsEmpty()) << step.model.name;
    EXPECT_EQ(read_trace(write_trace(trace), "trace"), trace) << step.model.name;
  }
  const std::string text = write_trace(build_trace(small_mixtral(), {.batch = 1}));
  EXPECT_THAT(text, HasSubstr(R"("computes": "even_top_k")"));
  std::string other = text;
  other.replace(other.find("even_top_k"), 10, "even_top_j");
  try {
    read_trace(other, "trace");
    FAIL() << "took an unknown formula";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'even_top_k'?"));
  }
}

}  // namespace
}  // namespace tidemark::formula_test
