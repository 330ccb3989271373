// A plan's page: a slider along each front, and for every budget why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/export/browser.h"

namespace tidemark::cli::plan_html_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string& plan_page() {
  static const std::string text = [] {
    const Folder folder;
    const Outcome outcome =
        tidemark_with({"plan", "vit-ti-16", "-b", "64", "-d", "t4", "--budget", "1GiB", "--allow",
                       "anything", "-o", folder / "plan.html"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return file_text(folder / "plan.html");
  }();
  return text;
}

nlohmann::json json_of(const std::string& html) {
  return nlohmann::json::parse(
      between(html, "<script type=\"application/json\" id=\"data\">", "</script>"));
}

TEST(PlanPage, HasASliderAlongTheFrontOfEachClass) {
  EXPECT_EQ(exports::count(plan_page(), "<input type=\"range\""), 3u);
  for (const char* name : {"exact", "exact,offload", "anything"})
    EXPECT_THAT(plan_page(), HasSubstr("<h2>Along the front: " + std::string(name) + "</h2>"));
  std::size_t points = 0;
  const nlohmann::json json = json_of(plan_page());
  for (const auto& front : json["fronts"]) points += front["front"].size();
  EXPECT_EQ(exports::count(plan_page(), "<article data-name="), points);
}

// What the slider shows is marked in the picture by how its tooltip begins.
TEST(PlanPage, EachPointIsInThePictureOnce) {
  for (std::size_t at = 0; (at = plan_page().find("data-mark=\"", at)) != std::string::npos; ++at) {
    const std::string mark = between(plan_page().substr(at), "data-mark=\"", "\"");
    EXPECT_EQ(exports::count(plan_page(), "<title>" + mark), 2u)
        << mark;  // for a page and for a phone
  }
}

TEST(PlanPage, SaysWhyForEveryBudget) {
  const std::string section = between(plan_page(), "Along the front: exact</h2>", "</section>");
  EXPECT_EQ(exports::count(section, "Memory is tightest in the "),
            exports::count(section, "<article "));
  EXPECT_THAT(section, HasSubstr("<th>per GiB</th>"));
  EXPECT_THAT(section, HasSubstr("recompute"));
}

TEST(PlanPage, NeedsNoNetwork) {
  for (const char* reference : {"src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest"})
    EXPECT_THAT(plan_page(), Not(HasSubstr(reference)));
}

TEST(PlanPage, TheSliderShowsOneBudgetAtATime) {
  if (!has_browser()) GTEST_SKIP() << "chromium is not installed";
  const std::string act =
      "const s=document.querySelector('.slide input');s.value=2;"
      "s.dispatchEvent(new Event('input'));"
      "const a=[...s.closest('section').querySelectorAll('article')];"
      "document.title=a.map((x,i)=>x.hidden?'':i).join('')+' '+"
      "(s.parentNode.querySelector('output').textContent===a[2].dataset.name)+' '+"
      "document.querySelectorAll('.page circle.here').length;";
  const std::string shown = dom(plan_page(), "1200,900", act);
  EXPECT_EQ(between(shown, "<title>", "</title>"), "2 true 3");  // a point of each front
}

}  // namespace
}  // namespace tidemark::cli::plan_html_test
