// A comparison as a table, as Markdown, as CSV and as JSON: which columns there are, what stands in
// them, and what is said below.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/comparison_fields.h"
#include "cli/reports/json_text.h"
#include "cli/reports/print_comparison.h"
#include "tests/cli/occurrences.h"
#include "tests/cli/small_comparison.h"

namespace tidemark::cli::comparison_printed_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace literals;

const Style wide = {.width = 200};

// --- the whole table ----------------------------------------------------------------------------

TEST(ComparisonTable, IsSceneOriginRowsRefusalsAndConclusion) {
  const Comparison comparison = small_comparison();
  const std::string text = comparison_table(comparison, wide, false);
  EXPECT_THAT(text, StartsWith("ViT: 86.0 M parameters, all trained\nbatch 4 × 197 tokens · fp32"));
  EXPECT_THAT(text, HasSubstr("\nAll numbers are predicted.\n\n" +
                              comparison_rows(comparison, wide, "csv") +
                              "\nDoes not apply:\n  reversible:a  no coupled blocks\n\n"));
  EXPECT_THAT(text, EndsWith("\n\n" + to_text(comparison.conclusion) + "\n"));
  EXPECT_THAT(text, Not(HasSubstr("No block saves")));
}

TEST(ComparisonTable, HasNoRowsWhereNothingApplies) {
  Comparison refused = small_comparison();
  refused.rows.erase(refused.rows.begin(), refused.rows.begin() + 2);
  EXPECT_THAT(comparison_table(refused, wide, false),
              AllOf(HasSubstr("predicted.\n\nDoes not apply:\n"), Not(HasSubstr("allocated  "))));
}

// Reasons begin in one column, two blanks behind the longest name, and go on there.
TEST(ComparisonTable, AlignsTheReasonsOfRefusals) {
  Comparison refused = small_comparison();
  refused.rows[0].applies = false;
  refused.rows[0].reason = "for a reason that does not fit a line";
  EXPECT_THAT(comparison_table(refused, {.width = 40}, false),
              HasSubstr("\n  vanilla       for a reason that does\n"
                        "                not fit a line\n"
                        "  reversible:a  no coupled blocks\n"));
}

// As under torch.compile, which refuses every strategy: one line names them all.
TEST(ComparisonTable, SaysOnceWhatRefusesMany) {
  Comparison refused = small_comparison();
  for (const char* strategy : {"mesa", "offload", "pareprop"}) {
    refused.rows.push_back(refused.rows[0]);
    refused.rows.back().strategy = strategy;
  }
  for (Report& row : refused.rows) row.applies = false, row.reason = "it is decided";
  refused.rows[1].reason = "for another reason";
  EXPECT_THAT(comparison_table(refused, {.width = 40}, false),
              HasSubstr("\nDoes not apply:\n"
                        "  vanilla, reversible:a, mesa,\n"
                        "    offload, pareprop: it is decided\n"
                        "  " +
                        refused.rows[1].strategy + "  for another reason\n"));
}

TEST(ComparisonTable, IsAsciiWhereTheTerminalIs) {
  const std::string text =
      comparison_table(small_comparison(), {.unicode = false, .width = 200}, false);
  EXPECT_THAT(text,
              AllOf(HasSubstr("batch 4 x 197 tokens"), HasSubstr(" ###################|%%%%  "),
                    HasSubstr("-50.0 %"), Not(HasSubstr("×"))));
}

// --- what a middle block saves ------------------------------------------------------------------

/// Vanilla saves 6 units in a linear and 2 in a gelu; checkpoint a quarter of that.
Comparison saving() {
  Comparison made = small_comparison();
  made.rows[0].units = {
      "blocks.5", 3_MiB, {{OpKind::Gelu, 2, 1.5}, {OpKind::Linear, 6, 3}}, 8, 4.5};
  made.rows[0].saved_ratio = 1;
  made.rows[1].units = {"blocks.5", 3_MiB, {{OpKind::Linear, 2, 0}}, 2, 2};
  made.rows[1].saved_ratio = 0.25;
  return made;
}

std::string units_of(const Comparison& comparison) {
  const std::string text = comparison_table(comparison, wide, true);
  const std::size_t begin = text.find("\nSaved by ");
  return text.substr(begin, text.find("\n\n", begin) + 1 - begin);
}

// Kinds stand in the order of the op table, whichever row has them; what is zero is left blank.
TEST(BlockUnits, HaveARowForEachCountingAndAColumnForEachKind) {
  EXPECT_EQ(units_of(saving()), R"(
Saved by blocks.5, in units of 3.00 MiB (one 16-bit tensor [batch, tokens, width]):
strategy    counting    saves  total  linear  gelu
vanilla     per op              8.00    6.00  2.00
            unique              4.50    3.00  1.50
checkpoint  per op    75.00 %   2.00    2.00
            unique              2.00
)");
}

// Of many kinds the last ones of the op table go first.
TEST(BlockUnits, LoseTheLastKindsOfANarrowTerminal) {
  Comparison many = saving();
  many.rows[0].units.kinds = {
      {OpKind::Linear, 6, 3}, {OpKind::Gelu, 2, 1}, {OpKind::Softmax, 1, 1}};
  const auto kind = [](OpKind of) { return std::string(to_string(of)); };
  std::vector<OpKind> kinds = {OpKind::Linear, OpKind::Gelu, OpKind::Softmax};
  std::ranges::sort(kinds);
  EXPECT_THAT(comparison_table(many, {.width = 46}, true),
              HasSubstr("\n(left out of 46 columns: " + kind(kinds[2]) + ", " + kind(kinds[1]) +
                        "; --format json has all)\n"));
}

TEST(BlockUnits, AreNotThereWhereNoBlockSavesAnything) {
  const std::string none = "\nNo block saves activations.\n";
  EXPECT_THAT(comparison_table(small_comparison(), wide, true), HasSubstr(none));
  Comparison refused = saving();
  refused.rows[0].applies = refused.rows[1].applies = false;
  EXPECT_THAT(comparison_table(refused, wide, true), HasSubstr(none));
}

// --- Markdown -----------------------------------------------------------------------------------

TEST(ComparisonMarkdown, HasTheSameNumbersInATable) {
  const std::string text = comparison_markdown(small_comparison());
  EXPECT_THAT(text, StartsWith("ViT: 86.0 M parameters, all trained  \nbatch 4 × 197 tokens"));
  EXPECT_THAT(text, HasSubstr(R"(
All numbers are predicted.
)"
                              "\n| strategy | allocated [MiB] | change | reserved | planned | step "
                              "[ms] | change | images/s | MFU | fits |\n"
                              R"(| --- | --: | --: | --: | --: | --: | --: | --: | --: | --- |
| vanilla | 40.00 | 0.0 % | 48.00 | 39.00 | 20.00 | 0.0 % | 200 | 50.0 % | no, 8.00 MiB short |
| checkpoint | 20.00 | −50.0 % | 24.00 | 19.00 | 25.00 | +25.0 % | 160 | 40.0 % | yes |

* `reversible:a` does not apply: no coupled blocks

)"));
  EXPECT_THAT(text, EndsWith("\n" + to_text(small_comparison().conclusion) + "\n"));
}

TEST(ComparisonMarkdown, HasBatchesAndNotesWhereThereAreAny) {
  Comparison searched = small_comparison();
  searched.scenario.finds_largest_batch = true;
  searched.rows.pop_back();
  searched.rows[0].batches = {.every = 3, .largest = 4};
  searched.rows[1].memory_ratio.reset();
  const std::string text = comparison_markdown(searched);
  EXPECT_THAT(
      text, AllOf(HasSubstr(" fits | max batch |\n"), HasSubstr(" --- | --: |\n"),
                  HasSubstr("short | 3 (4) |\n"), HasSubstr("| 20.00 |  | 24.00 |"),
                  HasSubstr(" yes |  |\n\n* max batch: every "), Not(HasSubstr("does not apply"))));
}

// --- for programs -------------------------------------------------------------------------------

TEST(FieldText, WritesEachKindOfValue) {
  EXPECT_EQ(field_text({}), "");
  EXPECT_EQ(field_text(true), "true");
  EXPECT_EQ(field_text(false), "false");
  EXPECT_EQ(field_text(std::int64_t{-3}), "-3");
  EXPECT_EQ(field_text(0.125), "0.125");
  EXPECT_EQ(field_text(std::string("a, b")), "a, b");
}

/// A row in which each number is another one.
Report numbered() {
  Report row = small_row("mesa", 40, 20);
  row.caution = "rounds";
  row.rank = RankClass{2};
  row.allocated_at_rest = {5};
  row.allocator_retries = 6;
  row.saved = {{7}, {8}};
  row.pinned = {9};
  row.samples_per_second = 10.5;
  row.mfu = 0.5;
  row.recovery = {Nanoseconds{11}, Nanoseconds{12}};
  row.communication = {Nanoseconds{13}, Nanoseconds{14}};
  row.bubble = Nanoseconds{15};
  row.overlap = Nanoseconds{16};
  row.launch_bound = true;
  row.short_by = {17};
  row.fits_expandable = false;
  row.batches = {.every = 18, .largest = 19, .cut_short = true};
  row.expandable_batches = {.every = 20, .largest = 21};
  row.memory_ratio = 0.25;
  row.time_ratio = 1.5;
  row.saved_ratio = 0.75;
  row.peak_at = "loss";
  return row;
}

TEST(RowFields, ReadTheReportsOwnNumbers) {
  const Json json = row_json(numbered());
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, Json>>{{"strategy", "mesa"},
                                                           {"applies", true},
                                                           {"reason", ""},
                                                           {"caution", "rounds"},
                                                           {"rank", "pp2"},
                                                           {"live_peak_bytes", 38 << 20},
                                                           {"planned_bytes", 39 << 20},
                                                           {"allocated_peak_bytes", 40 << 20},
                                                           {"allocated_at_rest_bytes", 5},
                                                           {"reserved_peak_bytes", 48 << 20},
                                                           {"allocator_retries", 6},
                                                           {"saved_per_op_bytes", 7},
                                                           {"saved_unique_bytes", 8},
                                                           {"pinned_host_bytes", 9},
                                                           {"step_ns", 20'000'000},
                                                           {"samples_per_s", 10.5},
                                                           {"throughput_per_s", 200.0},
                                                           {"throughput_unit", "images"},
                                                           {"mfu", 0.5},
                                                           {"recompute_ns", 11},
                                                           {"hidden_recompute_ns", 12},
                                                           {"communication_ns", 13},
                                                           {"exposed_communication_ns", 14},
                                                           {"bubble_ns", 15},
                                                           {"overlap_ns", 16},
                                                           {"launch_bound", true},
                                                           {"fits", true},
                                                           {"short_by_bytes", 17},
                                                           {"fits_expandable", false},
                                                           {"largest_batch", 18},
                                                           {"largest_batch_at_all", 19},
                                                           {"batches_cut_short", true},
                                                           {"largest_batch_expandable", 20},
                                                           {"memory_ratio", 0.25},
                                                           {"time_ratio", 1.5},
                                                           {"saved_ratio", 0.75},
                                                           {"peak_at", "loss"}})
    EXPECT_EQ(json.at(key), value) << key;
  EXPECT_EQ(json.size(), row_fields().size() + 2);  // and the two objects
}

TEST(RowFields, AreNullButForTheReasonWhereAStrategyDoesNotApply) {
  Report refused = numbered();
  refused.applies = false;
  refused.reason = "no floats";
  const Json json = row_json(refused);
  for (const auto& [key, value] : json.items())
    EXPECT_EQ(value.is_null(),
              key != "strategy" && key != "applies" && key != "reason" && key != "caution")
        << key;
  EXPECT_EQ(json.at("reason"), "no floats");
}

TEST(RowFields, AreNullWhereNothingIsKnown) {
  const Json json = row_json(small_row("vanilla", 40, 20));
  for (const char* key :
       {"rank", "fits_expandable", "largest_batch", "largest_batch_at_all", "batches_cut_short",
        "largest_batch_expandable", "memory_ratio", "time_ratio", "saved_ratio"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
  EXPECT_EQ(json.at("launch_bound"), false);
}

TEST(ComparisonCsv, HasTheKeysOfTheJsonAndALineForEachRow) {
  const std::string text = comparison_csv(small_comparison());
  EXPECT_THAT(text, StartsWith("strategy,applies,reason,caution,rank,live_peak_bytes,"));
  EXPECT_THAT(text, HasSubstr("\nvanilla,true,,,,39845888,40894464,41943040,0,50331648,0,"));
  EXPECT_THAT(text, HasSubstr("\nreversible:a,false,reversible: no coupled blocks,,,,,"));
  EXPECT_EQ(occurrences(text, "\n"), 4u);
}

TEST(ComparisonJson, HasTheInputsTheRowsAndTheConclusion) {
  const Json json = Json::parse(comparison_json(saving()));
  EXPECT_EQ(json.at("format"), "tidemark-compare-1");
  EXPECT_EQ(json.at("rows").size(), 3u);
  EXPECT_EQ(json.at("conclusion"), to_text(saving().conclusion));
  EXPECT_EQ(json.at("rows").at(0).at("block_units"),
            Json::parse(R"({"block": "blocks.5", "unit_bytes": 3145728, "per_op": 8.0,
                "unique": 4.5, "kinds": {"gelu": {"per_op": 2.0, "unique": 1.5},
                                         "linear": {"per_op": 6.0, "unique": 3.0}}})"));
}

}  // namespace
}  // namespace tidemark::cli::comparison_printed_test
