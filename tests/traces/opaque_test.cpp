// Rows of opaque ops: what they say, how they stand in files, and each way to get one wrong.
#include "traces/opaque.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/small_trace.h"
#include "traces/trace_json.h"

namespace tidemark::opaque_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

OpaqueRow sampler_row() {
  return {.operation = "aten::grid_sampler_2d",
          .gradients = 0b11,
          .handed_on = 0b10,
          .saved = input_bit(0) | input_bit(1) | output_bit(1),
          .quantized = input_bit(0),
          .runs_once = true,
          .math = DType::Float32,
          .forward = {.workspace = {1024},
                      .scratch = {64},
                      .flops = 600,
                      .moved = Bytes{4800},
                      .kernels = 2},
          .backward = {.workspace = {2048},
                       .flops = {},
                       .moved = Bytes{9600},
                       .streamed = Bytes{512},
                       .kernels = 0}};
}

/// x, grid ─fc─► ─sample─► y, indices ─loss. Op 1 is opaque; its tensors are 5 and 6.
Trace sampled_trace(OpaqueRow row = sampler_row()) {
  TraceBuilder b("sampled", "toy", {.batch = 2, .precision = Precision::Fp32});
  const TensorId x = b.input("x", {2, 4}, DType::Float32);
  const TensorId grid = b.parameter("grid", {4});
  const TensorId targets = b.input("targets", {2}, DType::Int64);
  const std::array inputs = {b.linear("fc", x, 4, false), grid};
  const std::array outputs = {OutputSpec{"", {2, 4}, DType::Float32},
                              OutputSpec{"indices", {2, 4}, DType::Int64}};
  const TensorId y = b.opaque("sample", inputs, outputs, std::move(row));
  return b.finish(b.cross_entropy("loss", y, targets));
}

std::vector<std::string> defects_after(void (*damage)(Trace&)) {
  Trace trace = sampled_trace();
  damage(trace);
  return check(trace);
}

TEST(OpaqueOp, IsSound) { EXPECT_THAT(check(sampled_trace()), IsEmpty()); }

TEST(OpaqueOp, SaysWhichInputsGetAGradientAndWhatItsBackwardReads) {
  const Trace trace = sampled_trace();
  const Op& op = trace.ops[1];
  EXPECT_EQ(gradient_rule(trace, op, 0).flow, Flow::Fresh);
  EXPECT_EQ(gradient_rule(trace, op, 1).flow, Flow::Alias);
  EXPECT_EQ(gradient_rule(trace, op, 2).flow, Flow::None);
  EXPECT_EQ(saved_operands(trace, op, 0b01), input_bit(0) | input_bit(1) | output_bit(1));
  EXPECT_EQ(saved_operands(trace, op, 0), 0u);
  EXPECT_EQ(quantized_operands(trace, op), input_bit(0));
  EXPECT_TRUE(runs_once(trace, op));
}

TEST(OpaqueOp, KeepsOnTopWhatItsNodeHolds) {
  Trace trace = sampled_trace({.operation = "aten::foo", .gradients = 1});
  trace.ops[1].also_keeps = output_bit(0);
  EXPECT_EQ(saved_operands(trace, trace.ops[1], 1), output_bit(0));
}

// A sum in place: what is added to gets the sum's gradient as it is.
OpaqueRow summing_row() { return {.operation = "f_", .gradients = 0b11, .handed_on = 0b01}; }

TEST(OpaqueOp, HandsAGradientOn) {
  const Trace trace = sampled_trace(summing_row());
  EXPECT_EQ(gradient_rule(trace, trace.ops[1], 0).flow, Flow::Alias);
  EXPECT_EQ(gradient_rule(trace, trace.ops[1], 1).flow, Flow::Fresh);
  EXPECT_EQ(read_trace(write_trace(trace), "t.json"), trace);
}

TEST(OpaqueOp, IsCalledWhatTheFrameworkCallsIt) {
  const Trace trace = sampled_trace();
  EXPECT_EQ(operation_name(trace, trace.ops[1]), "aten::grid_sampler_2d");
  EXPECT_EQ(operation_name(trace, trace.ops[0]), "linear");
}

TEST(OpaqueOp, ReadsBackFromItsFile) {
  const OpaqueRow in_place{
      .operation = "g", .gradients = 0b11, .written_over = 0b01, .saved = input_bit(0)};
  for (const OpaqueRow& row : {sampler_row(), OpaqueRow{.operation = "f"}, in_place}) {
    const Trace trace = sampled_trace(row);
    const std::string text = write_trace(trace);
    EXPECT_EQ(read_trace(text, "t.json"), trace) << text;
    EXPECT_EQ(write_trace(read_trace(text, "t.json")), text);
  }
}

TEST(OpaqueOp, StandsInOneLineWithoutDefaults) {
  EXPECT_THAT(
      write_trace(sampled_trace()),
      HasSubstr(
          R"("row": {"operation": "aten::grid_sampler_2d", )"
          R"("gradients": ["in0", "in1"], "handed_on": ["in1"], "saved": ["in0", "in1", "out1"], )"
          R"("quantized": ["in0"], "runs_once": true, "math": "float32", )"
          R"("forward": {"workspace_bytes": 1024, "scratch_bytes": 64, "flops": 600, )"
          R"("moved_bytes": 4800, "kernels": 2}, )"
          R"("backward": {"workspace_bytes": 2048, "moved_bytes": 9600, "streamed_bytes": 512, )"
          R"("kernels": 0}}})"));
  EXPECT_THAT(write_trace(sampled_trace({.operation = "f"})),
              HasSubstr(R"("row": {"operation": "f"}})"));
}

std::string error_after(std::string_view from, std::string_view to) {
  std::string text = write_trace(sampled_trace());
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "nothing to replace";
  try {
    read_trace(text.replace(at, from.size(), to), "t.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(OpaqueOp, InAFileSaysWhereItsRowIsWrong) {
  EXPECT_EQ(error_after("\"flops\": 600", "\"flop\": 600"),
            "t.json: /ops/1/row/forward: unknown key 'flop' (did you mean 'flops'? known: "
            "workspace_bytes, scratch_bytes, flops, moved_bytes, streamed_bytes, kernels)");
  EXPECT_EQ(
      error_after("\"math\": \"float32\"", "\"math\": \"float23\""),
      "t.json: /ops/1/row/math: unknown dtype 'float23' (did you mean 'float32'? known: "
      "float32, float16, bfloat16, float64, int64, uint8, bool, float8_e4m3fn, float4_e2m1fn_x2)");
  EXPECT_EQ(error_after("\"gradients\": [\"in0\"", "\"gradients\": [\"out0\""),
            "t.json: /ops/1/row/gradients/0: found out0; need an input: in0 to in15");
  EXPECT_EQ(error_after("\"saved\": [\"in0\"", "\"saved\": [\"x\""),
            "t.json: /ops/1/row/saved/0: found 'x'; need an operand: in0 to in15 or out0 to out15");
  EXPECT_THAT(error_after("\"kernels\": 2", "\"kernels\": -2"),
              HasSubstr("t.json: /ops/1/row/forward/kernels: found -2"));
  EXPECT_THAT(error_after("\"operation\"", "\"name\""),
              HasSubstr("/ops/1/row: unknown key 'name'"));
}

TEST(OpaqueOp, IsTheOnlyOneWithARowAndHasOne) {
  EXPECT_THAT(error_after("\"kind\": \"opaque\"", "\"kind\": \"add\""),
              HasSubstr("t.json: /ops/1/row: found one on add; only an opaque op has a row of its "
                        "own"));
  EXPECT_THAT(error_after("\"row\":", "\"attributes\": {}, \"block\": null, \"row\": null, \"x\":"),
              HasSubstr("/ops/1: unknown key 'x'"));
  EXPECT_THAT(error_after("\"kind\": \"linear\"", "\"kind\": \"opaque\""), HasSubstr("row"));
}

TEST(OpaqueCheck, EveryOpaqueOpHasTheNextRow) {
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[1].opaque = OpaqueId{1}; }),
              ElementsAre("/ops/1/row: found row number 1 of 1; need 0, the next",
                          "/ops: 1 rows belong to no opaque op; need none"));
  EXPECT_THAT(defects_after([](Trace& t) { t.opaque_rows.push_back(sampler_row()); }),
              ElementsAre("/ops: 1 rows belong to no opaque op; need none"));
  EXPECT_THAT(defects_after([](Trace& t) { t.ops[0].opaque = OpaqueId{0}; }),
              ElementsAre("/ops/0/row: found one on linear; need none, it has a row in the table"));
}

TEST(OpaqueCheck, NamesOperandsThatTheOpHas) {
  EXPECT_THAT(
      defects_after(
          [](Trace& t) { t.opaque_rows[0].gradients = 0b100, t.opaque_rows[0].handed_on = 0; }),
      ElementsAre("/ops/1/row/gradients: found in2; need an operand that the op has (inputs: 2)"));
  EXPECT_THAT(
      defects_after([](Trace& t) { t.opaque_rows[0].saved |= output_bit(2); }),
      ElementsAre("/ops/1/row/saved: found out2; need an operand that the op has (outputs: 2)"));
}

TEST(OpaqueCheck, QuantizesSavedNumbers) {
  EXPECT_THAT(defects_after([](Trace& t) { t.opaque_rows[0].quantized = output_bit(0); }),
              ElementsAre("/ops/1/row/quantized: found out0; need one of the operands in saved"));
  EXPECT_THAT(defects_after([](Trace& t) { t.opaque_rows[0].quantized = output_bit(1); }),
              ElementsAre("/ops/1/row/quantized: out1, 'sample.indices', is int64; need a "
                          "floating-point number"));
}

TEST(OpaqueCheck, FiguresCanBeCounted) {
  EXPECT_THAT(defects_after([](Trace& t) {
                t.opaque_rows[0].forward = {
                    .workspace = {-1}, .scratch = {-3}, .flops = -2, .kernels = 1'000'001};
              }),
              ElementsAre("/ops/1/row/forward/workspace_bytes: found -1; need 0 to 2^60",
                          "/ops/1/row/forward/scratch_bytes: found -3; need 0 to 2^60",
                          "/ops/1/row/forward/flops: found -2; need 0 to 2^60",
                          "/ops/1/row/forward/kernels: found 1000001; need 0 to 1000000"));
  EXPECT_THAT(
      defects_after([](Trace& t) { t.opaque_rows[0].backward.workspace = most_opaque_workspace; }),
      ElementsAre("/ops/1/row/backward/workspace_bytes: all up to this one are more than "
                  "2^58 bytes; need less"));
}

TEST(OpaqueCheck, HandsOnOnlyGradientsThatThereAre) {
  EXPECT_THAT(defects_after([](Trace& t) { t.opaque_rows[0].gradients = 0b01; }),
              ElementsAre("/ops/1/row/handed_on: found in1; need one of the inputs in gradients"));
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[5].dtype = DType::Float16; }),
              Contains("/ops/1/row/handed_on: in1, 'grid', is float32; need float16 as out0"));
}

TEST(OpaqueCheck, WritesGradientsOverSavedInputsOnly) {
  const auto complaint =
      "/ops/1/row/written_over: found in1; need one of the inputs in gradients "
      "and saved, not in handed_on";
  EXPECT_THAT(defects_after([](Trace& t) { t.opaque_rows[0].written_over = 0b11; }),
              ElementsAre(complaint));  // it is handed on
  EXPECT_THAT(defects_after([](Trace& t) {
                t.opaque_rows[0].written_over = 0b10, t.opaque_rows[0].handed_on = 0;
                t.opaque_rows[0].saved = input_bit(0);
              }),
              ElementsAre(complaint));
  EXPECT_THAT(defects_after([](Trace& t) { t.opaque_rows[0].written_over = 0b100; }),
              Contains("/ops/1/row/written_over: found in2; need an operand that the op has "
                       "(inputs: 2)"));
  EXPECT_THAT(defects_after([](Trace& t) {
                t.opaque_rows[0].written_over = 0b10, t.opaque_rows[0].handed_on = 0;
              }),
              ElementsAre("/ops/1/row/written_over: in1, 'grid', is parameter; need a value of the "
                          "step with memory of its own"));
}

TEST(RecordedUpdate, ReadsBackFromItsFile) {
  Trace trace = sampled_trace();
  trace.update = RecordedUpdate{.optimizer = "RMSprop",
                                .pass = {.workspace = {96}, .scratch = {8}, .kernels = 5}};
  const std::string text = write_trace(trace);
  EXPECT_THAT(text, HasSubstr(R"("update": {"optimizer": "RMSprop", "workspace_bytes": 96, )"
                              R"("scratch_bytes": 8, "kernels": 5})"));
  EXPECT_EQ(read_trace(text, "t.json"), trace);
}

TEST(RecordedUpdate, IsChecked) {
  EXPECT_THAT(defects_after([](Trace& t) { t.update = RecordedUpdate{.optimizer = ""}; }),
              ElementsAre("/update/optimizer: found ''; need what the framework calls it"));
  EXPECT_THAT(
      defects_after([](Trace& t) { t.update = RecordedUpdate{.optimizer = "a", .pass = {{-5}}}; }),
      ElementsAre("/update/workspace_bytes: found -5; need 0 to 2^60"));
}

TEST(OpaqueCheck, HasAName) {
  EXPECT_THAT(defects_after([](Trace& t) { t.opaque_rows[0].operation.clear(); }),
              ElementsAre("/ops/1/row/operation: found ''; need what the framework calls it"));
}

TEST(OpaqueCheck, CountsInNumbers) {
  EXPECT_THAT(defects_after([](Trace& t) { t.opaque_rows[0].math = DType::Int64; }),
              ElementsAre("/ops/1/row/math: found int64; need a floating-point dtype"));
}

}  // namespace
}  // namespace tidemark::opaque_test
