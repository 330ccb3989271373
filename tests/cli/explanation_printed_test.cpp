// What an explanation and the facts about one item look like, from facts made by hand: every line
// that depends on one of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/print_explanation.h"
#include "tests/traces/small_trace.h"

namespace tidemark::cli::explanation_printed_test {
namespace {

using Json = nlohmann::json;
using std::chrono::microseconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using namespace literals;

constexpr Style wide{.unicode = true, .width = 120};

Report report(const char* strategy, Bytes allocated, microseconds step) {
  Report row;
  row.strategy = strategy;
  row.allocated_peak = allocated;
  row.reserved_peak = allocated + 2_MiB;
  row.planned = allocated - 1_MiB;
  row.step = step;
  row.fits = true;
  row.live_peak = 60_MiB;
  row.at_peak[static_cast<std::size_t>(Category::Parameter)] = 20_MiB;
  row.at_peak[static_cast<std::size_t>(Category::Activation)] = 40_MiB;
  row.peak_at = "backward of fc1";
  return row;
}

// mesa beside vanilla: a quarter of the memory less, a tenth of the time more.
Explanation explanation() {
  Explanation made;
  made.comparison.rows = {report("vanilla", 80_MiB, microseconds(20'000)),
                          report("mesa", 60_MiB, microseconds(22'000))};
  made.comparison.rows[1].memory_ratio = 0.75;
  made.comparison.rows[1].time_ratio = 1.1;
  made.evaluation.report = made.comparison.rows[1];
  made.evaluation.planned.trace = std::make_shared<const Trace>(small_trace());
  made.evaluation.timeline.duration = microseconds(22'000);
  made.peak_time = microseconds(11'000);
  made.peak_phase = Phase::Backward;
  made.alive = {{"fc1", Role::Codes, Category::Activation, 30_MiB, "blocks.0", "quantize", "asked"},
                {"w", Role::Value, Category::Parameter, 20_MiB, "", "persistent", ""},
                {"", Role::Temporary, Category::Temporary, 10_MiB, "", "", ""}};
  made.decisions = {{Action::Quantize, "kept in 8 bits", 3, 120_MiB},
                    {Action::Keep, "too small", 2, 1_MiB}};
  return made;
}

TEST(ExplanationHead, ComparesWithVanilla) {
  EXPECT_THAT(explanation_head(explanation(), wide),
              EndsWith("mesa: allocated 80.00 → 60.00 MiB (−25.0 %) · step 20.00 → 22.00 ms "
                       "(+10.0 %), against vanilla\nfits: yes\nAll numbers are predicted.\n"));
}

TEST(ExplanationHead, SaysWhatAStageWaits) {
  Explanation stage = explanation();
  stage.evaluation.report.rank = RankClass{2};
  EXPECT_THAT(explanation_head(stage, wide), Not(HasSubstr("bubble")));
  stage.evaluation.report.bubble = microseconds(5'500);
  EXPECT_THAT(
      explanation_head(stage, wide),
      HasSubstr("\nfits: yes\nbubble: pp2 waits for other stages for 5.50 of 22.00 ms, 25.0 "
                "% of the step\nAll numbers"));
}

TEST(ExplanationHead, OfVanillaHasNothingToCompareWith) {
  Explanation vanilla = explanation();
  vanilla.comparison.rows.pop_back();
  vanilla.evaluation.report = vanilla.comparison.rows.front();
  EXPECT_THAT(explanation_head(vanilla, wide),
              HasSubstr("vanilla: allocated 80.00 · reserved 82.00 · planned 79.00 MiB · "
                        "step 20.00 ms\n"));
}

TEST(ExplanationTable, SaysWhyMoreIsAliveThanAllocated) {
  constexpr const char* words = "than is ever allocated";
  Explanation beside = explanation();
  EXPECT_THAT(explanation_table(beside, wide, 12), Not(HasSubstr(words)));
  beside.evaluation.report.live_peak = 61_MiB;
  EXPECT_THAT(explanation_table(beside, wide, 12),
              HasSubstr("in the backward phase: backward of fc1.\n"
                        "More is alive there than is ever allocated (60.0 MiB): PyTorch does not "
                        "count what the host has freed and a stream still uses.\n\nAlive"));
}

TEST(ExplanationHead, SaysWhyAStrategyDoesNotApply) {
  Explanation refused = explanation();
  refused.evaluation.report.applies = false;
  refused.evaluation.report.reason = "no floats";
  EXPECT_THAT(explanation_head(refused, wide), EndsWith("mesa: does not apply: no floats\n"));
  EXPECT_THAT(explanation_table(refused, wide, 12), EndsWith("does not apply: no floats\n"));
  EXPECT_FALSE(Json::parse(explanation_json(refused)).contains("peak"));
}

TEST(ExplanationTable, SaysWhereThePeakIsAndWhoMakesIt) {
  const std::string text = explanation_table(explanation(), wide, 2);
  EXPECT_THAT(text, HasSubstr("The peak, 60.0 MiB, is at 11.00 of 22.00 ms, in the backward phase: "
                              "backward of fc1.\n"));
  EXPECT_THAT(text, HasSubstr("parameter   20.00"));
  EXPECT_THAT(text, HasSubstr("activation  40.00"));
  EXPECT_THAT(text, Not(HasSubstr("gradient  ")));  // none of it there
  EXPECT_THAT(text, HasSubstr("The largest of 3 buffers alive there:\n"));
  EXPECT_THAT(text, HasSubstr("30.00  fc1     activation  codes  blocks.0  quantize\n"));
  EXPECT_THAT(text, HasSubstr("… and 1 more, 10.0 MiB (--top N shows more)\n"));
  EXPECT_THAT(text, HasSubstr("quantize        3  120.0  kept in 8 bits\n"));
}

TEST(ExplanationTable, NamesLinesOfCodeWhereTheyAreKnown) {
  EXPECT_THAT(explanation_table(explanation(), wide, 2), Not(HasSubstr("line")));
  Explanation captured = explanation();
  captured.alive[0].line = "train.py:41";
  EXPECT_THAT(explanation_table(captured, wide, 2),
              HasSubstr("30.00  fc1     activation  codes  blocks.0  quantize    train.py:41\n"));
}

// A buffer of many weights has the name of the first.
TEST(ExplanationTable, NamesWhatABufferOfManyWeightsHolds) {
  Explanation of_many = explanation();
  of_many.alive[1].shared = "main gradients";
  EXPECT_THAT(explanation_table(of_many, wide, 2),
              HasSubstr("20.00  main gradients from w on  parameter"));
  EXPECT_EQ(Json::parse(explanation_json(of_many)).at("alive").at(1).at("shared"),
            "main gradients");
}

TEST(ExplanationTable, NamesScratchMemoryAndSaysWhenNothingIsSaved) {
  Explanation bare = explanation();
  bare.decisions.clear();
  const std::string text = explanation_table(bare, wide, 3);
  EXPECT_THAT(text, HasSubstr("10.00  (scratch)"));
  EXPECT_THAT(text, Not(HasSubstr(" more")));
  EXPECT_THAT(text, EndsWith("The backward needs no activation.\n"));
}

TEST(ExplanationJson, HasAllOfIt) {
  const Json json = Json::parse(explanation_json(explanation()));
  EXPECT_EQ(json.at("peak").at("bytes"), 60 << 20);
  EXPECT_EQ(json.at("peak").at("time_ns"), 11'000'000);
  EXPECT_EQ(json.at("peak").at("phase"), "backward");
  EXPECT_EQ(json.at("alive").at(0), Json::parse(R"({"tensor": "fc1", "role": "codes",
      "category": "activation", "bytes": 31457280, "block": "blocks.0", "decision": "quantize",
      "reason": "asked", "line": "", "shared": ""})"));
  EXPECT_EQ(json.at("decisions").at(1),
            Json::parse(R"({"action": "keep", "reason": "too small", "tensors": 2,
                            "bytes": 1048576})"));
  EXPECT_EQ(json.at("live").at("duration_ns"), 22'000'000);
  EXPECT_EQ(json.at("live").at("highest_bytes").size(), 100u);
}

// --- one tensor, one op -------------------------------------------------------------------------

TensorFacts tensor() {
  TensorFacts facts;
  facts.tensor = {.name = "fc1", .shape = {4, 8}};
  facts.storage = "fc1";
  facts.storage_size = 128_B;
  facts.producer = "fc1";
  facts.readers = {{"gelu", "gelu", 0}};
  facts.holders = {{"gelu", "gelu", 0}, {"softmax", "softmax", 16}};
  facts.is_saved = true;
  facts.action = Action::Recompute;
  facts.reason = "asked for";
  facts.recovery = "norm1 to add2";
  facts.lives = {{Role::Value, 128_B, false, microseconds(1'000), microseconds(2'500)},
                 {Role::Gradient, 128_B, true, {}, {}}};
  return facts;
}

std::string text_of(const TensorFacts& facts) {
  ItemFacts item;
  item.tensor = facts;
  const std::string text = item_table(explanation(), item, wide);
  return text.substr(text.find("\nfc1: tensor"));
}

TEST(TensorText, SaysWhoNeedsItAndWhenItLives) {
  EXPECT_EQ(text_of(tensor()), R"(
fc1: tensor
  shape       [4, 8] float32, 128 B, activation
  made by     fc1
  read by     gelu (gelu, input 0)
  backward    needs it: gelu (gelu, input 0); softmax (softmax, output 0)
  decision    recompute (asked for)
  recovery    together with the ops norm1 to add2
  lives       value, 128 B, from 1.00 to 2.50 ms
              gradient, 128 B, always
)");
}

TEST(TensorText, SaysWhatIsNotSo) {
  TensorFacts facts = tensor();
  facts.producer = facts.recovery = "";
  facts.readers.clear(), facts.holders.clear(), facts.lives.clear();
  facts.is_saved = false;
  EXPECT_EQ(text_of(facts), R"(
fc1: tensor
  shape       [4, 8] float32, 128 B, activation
  made by     nobody in the step: it comes from outside
  read by     nobody
  backward    does not need it
)");
}

TEST(TensorText, NamesTheMemoryThatAViewIsPartOf) {
  TensorFacts facts = tensor();
  facts.storage = "qkv";
  facts.storage_size = 3_KiB;
  EXPECT_THAT(text_of(facts), HasSubstr("  memory      of qkv, 3.00 KiB\n"));
}

TEST(TensorText, ListsSixReadersAndSaysHowManyMore) {
  TensorFacts facts = tensor();
  facts.readers.assign(6, {"add", "add", 1});
  EXPECT_THAT(text_of(facts), Not(HasSubstr("more")));
  facts.readers.assign(8, {"add", "add", 1});
  EXPECT_THAT(text_of(facts), HasSubstr("add (add, input 1); … and 2 more\n"));
}

TEST(TensorJson, IsExact) {
  ItemFacts item;
  item.tensor = tensor();
  const Json json = Json::parse(item_json(explanation(), item));
  EXPECT_EQ(json.at("strategy"), "mesa");
  EXPECT_EQ(json.at("op"), nullptr);
  const Json& facts = json.at("tensor");
  EXPECT_EQ(facts.at("shape"), Json::parse("[4, 8]"));
  EXPECT_EQ(facts.at("needed_by_backward_of").at(1),
            Json::parse(R"({"op": "softmax", "kind": "softmax", "operand": "output 0"})"));
  EXPECT_EQ(facts.at("action"), "recompute");
  EXPECT_EQ(facts.at("saved"), true);
  EXPECT_EQ(facts.at("lives").at(0), Json::parse(R"({"role": "value", "bytes": 128,
      "persistent": false, "begin_ns": 1000000, "end_ns": 2500000})"));
}

OpFacts op() {
  OpFacts facts;
  facts.name = "fc1";
  facts.kind = OpKind::Linear;
  facts.block = "blocks.0";
  facts.operands = {{0, {.name = "x", .shape = {4, 2}}, true},
                    {16, {.name = "fc1", .shape = {4, 8}}, false}};
  RunFacts run;
  run.task = Task::Recompute;
  run.stream = StreamId{1};
  run.begin = microseconds(1'000), run.end = microseconds(2'500);
  run.cost.time = microseconds(1'200);
  run.cost.kernels = 2;
  run.cost.flops = 20e6;
  run.cost.bytes = 2048;
  facts.runs = {run};
  return facts;
}

std::string text_of(const OpFacts& facts) {
  ItemFacts item;
  item.op = facts;
  const std::string text = item_table(explanation(), item, wide);
  return text.substr(text.find("\nfc1: op"));
}

TEST(OpText, ListsOperandsAndRuns) {
  EXPECT_EQ(text_of(op()), R"(
fc1: op of kind linear, in blocks.0
  input 0     x [4, 2] float32, 32 B, held for the backward
  output 0    fc1 [4, 8] float32, 128 B
  run        begin   end    alone  kernels         work     moved  stream
                ms    ms
  recompute   1.00  2.50  1.20 ms        2  20.00 MFLOP  2.00 KiB       1
)");
}

TEST(OpText, SaysWhenAnOpNeverRuns) {
  OpFacts facts = op();
  facts.runs.clear();
  facts.block = "";
  EXPECT_THAT(text_of(facts), testing::StartsWith("\nfc1: op of kind linear\n"));
  EXPECT_THAT(text_of(facts), EndsWith("  runs        never: it only names a part of a tensor\n"));
}

OpFacts opaque_op() {
  OpFacts facts = op();
  facts.kind = OpKind::Opaque;
  facts.row = OpaqueRow{.operation = "aten::addmm",
                        .gradients = 0b101,
                        .runs_once = true,
                        .backward = {.workspace = 3_KiB}};
  facts.is_time_guessed = true;
  return facts;
}

TEST(OpText, SaysWhatTheRowOfAnOpaqueOneSays) {
  EXPECT_THAT(text_of(opaque_op()), testing::StartsWith(R"(
fc1: op of kind opaque, in blocks.0
  operation   aten::addmm
  gradients   of input 0, input 2
  workspace   0 B in the forward, 3.00 KiB in the backward
  recompute   never: it may run only once
  time        a guess, one walk over its operands: its row does not say
  input 0     x [4, 2])"));
  OpFacts plain = opaque_op();
  plain.row = OpaqueRow{.operation = "aten::randn"};
  plain.is_time_guessed = false;
  EXPECT_THAT(text_of(plain), HasSubstr("  gradients   of no input\n  input 0 "));
}

TEST(OpJson, HasTheRowOfAnOpaqueOne) {
  ItemFacts item;
  item.op = opaque_op();
  EXPECT_EQ(Json::parse(item_json(explanation(), item)).at("op").at("row"),
            Json::parse(R"({"operation": "aten::addmm", "gradients": ["input 0", "input 2"],
      "runs_once": true, "forward_workspace_bytes": 0, "backward_workspace_bytes": 3072,
      "time_is_guessed": true})"));
}

TEST(OpJson, IsExact) {
  ItemFacts item;
  item.op = op();
  const Json json = Json::parse(item_json(explanation(), item)).at("op");
  EXPECT_EQ(json.at("block"), "blocks.0");
  EXPECT_EQ(json.at("operands").at(0).at("operand"), "input 0");
  EXPECT_EQ(json.at("operands").at(0).at("held_for_backward"), true);
  EXPECT_EQ(json.at("runs").at(0), Json::parse(R"({"task": "recompute", "stream": 1,
      "begin_ns": 1000000, "end_ns": 2500000, "alone_ns": 1200000, "kernels": 2,
      "flops": 2e7, "moved_bytes": 2048.0})"));
}

}  // namespace
}  // namespace tidemark::cli::explanation_printed_test
