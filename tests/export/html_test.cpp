// The HTML report, as a browser sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/html_parts.h"
#include "tests/export/browser.h"

namespace tidemark::cli::html_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string& page() {
  static const std::string text = [] {
    const Folder folder;
    const std::string path = folder / "report.html";
    const Outcome outcome = tidemark_with({"compare", "vit-ti-16", "-b", "4", "--strategies",
                                           "vanilla,checkpoint,pareprop,reversible+mesa",
                                           "--budget", "2GiB", "--max-batch", "-o", path});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return file_text(path);
  }();
  return text;
}

TEST(HtmlReport, NeedsNoNetwork) {
  for (const char* reference : {"src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest"})
    EXPECT_THAT(page(), Not(HasSubstr(reference)));
  // What looks like an address is the name of the SVG language.
  EXPECT_EQ(exports::count(page(), "http"), exports::count(page(), "http://www.w3.org/2000/svg"));
}

TEST(HtmlReport, HoldsTheNumbersOfTheSameComparisonAsJson) {
  const std::string data =
      between(page(), "<script type=\"application/json\" id=\"data\">", "</script>");
  const auto json = nlohmann::json::parse(data);
  const auto direct = nlohmann::json::parse(
      tidemark("compare vit-ti-16 -b 4 --strategies vanilla,checkpoint,pareprop,reversible+mesa "
               "--budget 2GiB --max-batch --format json")
          .output);
  EXPECT_EQ(json, direct);
  for (const auto& row : json["rows"])
    if (row["applies"] == true) {
      EXPECT_THAT(page(), HasSubstr("data-value=\"" + row["allocated_peak_bytes"].dump() + "\""));
    }
}

TEST(HtmlReport, SaysWhatItAssumesAndThatItIsPredicted) {
  EXPECT_THAT(page(), HasSubstr("All numbers are predicted."));
  EXPECT_THAT(page(), HasSubstr("What the numbers assume"));
  EXPECT_THAT(page(), HasSubstr("reversible+mesa</b> does not apply"));
}

TEST(HtmlReport, CannotBeEndedByItsOwnData) {
  EXPECT_EQ(script_escaped("{\"a\": \"</script><b>\"}"), "{\"a\": \"\\u003c/script>\\u003cb>\"}");
  EXPECT_EQ(nlohmann::json::parse(script_escaped("\"</script>\"")), "</script>");
}

TEST(HtmlReport, ShowsOneStrategyAtATimeInABrowser) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  const std::string first = dom(page(), "1200,900");
  EXPECT_THAT(first, HasSubstr("<article data-name=\"vanilla\">"));
  EXPECT_THAT(first, HasSubstr("<article data-name=\"pareprop\" hidden=\"\">"));
  const std::string chosen = dom(page(), "1200,900", "", "#pareprop");
  EXPECT_THAT(chosen, HasSubstr("<article data-name=\"vanilla\" hidden=\"\">"));
  EXPECT_THAT(chosen, HasSubstr("<article data-name=\"pareprop\">"));
}

TEST(HtmlReport, OpensWithTheStrategyThatWasExplained) {
  const Folder folder;
  tidemark_with({"explain", "vit-ti-16", "--strategy", "mesa", "-o", folder / "x.html"});
  const std::string text = file_text(folder / "x.html");
  EXPECT_THAT(text, HasSubstr("data-first=\"mesa\""));
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  const std::string opened = dom(text, "1200,900");
  EXPECT_THAT(opened, HasSubstr("<article data-name=\"vanilla\" hidden=\"\">"));
  EXPECT_THAT(opened, HasSubstr("<article data-name=\"mesa\">"));
}

TEST(HtmlReport, IsNotWiderThanAPhone) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  // Headless windows are at least 500 pixels wide, so a frame stands for the phone.
  const std::string measure =
      "document.title=document.documentElement.scrollWidth<=innerWidth?'fits':'too wide';"
      "document.body.style.width='366px';"
      "const wide=[...document.body.querySelectorAll('header,section,p,ul,figure,.wide,svg')]"
      ".filter(e=>e.getBoundingClientRect().width>367).length;"
      "document.title+=' wide '+wide;";
  const std::string shown = dom(page(), "500,900", measure);
  EXPECT_THAT(shown, HasSubstr("<title>fits wide 0</title>"));
}

TEST(HtmlReport, HasPicturesOnAPhoneWhoseLettersCanBeRead) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  const std::string measure =
      "document.body.style.width='366px';"
      "const seen=[...document.querySelectorAll('svg text')].filter(t=>t.checkVisibility());"
      "document.title=(seen.length>20)+' '+seen.filter(t=>t.getBoundingClientRect().height<9)"
      ".length;";
  EXPECT_THAT(dom(page(), "500,900", measure), HasSubstr("<title>true 0</title>"));
}

// What a script says about all pictures, shown at their own size: each text that leaves its
// picture or lies on another text.
constexpr std::string_view texts_in_the_way =
    "for(const e of document.querySelectorAll('article,figure')){e.hidden=false;"
    "e.style.cssText='display:block;max-width:none'}"
    "let bad=[],seen=0;for(const svg of document.querySelectorAll('svg')){"
    "svg.style.width=svg.getAttribute('width')+'px';const all=svg.getBoundingClientRect();"
    "const boxes=[...svg.querySelectorAll('text')].map(t=>{seen++;"
    "const b=t.getBoundingClientRect();return{t,l:b.left+1,r:b.right-1,u:b.top+3,d:b.bottom-3}});"
    "for(const a of boxes){if(a.l<all.left-1||a.r>all.right+1||a.d>all.bottom)"
    "bad.push('outside: '+a.t.textContent);"
    "for(const b of boxes)if(a!==b&&a.l<b.r&&b.l<a.r&&a.u<b.d&&b.u<a.d)"
    "bad.push(a.t.textContent+' on '+b.t.textContent)}}"
    "document.title=(seen>100)+' '+bad.length+' '+bad.slice(0,9).join('; ');";

TEST(HtmlReport, HasNoTextThatIsCutOrLiesOnAnother) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  const std::string shown = dom(page(), "1200,900", std::string(texts_in_the_way));
  EXPECT_EQ(between(shown, "<title>", "</title>"), "true 0 ");
}

TEST(HtmlReport, SortsItsTableByExactNumbersAndTellsATouchedShape) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  const std::string act =
      "document.querySelectorAll('table.sorted th')[1].click();"
      "document.title=[...document.querySelectorAll('table.sorted tbody tr')]"
      ".map(r=>Number(r.cells[1].dataset.value)).every((v,i,a)=>i===0||a[i-1]<=v)?'sorted':'not';"
      "document.querySelector('svg circle title').parentNode.dispatchEvent(new "
      "MouseEvent('click',{bubbles:true}));";
  const std::string shown = dom(page(), "1200,900", act);
  EXPECT_THAT(shown, HasSubstr("<title>sorted</title>"));
  EXPECT_THAT(shown, HasSubstr("aria-sort=\"ascending\""));
  EXPECT_THAT(between(shown, "<div id=\"tip\"", "</div>"), HasSubstr("allocated"));
}

const std::string& sweep_page() {
  static const std::string text = [] {
    const Folder folder;
    const Outcome outcome =
        tidemark_with({"compare", "vit-ti-16", "-b", "2:64:x2", "--device", "rtx-4090,t4",
                       "--strategies", "vanilla,checkpoint", "-o", folder / "s.html"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return file_text(folder / "s.html");
  }();
  return text;
}

TEST(HtmlReport, OfASweepHasItsCurvesAndEachPoint) {
  EXPECT_EQ(exports::count(sweep_page(), "<article data-name="), 12u);
  EXPECT_EQ(exports::count(sweep_page(), "<svg "),
            2 * (2u * 2u + 12u));  // for a page and for a phone
  EXPECT_THAT(sweep_page(), HasSubstr("12 points: batch 2, 4, 8"));
}

TEST(HtmlReport, OfASweepHasNoTextThatIsCutOrLiesOnAnother) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  const std::string shown = dom(sweep_page(), "1200,900", std::string(texts_in_the_way));
  EXPECT_EQ(between(shown, "<title>", "</title>"), "true 0 ");
}

TEST(HtmlReport, OnPaperHasEveryPointOfASweep) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  if (!exports::is_installed("pdftotext"))
    GTEST_SKIP() << "pdftotext (poppler-utils) is not installed";
  const Folder folder;
  write_text(folder / "s.html", sweep_page());
  Surroundings around;
  around.environment = {"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "HOME=" + folder.path().string()};
  run_command({"timeout", "60", "chromium", "--headless", "--no-sandbox", "--disable-gpu",
               "--virtual-time-budget=2000", "--print-to-pdf=" + (folder / "s.pdf"),
               "file://" + (folder / "s.html")},
              around);
  const std::string paper = run_command({"pdftotext", "-layout", folder / "s.pdf", "-"}).output;
  EXPECT_EQ(exports::count(paper, "max batch") + exports::count(paper, "allocated [MiB]"), 12u);
  EXPECT_EQ(exports::count(paper, "does not fit"), 12u);  // the key of each trade-off
}

}  // namespace
}  // namespace tidemark::cli::html_test
