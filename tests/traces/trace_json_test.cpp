// Trace files are read as written, cut or hostile ones refused; the format's document agrees.
#include "traces/trace_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "tests/traces/small_trace.h"
#include "traces/models/model_config.h"
#include "traces/presets.h"

namespace tidemark::trace_json_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(std::string_view json) {
  try {
    read_trace(json, "t.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) ADD_FAILURE() << "nothing to replace: " << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// What reading says about the small trace's file with one piece of text changed.
std::string error_after(std::string_view from, std::string_view to) {
  return error_of(replaced(write_trace(small_trace()), from, to));
}

void expect_round_trip(const Trace& trace) {
  const std::string text = write_trace(trace);
  const Trace again = read_trace(text, "t.json");
  EXPECT_EQ(again, trace);
  EXPECT_EQ(write_trace(again), text);
}

TEST(TraceJson, ReadsWhatItWrote) {
  expect_round_trip(small_trace());
  const VitConfig config{.image = 16,
                         .patch = 4,
                         .width = 8,
                         .depth = 3,
                         .heads = 2,
                         .mlp = 16,
                         .classes = 3,
                         .dropout = 0.1,
                         .attention_dropout = 0.2,
                         .drop_path = 0.3};
  for (const Framework& framework : frameworks())
    for (const auto& precision : precisions)
      for (const auto& attention : attentions)
        for (const char* tuning : {"full", "lora-fa:r=4,targets=all", "frozen:blocks.*,pos_embed"})
          expect_round_trip(build_vit("vit", config,
                                      {.batch = 3,
                                       .precision = precision.value,
                                       .attention = attention.value,
                                       .tuning = parse_tuning(tuning),
                                       .framework = std::string(framework.name)}));
}

TEST(TraceJson, KeepsEveryField) {
  Trace trace = small_trace();
  trace.model = "dir/\"quoted\"\\\n\x01 größe 漢字";
  trace.family = "";
  trace.step = {.batch = 1'000'000,
                .sequence = 512,
                .image = 224,
                .precision = Precision::Tf32,
                .attention = Attention::Flash,
                .tuning = parse_tuning("lora:r=3,targets=a,b"),
                .optimizer = Optimizer::AdamW8bit,
                .dropout = 0.1 + 0.2,
                .drop_path = 0.25,
                .framework = "paper",
                .ema = false,
                .ddp = true,
                .shard = parse_sharding("ddp:bucket-mb=3")};
  trace.tensors[3].name = "\t";
  trace.tensors[4].held_until = OpId{1};
  trace.tensors[7].trainable = false;
  trace.attributes[1].value = 1e-320;  // every double has a shortest text that reads back
  trace.ops[3].also_keeps = input_bit(1) | output_bit(0);
  trace.ops[2].rng_key = std::uint64_t{1} << 53;
  trace.blocks[1].stack = -1;
  trace.lines = {"train.py:41", "a folder/net.py:7"};
  trace.ops[1].line = trace.ops[4].line = LineId{0};
  trace.ops[2].line = LineId{1};
  expect_round_trip(trace);
}

TEST(TraceJson, KeepsEveryFill) {
  const Rotary stretched{.scaling = RotaryScaling::Yarn,
                         .theta = 1e6,
                         .factor = 4,
                         .low = 0.5,
                         .high = 32,
                         .attention_factor = 1.1,
                         .original_positions = 32768};
  Trace trace = small_trace();
  const auto add = [&](const InputFill& fill, const Shape& shape, DType dtype) {
    const auto id = static_cast<TensorId>(trace.tensors.size());
    trace.tensors.push_back({.name = trace.names.add("input" + std::to_string(index(id))),
                             .shape = shape,
                             .dtype = dtype,
                             .category = Category::Input,
                             .storage = id,
                             .fill = static_cast<FillId>(trace.fills.size()),
                             .rng_key = 0xffffffff});
    trace.fills.push_back(fill);
  };
  add(fill::Words{}, {2, 3}, DType::Int64);
  add(fill::Pixels{}, {2, 3, 4, 4}, DType::Float32);
  add(fill::ImageClasses{}, {2}, DType::Int64);
  add(fill::Positions{.first = 2}, {1, 3}, DType::Int64);
  add(fill::CausalMask{.window = 4096}, {1, 1, 3, 3}, DType::Float32);
  add(fill::PaddingMask{}, {2, 1, 1, 3}, DType::BFloat16);
  add(fill::Constant{-100}, {2, 1}, DType::Int64);
  add(fill::SeamMask{.shift = 3}, {4, 1, 49, 49}, DType::Float32);
  add(fill::WindowDifferences{}, {49 * 49}, DType::Int64);
  add(fill::AxisDifferences{}, {4, 2}, DType::Int64);
  add(fill::RotaryTable{fill::Wave::Cosine, {.theta = 500000}}, {3, 8}, DType::Float32);
  add(fill::RotaryTable{fill::Wave::Sine, stretched}, {3, 8}, DType::Float32);
  add(fill::RotaryTable{fill::Wave::Pairs, {.theta = 500000}}, {3, 8}, DType::Float32);
  add(fill::RotaryTable{fill::Wave::Sine, stretched, fill::WaveColumns::Neighbours}, {3, 8},
      DType::Float32);
  add(fill::RotaryTable{fill::Wave::Cosine, {}, fill::WaveColumns::Once}, {3, 4}, DType::Float32);
  add(fill::RelativeBuckets{.buckets = 16, .farthest = 64, .looks_ahead = true}, {3, 3},
      DType::Int64);
  ASSERT_EQ(trace.fills.size(),
            fill_names.size() + 4);  // all, each wave, and each way to lie in columns
  expect_round_trip(trace);
}

TEST(TraceJson, TakesTheBaseOfARotationFromFilesOfVersion2) {
  std::string text = write_trace(small_trace());
  const auto replace = [&](std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("\"version\": 8", "\"version\": 2");
  replace("{\"probability\": 0.1}", "{\"theta\": 10000, \"probability\": 0.1}");
  EXPECT_EQ(read_trace(text, "t.json"), small_trace());
}

TEST(TraceJson, TakesLayoutTransformsByTheirNamesOfVersion2) {
  const Trace trace = build_trace(find_model("swin-t"), {.batch = 1});
  std::string text = write_trace(trace);
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from))
      text.replace(at, from.size(), to);
  };
  replace("\"layout_transform\": \"patch_merging\"", "\"movement\": \"corner\"");
  EXPECT_THROW(read_trace(text, "t.json"), InputError);  // in a file of today
  replace("\"version\": 8", "\"version\": 2");
  replace("\"layout_transform\"", "\"movement\"");
  EXPECT_EQ(read_trace(text, "t.json").attributes, trace.attributes);
}

TEST(TraceJson, WritesNegativeZeroAsZero) {
  Trace trace = small_trace();
  trace.attributes[0].value = -0.0;
  EXPECT_THAT(write_trace(trace), HasSubstr("\"epsilon\": 0}"));
  expect_round_trip(trace);
}

TEST(TraceJson, WritesWhatIsNotUtf8AsReplacementCharacters) {
  Trace trace = small_trace();
  trace.model = "\xff.onnx";
  EXPECT_EQ(read_trace(write_trace(trace), "t.json").model, "\uFFFD.onnx");
}

TEST(TraceJson, WritesOneTensorOrOpPerLine) {
  const std::string text = write_trace(small_trace());
  EXPECT_THAT(text, StartsWith("{\n  \"format\": \"tidemark-trace\",\n  \"version\": 8,\n"));
  EXPECT_THAT(text,
              HasSubstr("\n    {\"name\": \"flat\", \"shape\": [2, 12], \"dtype\": \"float32\", "
                        "\"category\": \"activation\", \"storage\": \"b1.add2\"},\n"));
  EXPECT_THAT(text, HasSubstr("\n    {\"name\": \"b0.drop\", \"kind\": \"dropout\", \"inputs\": "
                              "[\"b0.fc\"], \"outputs\": [\"b0.drop\", \"b0.drop.mask\"], "
                              "\"attributes\": {\"probability\": 0.1}, \"block\": \"b0\", "
                              "\"part\": \"f\", \"rng_key\": 3},\n"));
}

TEST(TraceJson, RefusesToWriteWhatNobodyCouldRead) {
  Trace trace = small_trace();
  trace.loss = no_tensor;
  try {
    write_trace(trace);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "small: /loss: found tensor number 4294967295; need one below 39");
  }
}

TEST(TraceJson, OrderOfKeysAndListsIsFree) {
  const Trace trace = small_trace();
  const auto json = nlohmann::json::parse(write_trace(trace));  // sorts the keys
  EXPECT_EQ(read_trace(json.dump(), "t.json").ops, trace.ops);
}

TEST(TraceJson, LoadsFilesWithAndWithoutCompression) {
  const std::string folder = testing::TempDir() + "/trace_json_test";
  std::filesystem::create_directories(folder);
  for (const char* name : {"/a.trace.json", "/a.trace.json.zst"}) {
    write_file(folder + name, write_trace(small_trace()));
    EXPECT_EQ(load_trace(folder + name), small_trace());
  }
  EXPECT_LT(std::filesystem::file_size(folder + "/a.trace.json.zst"),
            std::filesystem::file_size(folder + "/a.trace.json") / 4);
  EXPECT_THROW(load_trace(folder + "/missing.json"), InputError);
  std::filesystem::remove_all(folder);
}

TEST(TraceJson, AFileCutAnywhereIsAnError) {
  const std::string text = write_trace(small_trace());
  const std::size_t end = text.rfind('}');
  for (std::size_t length = 0; length <= end; ++length)
    EXPECT_THAT(error_of(std::string_view(text).substr(0, length)), StartsWith("t.json:"))
        << length;
}

TEST(TraceJson, SuggestsTheNearestName) {
  EXPECT_EQ(error_after("\"inputs\": [\"b0.norm\"", "\"inputs\": [\"b0.nrm\""),
            "t.json: /ops/1/inputs/0: no tensor named 'b0.nrm' (did you mean 'b0.norm'?)");
  EXPECT_EQ(error_after("\"block\": \"b0\"", "\"block\": \"c0\""),
            "t.json: /ops/0/block: no block named 'c0' (did you mean 'b0'?)");
  EXPECT_EQ(error_after("\"storage\": \"b1.add2\"", "\"storage\": \"b1.ad2\""),
            "t.json: /tensors/32/storage: no tensor named 'b1.ad2' (did you mean 'b1.add2'?)");
  EXPECT_EQ(
      error_after("\"category\": \"input\"", "\"category\": \"input\", \"held_until\": \"hea\""),
      "t.json: /tensors/0/held_until: no op named 'hea' (did you mean 'head'?)");
}

TEST(TraceJson, ListsAllDefects) {
  EXPECT_EQ(error_of(replaced(write_trace(small_trace()), "[2, 12]", "[2, 13]")),
            "t.json: 3 defects\n"
            "  /tensors/32/shape: [2, 13] has 104 bytes; need at most the 96 of 'b1.add2', the "
            "storage\n"
            "  /ops/12: view 'flat': out0 is [2, 13]; need as many elements beside in0 [2, 3, 4]\n"
            "  /ops/13: linear 'head': in1 is [5, 12]; need [out, in] beside in0 [2, 13]");
}

TEST(TraceJson, SaysHowManyDefectsAreLeftOut) {
  const std::vector<std::string> defects(87, "/ops: bad");
  const std::string text = describe_defects("t.json", defects);
  EXPECT_THAT(text, StartsWith("t.json: 87 defects\n  /ops: bad\n"));
  EXPECT_THAT(text, testing::EndsWith("\n  /ops: bad\n  … and 37 more"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 51);
}

TEST(TraceJson, RefusesOtherFilesAndVersions) {
  EXPECT_EQ(error_of("{}"), "t.json: not a trace file; need \"format\": \"tidemark-trace\"");
  EXPECT_EQ(error_of("[]"), "t.json: found a list; need an object");
  EXPECT_EQ(error_after("tidemark-trace", "plan"),
            "t.json: not a trace file; need \"format\": \"tidemark-trace\"");
  // A newer file may have keys that nobody here knows; its version says so first.
  EXPECT_EQ(error_after("\"version\": 8", "\"shards\": 4, \"version\": 9"),
            "t.json: /version: found 9; this program reads versions 1 to 8");
}

TEST(TraceJson, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(
      error_after("\"residual\"", "\"residul\""),
      StartsWith("t.json: /ops/3: unknown key 'residul' (did you mean 'residual'? known: "));
  EXPECT_THAT(error_after("\"dtype\"", "\"dtyp\""), StartsWith("t.json: /tensors/0: unknown key "));
  EXPECT_THAT(error_after("\"loss\"", "\"los\""), StartsWith("t.json: unknown key 'los' (did "));
  EXPECT_THAT(error_after("\"stack\"", "\"stak\""), StartsWith("t.json: /blocks/0: unknown key "));
  EXPECT_THAT(error_after("\"batch\"", "\"bach\""),
              StartsWith("t.json: /step: unknown key 'bach'"));
  EXPECT_THAT(
      error_after("\"linear\"", "\"linea\""),
      StartsWith("t.json: /ops/1/kind: unknown kind of op 'linea' (did you mean 'linear'?"));
  EXPECT_THAT(error_after("epsilon", "epsilom"),
              StartsWith("t.json: /ops/0/attributes: unknown attribute 'epsilom' (did you mean "));
  EXPECT_THAT(error_after("int64", "int65"),
              StartsWith("t.json: /tensors/1/dtype: unknown dtype 'int65' (did you mean 'int64'?"));
  EXPECT_EQ(error_after("\"residual\": true", "\"also_keeps\": [\"in0\", \"inn\"]"),
            "t.json: /ops/3/also_keeps/1: found 'inn'; need an operand: in0 to in15 or out0 to "
            "out15");
  EXPECT_THAT(error_after("\"full\"", "\"lora:r=0\""),
              StartsWith("t.json: /step/tuning: tuning: r=0 is not a rank"));
  EXPECT_THAT(error_after("transformers-4.57", "torch-1.9"),
              StartsWith("t.json: /step/framework: unknown framework 'torch-1.9' (did you mean "));
}

TEST(TraceJson, RefusesWhatIsMissingOrMistyped) {
  EXPECT_EQ(error_after("\"kind\": \"linear\", ", ""),
            "t.json: /ops/1: found no key 'kind'; it is required");
  EXPECT_EQ(error_after("\"shape\": [2, 3, 4], ", ""),
            "t.json: /tensors/0: found no key 'shape'; it is required");
  EXPECT_EQ(error_after("[2, 3, 4]", "\"2x3x4\""),
            "t.json: /tensors/0/shape: found text '2x3x4'; need a list");
  EXPECT_EQ(error_after("[2, 3, 4]", "[2, 0.5, 4]"),
            "t.json: /tensors/0/shape/1: found 0.5; need a whole number from 1 to "
            "1152921504606846976");
  EXPECT_EQ(error_after("[2, 3, 4]", "[1, 1, 1, 1, 1, 1, 1]"),
            "t.json: /tensors/0/shape: found 7 dimensions; need at most 6");
  EXPECT_THAT(error_after("[2, 3, 4]", "[1e30]"), HasSubstr("/shape/0: found 1e+30; need a whole"));
  EXPECT_THAT(error_after("\"part\": \"f\", \"rng_key\": 3", "\"part\": \"f\", \"rng_key\": -3"),
              StartsWith("t.json: /ops/2/rng_key: found -3; need a whole number from 0 to "));
  EXPECT_THAT(error_after("\"probability\": 0.1", "\"probability\": NaN"), StartsWith("t.json:"));
  EXPECT_THAT(error_after("\"probability\": 0.1", "\"probability\": 1e999"), StartsWith("t.json:"));
  EXPECT_THAT(error_after("\"trainable\": true", "\"trainable\": 1"),
              StartsWith("t.json: /tensors/2/trainable: found 1; need true or false"));
  EXPECT_THAT(error_after("\"part\": \"f\", \"rng_key\": 3", "\"line\": 41, \"rng_key\": 3"),
              StartsWith("t.json: /ops/2/line: found 41; need text in quotes"));
  EXPECT_EQ(error_after("\"part\": \"f\", \"rng_key\": 3", "\"line\": \"\", \"rng_key\": 3"),
            "t.json: /ops: line of code 0 is empty; need a text of its own");
  std::string inputs = "\"inputs\": [\"x\"";
  for (int i = 0; i < 70'000; ++i) inputs += ", \"x\"";
  EXPECT_EQ(error_after("\"inputs\": [\"x\"", inputs),
            "t.json: /ops/0/inputs: found 70003 operands; need at most 16");
}

TEST(TraceJson, RefusesDoubledNamesAndDeepNesting) {
  EXPECT_THAT(
      error_after("\"name\": \"b0.fc\", \"kind\"", "\"name\": \"b0.norm\", \"kind\""),
      StartsWith("t.json: /ops/1/name: 'b0.norm' is the name of /ops/0, too; need another"));
  EXPECT_THAT(error_after("\"x\"", std::string(100'000, '[')), StartsWith("t.json: "));
}

TEST(TraceJson, AHostileFileIsRefusedInTime) {
  std::string json =
      R"({"format": "tidemark-trace", "version": 1, "loss": "x", "ops": [], "tensors": [)";
  for (int i = 0; i < 20'000; ++i)
    json += fmt::format(R"({}{{"name": "tensor{}", "shape": [1], "dtype": "bool", )"
                        R"("category": "input", "storage": "tenso{}"}})",
                        i ? "," : "", i, i);
  json += "]}";
  EXPECT_THAT(error_of(json), StartsWith("t.json: 20001 defects\n  /tensors/0/storage: no tensor "
                                         "named 'tenso0' (did you mean 'tensor0'?)\n"));
}

std::string document() {
  std::ifstream file(TIDEMARK_TESTS_DIR "/../docs/trace_format.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(TraceFormatDocument, HasAnExampleInTheFormThatTidemarkWrites) {
  const std::string text = document();
  const std::size_t begin = text.find("```json\n") + 8, end = text.find("```", begin);
  ASSERT_LT(end, text.size());
  const std::string example = text.substr(begin, end - begin);
  EXPECT_EQ(write_trace(read_trace(example, "trace_format.md")), example);
}

TEST(TraceFormatDocument, NamesEveryWordOfTheFormat) {
  const std::string text = document();
  const auto expect_all = [&](const auto& table) {
    for (const auto& row : table) EXPECT_THAT(text, HasSubstr(fmt::format("`{}`", row.name)));
  };
  expect_all(op_rows);
  expect_all(attribute_keys);
  expect_all(dtypes);
  expect_all(categories);
  expect_all(precisions);
  expect_all(attentions);
  expect_all(optimizers);
  expect_all(frameworks());
}

}  // namespace
}  // namespace tidemark::trace_json_test
