// The parts of a page: names cannot break it, and it can be read without its script.
#include "cli/reports/html_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/export/pictures.h"
#include "cli/reports/html_parts.h"
#include "tests/cli/occurrences.h"

namespace tidemark::cli::html_page_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(HtmlPage, BeginsWithItsTitle) {
  const std::string head = page_head("A & B <b>", {"one", "two > 1"}, "All numbers are predicted.");
  EXPECT_THAT(head,
              AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("<title>A &amp; B &lt;b&gt;</title>"),
                    HasSubstr("<h1>A &amp; B &lt;b&gt;</h1>\n<p>one</p>\n<p>two &gt; 1</p>\n"),
                    HasSubstr("All numbers are predicted."), EndsWith("</header>\n")));
  EXPECT_EQ(occurrences(head, "<style>"), 1u);
  EXPECT_THAT(head, Not(HasSubstr("href=")));  // one file: its style is in it
}

// What stands in the page as JSON must not end its element.
TEST(HtmlPage, KeepsItsNumbersInside) {
  const std::string tail = page_tail(R"({"name": "</script><b>"})");
  EXPECT_EQ(occurrences(tail, "</script>"), 2u);  // of the numbers, and of the script
  EXPECT_THAT(tail, AllOf(StartsWith("<footer>"), HasSubstr("<p>Tidemark "),
                          EndsWith("</body>\n</html>\n"), Not(HasSubstr("src="))));
}

TEST(HtmlPage, EscapesEveryEndOfAScript) {
  EXPECT_EQ(script_escaped("no end"), "no end");
  EXPECT_EQ(script_escaped("a</b>"), "a\\u003c/b>");
  const std::string two = script_escaped("</script></SCRIPT>");
  EXPECT_THAT(two, AllOf(Not(HasSubstr("</s")), Not(HasSubstr("</S"))));
}

TEST(HtmlPage, SectionsMayBeOfAKind) {
  EXPECT_EQ(page_section("a < b", "<p>c</p>"),
            "<section>\n<h2>a &lt; b</h2>\n<p>c</p></section>\n");
  EXPECT_THAT(page_section("t", "", "wide"), StartsWith("<section class=\"wide\">\n"));
}

// The style sheet shows one of the two.
TEST(HtmlPage, DrawsAPictureForAPageAndForAPhone) {
  const std::string figure =
      page_figure([](double width) { return width == exports::page_width ? "large" : "small"; });
  EXPECT_GT(exports::page_width, exports::phone_width);
  EXPECT_THAT(figure,
              AllOf(HasSubstr("class=\"page\">\nlarge"), HasSubstr("class=\"phone\">\nsmall")));
}

const std::vector<Article> articles = {{"vanilla", "<p>1</p>"}, {"a\"b", "<p>2</p>", "batch <2>"}};

TEST(HtmlPage, AChoiceNamesEveryArticleAndAll) {
  const std::string text = page_choice("Strategy", articles, "a\"b");
  EXPECT_THAT(text, AllOf(HasSubstr("<label>Strategy: <select data-first=\"a&quot;b\">"),
                          HasSubstr("<option>vanilla</option>\n<option>a&quot;b</option>\n"
                                    "<option value=\"\">all</option>")));
  EXPECT_EQ(occurrences(text, "<article "), 2u);
  EXPECT_LT(text.find("<p>1</p>"), text.find("<p>2</p>"));
  EXPECT_THAT(text, HasSubstr("hidden"));  // until the script shows it: without one all are there
}

TEST(HtmlPage, AnArticleHasItsNameAndMark) {
  const std::string text = page_choice("Strategy", articles, "vanilla");
  EXPECT_THAT(text,
              HasSubstr("<article data-name=\"vanilla\">\n<h3>vanilla</h3>\n<p>1</p></article>"));
  EXPECT_THAT(text, HasSubstr("<article data-name=\"a&quot;b\" data-mark=\"batch &lt;2&gt;\">"));
}

TEST(HtmlPage, ASliderGoesFromTheFirstToTheLast) {
  EXPECT_THAT(page_slider("Budget", articles, 1), HasSubstr("min=\"0\" max=\"1\" value=\"1\""));
  EXPECT_THAT(page_slider("Budget", {articles[0]}, 0), HasSubstr("max=\"0\" value=\"0\""));
  EXPECT_THAT(page_slider("Budget", {}, 0), HasSubstr("max=\"0\""));
  EXPECT_EQ(occurrences(page_slider("Budget", articles, 0), "<article "), 2u);
}

}  // namespace
}  // namespace tidemark::cli::html_page_test
