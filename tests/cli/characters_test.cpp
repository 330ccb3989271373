// Characters and cells: how wide text is, its ASCII form, its colours, and what is quoted where.
#include <gtest/gtest.h>

#include "cli/text/csv.h"
#include "cli/text/terminal.h"

namespace tidemark::cli::characters_test {
namespace {

TEST(DisplayWidth, CountsCharactersNotBytes) {
  EXPECT_EQ(display_width(""), 0u);
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("−25 µs"), 6u);  // in nine bytes
  EXPECT_EQ(display_width("█▏"), 2u);
  EXPECT_EQ(display_width("é…"), 2u);
}

// Each character of two or three bytes becomes one of one, so that columns stay where they are.
TEST(Ascii, KeepsTheWidth) {
  for (const auto& [from, to] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", ""},
           {"plain |", "plain |"},
           {"−1.5 µs", "-1.5 us"},
           {"a → b", "a > b"},
           {"4 × 197 · fp32", "4 x 197 | fp32"},
           {"█▋▏ │▒", "##. |%"},
           {"… and 3 more", "~ and 3 more"},
           {"≥ 8", "> 8"},
           {"é", "?"},  // what no table of ours has
           {"日本", "??"}}) {
    EXPECT_EQ(to_ascii(from), to);
    EXPECT_EQ(display_width(from), display_width(to)) << from;
  }
}

// Nothing is painted plainly, and nothing without colours: widths are counted before.
TEST(Paint, PutsColoursAroundTextWhereThereAreAny) {
  const Style colored = {.color = true};
  EXPECT_EQ(colored.paint("a", Ink::Bold), "\x1b[1ma\x1b[0m");
  EXPECT_EQ(colored.paint("a", Ink::Dim), "\x1b[2ma\x1b[0m");
  EXPECT_EQ(colored.paint("a", Ink::Good), "\x1b[32ma\x1b[0m");
  EXPECT_EQ(colored.paint("a", Ink::Bad), "\x1b[31ma\x1b[0m");
  EXPECT_EQ(colored.paint("a", Ink::Bar), "\x1b[36ma\x1b[0m");
  EXPECT_EQ(colored.paint("a", Ink::Title), "\x1b[1;4ma\x1b[0m");
  EXPECT_EQ(colored.paint("a", Ink::Plain), "a");
  EXPECT_EQ(colored.paint("", Ink::Bad), "");
  EXPECT_EQ(Style{}.paint("a", Ink::Bad), "a");
}

// RFC 4180: in quotes stand commas, quotes and line ends; a quote is doubled.
TEST(CsvLine, QuotesWhatWouldEndACell) {
  EXPECT_EQ(csv_line({}), "\n");
  EXPECT_EQ(csv_line({"a"}), "a\n");
  EXPECT_EQ(csv_line({"", ""}), ",\n");
  EXPECT_EQ(csv_line({"a b", "1.5"}), "a b,1.5\n");
  EXPECT_EQ(csv_line({"a,b"}), "\"a,b\"\n");
  EXPECT_EQ(csv_line({"a\nb", "c\rd"}), "\"a\nb\",\"c\rd\"\n");
  EXPECT_EQ(csv_line({"say \"a\""}), "\"say \"\"a\"\"\"\n");
}

TEST(MarkdownLine, EscapesWhatWouldEndACell) {
  EXPECT_EQ(markdown_line({}), "|\n");
  EXPECT_EQ(markdown_line({"a", ""}), "| a |  |\n");
  EXPECT_EQ(markdown_line({"a|b", "c\\d"}), "| a\\|b | c\\\\d |\n");
  EXPECT_EQ(markdown_line({"a\nb"}), "| a b |\n");
}

}  // namespace
}  // namespace tidemark::cli::characters_test
