// A difference in its four formats: units by table, marks for what only one side has, sums of what
// is left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/print_diff.h"

namespace tidemark::cli::diff_printed_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t mib = 1 << 20;

diff::Diff example() {
  diff::Diff diff;
  diff.before = "vit · vanilla";
  diff.after = "vit · mesa";
  diff.tables = {
      {"peak by block",
       diff::Measure::Size,
       {{"blocks.0", 40 * mib, 20 * mib}, {"codes", {}, 10 * mib}, {"head", 5 * mib, {}}},
       2,
       diff::DiffRow{"all", 60 * mib, 45 * mib}},
      {"time by task", diff::Measure::Time, {{"forward", 20'000'000, 20'000'100}}, 0},
      {"runs", diff::Measure::Count, {{"kernels", 0, 7}}, 1},
      {"reserved", diff::Measure::Size, {}, 3}};
  diff.unmatched = {"host time", "decisions"};
  return diff;
}

TEST(DiffTable, HasAUnitPerTableAndSaysWhatIsNewAndGone) {
  EXPECT_EQ(diff_table(example(), {.unicode = true, .width = 100}, 12), R"(before: vit · vanilla
after:  vit · mesa

peak by block [MiB]
before  after  change
 40.00  20.00  −20.00  −50.0 %  blocks.0
        10.00  +10.00    [NEW]  codes
  5.00          −5.00   [GONE]  head
 60.00  45.00  −15.00  −25.0 %  all
2 unchanged

time by task [ms]
before  after  change
 20.00  20.00  +<0.01  0.0 %  forward

runs
before  after  change
     0      7      +7  kernels
1 unchanged

Unchanged: reserved

Only one of the two says: host time; decisions
)");
}

TEST(DiffTable, SumsUpWhatItLeavesOut) {
  const std::string text = diff_table(example(), {.unicode = true, .width = 100}, 1);
  EXPECT_THAT(text, HasSubstr("+5.00           … 2 more (--top N shows more)"));
  EXPECT_THAT(text, Not(HasSubstr("codes")));
}

TEST(DiffTable, HasNoOtherThanAsciiCharactersWhereTheLocaleHasNone) {
  for (const char c : diff_table(example(), {.unicode = false, .width = 100}, 1))
    EXPECT_GT(c, 0) << c;
}

TEST(DiffTable, OfEqualsSaysSo) {
  diff::Diff equal = example();
  for (diff::DiffTable& table : equal.tables) table.rows.clear();
  equal.unmatched.clear();
  constexpr const char* heads = "before: vit · vanilla\nafter:  vit · mesa\n";
  EXPECT_EQ(diff_table(equal, {.unicode = true}, 12),
            std::string(heads) + "\nNo number differs.\n");
  EXPECT_THAT(diff_markdown(equal, 12), HasSubstr("\nNo number differs.\n"));
}

TEST(DiffMarkdown, HasTheSameRows) {
  EXPECT_EQ(diff_markdown(example(), 2),
            "before: vit · vanilla  \nafter:  vit · mesa  \n"
            R"(
**peak by block [MiB]**

|  | before | after | change |  |
| --- | --: | --: | --: | --: |
| blocks.0 | 40.00 | 20.00 | −20.00 | −50.0 % |
| codes |  | 10.00 | +10.00 | [NEW] |
| … 1 more (--top N shows more) |  |  | −5.00 |  |
| all | 60.00 | 45.00 | −15.00 | −25.0 % |

2 unchanged

**time by task [ms]**

|  | before | after | change |  |
| --- | --: | --: | --: | --: |
| forward | 20.00 | 20.00 | +<0.01 | 0.0 % |

**runs**

|  | before | after | change |  |
| --- | --: | --: | --: | --: |
| kernels | 0 | 7 | +7 |  |

1 unchanged

Only one of the two says: host time; decisions
)");
}

TEST(DiffCsv, HasAllRowsExactly) {
  EXPECT_EQ(diff_csv(example()),
            "table,measure,key,before,after,change\n"
            "peak by block,bytes,blocks.0,41943040,20971520,-20971520\n"
            "peak by block,bytes,codes,,10485760,10485760\n"
            "peak by block,bytes,head,5242880,,-5242880\n"
            "time by task,nanoseconds,forward,20000000,20000100,100\n"
            "runs,count,kernels,0,7,7\n");
}

TEST(DiffJson, HasAllRowsExactly) {
  const Json json = Json::parse(diff_json(example()));
  EXPECT_EQ(json.at("before"), "vit · vanilla");
  EXPECT_EQ(json.at("unmatched"), Json::parse(R"(["host time", "decisions"])"));
  EXPECT_EQ(json.at("tables").size(), 4u);
  const Json& peak = json.at("tables").at(0);
  EXPECT_EQ(
      peak.at("rows").at(1),
      Json::parse(R"({"key": "codes", "before": null, "after": 10485760, "change": 10485760})"));
  EXPECT_EQ(peak.at("unchanged"), 2);
  EXPECT_EQ(peak.at("all").at("change"), -15 * mib);
  EXPECT_EQ(json.at("tables").at(1).at("all"), nullptr);
}

}  // namespace
}  // namespace tidemark::cli::diff_printed_test
