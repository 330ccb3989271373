// Tables align, wrap, drop columns and draw bars; sizes, times and counts get fitting units.
#include "cli/text/text_table.h"

#include <gtest/gtest.h>

#include "cli/text/units_text.h"
#include "cli/text/wrapping.h"
#include "tests/cli/occurrences.h"

namespace tidemark::cli::text_table_test {
namespace {

TextTable prices() {
  TextTable table;
  table.add_column({"fruit", Align::Left});
  table.add_column({"price", Align::Right, 10, "ct"});
  table.add_column({"remark", Align::Left, 1});
  table.add_row({{"apple"}, {"9"}, {"sweet"}});
  table.add_row({{"blackberry"}, {"125"}, {"wild"}});
  return table;
}

TEST(TextTable, AlignsColumns) {
  EXPECT_EQ(prices().draw({}),
            "fruit       price  remark\n"
            "               ct\n"
            "apple           9  sweet\n"
            "blackberry    125  wild\n");
}

TEST(TextTable, LeavesOutTheLeastImportantAndSaysSo) {
  EXPECT_EQ(prices().draw({.width = 20}, "elsewhere"),
            "fruit       price\n"
            "               ct\n"
            "apple           9\n"
            "blackberry    125\n"
            "(left out of 20 columns: remark; elsewhere)\n");
}

TEST(TextTable, LeavesOutPairsAsAWhole) {
  TextTable table;
  table.add_column({"fruit", Align::Left});
  table.add_column({"price", Align::Right, 1});
  table.add_column({"paid", Align::Right, 1, "", true});
  table.add_column({"weight"});
  table.add_row({{"apple"}, {"9"}, {"8"}, {"110"}});
  EXPECT_EQ(table.draw({.width = 30}), "fruit  price  paid  weight\napple      9     8     110\n");
  EXPECT_EQ(table.draw({.width = 20}),
            "fruit  weight\napple     110\n(left out of 20 columns: price)\n");
}

TEST(WrappedText, KeepsItsLinesAndIndentsWhatContinuesOne) {
  EXPECT_EQ(wrapped_text("one two three four\n\nfive\n", 12), "one two\n  three four\n\nfive\n");
  EXPECT_EQ(wrapped_text("", 12), "");
}

TEST(TextTable, ShowsNoColumnWithoutText) {
  TextTable table;
  table.add_column({"a", Align::Left});
  table.add_column({"b", Align::Left});
  table.add_row({{"1"}, {""}});
  EXPECT_EQ(table.draw({}), "a\n1\n");
}

TEST(TextTable, ContinuesWrappedCellsBelow) {
  TextTable table;
  table.add_column({"n", Align::Right});
  table.add_column({"text", Align::Wrapped});
  table.add_row({{"1"}, {"the quick brown fox jumps over"}});
  EXPECT_EQ(table.draw({.width = 29}),
            "n  text\n"
            "1  the quick brown fox jumps\n"
            "   over\n");
}

// No word of a wrapped cell can be cut: where the longest has no room, the column is left out.
TEST(TextTable, LeavesOutWhatCannotBeWrapped) {
  TextTable table;
  table.add_column({"name", Align::Left});
  table.add_column({"source", Align::Wrapped, 3});
  table.add_row({{"a"}, {"see tests/reference/steps_transformers-5.json"}});
  EXPECT_EQ(table.draw({.width = 47}),
            "name  source\n"
            "a     see\n"
            "      tests/reference/steps_transformers-5.json\n");
  EXPECT_EQ(table.draw({.width = 46}),
            "name\n"
            "a\n"
            "(left out of 46 columns: source)\n");
}

TEST(TextTable, DrawsBarsInEighths) {
  TextTable table;
  table.add_column({"", Align::Bar});
  table.add_column({"%", Align::Right});
  table.add_row({{"", Ink::Bar, 1}, {"100"}});
  table.add_row({{"", Ink::Bar, 0.5}, {"50"}});
  table.add_row({{"", Ink::Bar, 0.0625}, {"6"}});  // half of one of eight
  EXPECT_EQ(table.draw({.width = 13}),
            "            %\n"
            "████████  100\n"
            "████       50\n"
            "▌           6\n");
}

TEST(TextTable, MarksTheLimitOfBars) {
  TextTable table;
  table.add_column({"", Align::Bar});
  table.add_column({"%", Align::Right});
  table.add_row({{"", Ink::Bar, 1}, {"100"}});
  table.add_row({{"", Ink::Bar, 0.25}, {"25"}});
  table.set_mark(0.5, "the limit");
  EXPECT_EQ(table.draw({.width = 13}),
            "            %\n"
            "████│▒▒▒  100\n"
            "██  │      25\n"
            "│ the limit\n");
}

// A column of importance 10 stays, even where the table is then too wide.
TEST(TextTable, KeepsWhatIsNeededWhateverTheWidth) {
  TextTable table;
  table.add_column({"fruit", Align::Left});
  table.add_column({"price", Align::Right, 9});
  table.add_column({"a rather long title", Align::Left});
  table.add_row({{"apple"}, {"9"}, {"sweet"}});
  EXPECT_EQ(table.draw({.width = 10}),
            "fruit  a rather long title\n"
            "apple  sweet\n"
            "(left out of 10 columns: price)\n");
}

// What has no text takes no room, so nothing is gained by leaving it out.
TEST(TextTable, NamesNoEmptyColumnAmongThoseLeftOut) {
  TextTable table;
  table.add_column({"fruit", Align::Left});
  table.add_column({"nothing", Align::Right, 1});
  table.add_column({"", Align::Bar, 2});
  table.add_column({"price", Align::Right, 3});
  table.add_row({{"apple"}, {""}, {"", Ink::Bar, 1}, {"9"}});
  EXPECT_EQ(table.draw({.width = 12}),
            "fruit  price\napple      9\n(left out of 12 columns: bars)\n");
  EXPECT_EQ(table.draw({.width = 11}), "fruit\napple\n(left out of 11 columns: bars, price)\n");
}

// A bar of 24 characters at most: what is wider stays blank.
TEST(TextTable, DrawsBarsOfEightToTwentyFourCharacters) {
  TextTable table;
  table.add_column({"n"});
  table.add_column({"", Align::Bar, 1});
  table.add_row({{"1"}, {"", Ink::Bar, 2}});  // a share is never more than all
  const auto blocks = [&](std::size_t width) {
    return occurrences(table.draw({.width = width}), "█");
  };
  EXPECT_EQ(blocks(200), 24u);
  EXPECT_EQ(blocks(27), 24u);
  EXPECT_EQ(blocks(26), 23u);
  EXPECT_EQ(blocks(11), 8u);
  EXPECT_EQ(blocks(10), 0u);
}

// The mark takes the place of the last character at most, so that it is seen.
TEST(TextTable, MarksALimitNearTheEndOfTheBar) {
  TextTable table;
  table.add_column({"", Align::Bar});
  table.add_column({"%"});
  table.add_row({{"", Ink::Bar, 1}, {"100"}});
  table.set_mark(0.999, "the limit");
  EXPECT_EQ(table.draw({.width = 13}), "            %\n███████│  100\n│ the limit\n");
  table.set_mark(0, "the limit");
  EXPECT_EQ(table.draw({.width = 13}), "            %\n│▒▒▒▒▒▒▒  100\n│ the limit\n");
}

TEST(TextTable, ExplainsNoMarkOfABarThatIsLeftOut) {
  TextTable table;
  table.add_column({"name", Align::Left});
  table.add_column({"", Align::Bar, 1});
  table.add_row({{"apple"}, {"", Ink::Bar, 1}});
  table.set_mark(0.5, "the limit");
  EXPECT_EQ(table.draw({.width = 10}), "name\napple\n(left out of 10 columns: bars)\n");
}

TEST(Wrapping, BreaksAtBlanks) {
  EXPECT_EQ(wrapped_lines("a bb ccc", 4), (std::vector<std::string>{"a bb", "ccc"}));
  EXPECT_EQ(wrapped_lines("incomprehensible x", 4),
            (std::vector<std::string>{"incomprehensible", "x"}));
  EXPECT_EQ(wrapped_lines("", 4), std::vector<std::string>{""});
  EXPECT_EQ(wrapped_lines("by 5 % more", 6), (std::vector<std::string>{"by 5 %", "more"}));
  EXPECT_EQ(wrapped_lines("up by 5 %", 6), (std::vector<std::string>{"up by", "5 %"}));
  EXPECT_EQ(wrapped_lines("5 % more", 3), (std::vector<std::string>{"5 %", "more"}));
  EXPECT_EQ(wrapped_lines("ab cd", 4), (std::vector<std::string>{"ab", "cd"}));
}

TEST(SizeUnit, IsTheOneInWhichTheLargestIsTenOrMore) {
  using namespace literals;
  EXPECT_EQ(SizeUnit(12_GiB).with_unit(6_GiB), "6.00 GiB");
  EXPECT_EQ(SizeUnit(9_GiB).with_unit(6_GiB), "6144 MiB");
  EXPECT_EQ(SizeUnit(100_B).with_unit(7_B), "7 B");
  EXPECT_EQ(SizeUnit(0_B).with_unit(0_B), "0 B");
}

TEST(TimeUnit, IsTheOneInWhichTheLongestIsTenOrMore) {
  using namespace std::chrono_literals;
  EXPECT_EQ(TimeUnit(20ms)(1500us), "1.50");
  EXPECT_EQ(TimeUnit(20ms).name(), "ms");
  EXPECT_EQ(TimeUnit(9s)(1500ms), "1500");
}

TEST(ChangeText, HasASignAndNoNegativeZero) {
  EXPECT_EQ(change_text(1.332), "+33.2 %");
  EXPECT_EQ(change_text(0.333), "−66.7 %");
  EXPECT_EQ(change_text(0.9999), "0.0 %");
  EXPECT_EQ(change_text(1), "0.0 %");
}

TEST(CountText, UsesThousands) {
  EXPECT_EQ(count_text(992), "992");
  EXPECT_EQ(count_text(86'567'656), "86.6 M");
  EXPECT_EQ(count_text(13'015'864'320), "13.0 B");
  EXPECT_EQ(count_text(304'000'000), "304 M");
}

TEST(FlopText, UsesThousands) {
  EXPECT_EQ(flop_text(26.8e9), "26.80 GFLOP");
  EXPECT_EQ(flop_text(0), "0 FLOP");
}

}  // namespace
}  // namespace tidemark::cli::text_table_test
