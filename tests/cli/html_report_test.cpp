// The page of a comparison and of a sweep: a table whose cells sort by exact values, each note
// once, what was assumed, and which sections there are.
#include "cli/reports/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/reports/html_parts.h"
#include "cli/reports/print_sweep.h"
#include "tests/cli/occurrences.h"
#include "tests/cli/small_comparison.h"
#include "tests/traces/small_trace.h"

namespace tidemark::cli::html_report_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace literals;

std::string row_of(const Comparison& comparison, const std::string& strategy) {
  const std::string table = report_table(comparison);
  const std::size_t begin = table.find("<tr><td>" + strategy);
  return table.substr(begin, table.find("</tr>", begin) - begin);
}

TEST(ReportTable, HasUnitsInItsTitles) {
  EXPECT_THAT(
      report_table(small_comparison()),
      StartsWith("<div class=\"wide\"><table class=\"sorted\">\n<thead><tr><th>strategy</th>"
                 "<th>allocated [MiB]</th><th>change</th><th>reserved</th><th>planned</th>"
                 "<th>live</th><th>step [ms]</th><th>change</th><th>images/s</th><th>MFU</th>"
                 "<th>recompute</th><th>hidden</th><th>fits</th></tr></thead>\n<tbody>\n<tr>"));
}

// 20 MiB are 20971520 bytes; what is zero sorts as 0 and shows nothing.
TEST(ReportTable, SortsByExactValues) {
  EXPECT_EQ(row_of(small_comparison(), "checkpoint"),
            "<tr><td>checkpoint</td><td data-value=\"20971520\">20.00</td>"
            "<td class=\"good\" data-value=\"0.5\">−50.0 %</td>"
            "<td data-value=\"25165824\">24.00</td><td data-value=\"19922944\">19.00</td>"
            "<td data-value=\"18874368\">18.00</td><td data-value=\"25000000\">25.00</td>"
            "<td class=\"bad\" data-value=\"1.25\">+25.0 %</td><td data-value=\"160\">160</td>"
            "<td data-value=\"0.4\">40.0 %</td><td data-value=\"5000000\">5.00</td>"
            "<td data-value=\"0\"></td><td class=\"text good\">yes</td>");
}

TEST(ReportTable, HasNoRowOfWhatDoesNotApply) {
  EXPECT_EQ(occurrences(report_table(small_comparison()), "<tr>"), 3u);  // and the titles
}

TEST(ReportTable, SortsWhatHasNoRatioAsUnchanged) {
  Comparison alone = small_comparison();
  EXPECT_THAT(row_of(alone, "vanilla"), HasSubstr("<td class=\"good\" data-value=\"1\"></td>"));
  EXPECT_THAT(row_of(alone, "vanilla"), HasSubstr("<td class=\"text bad\">no, 8.00 MiB short"));
  alone.rows[0].memory_ratio.reset();
  EXPECT_THAT(row_of(alone, "vanilla"), HasSubstr("40.00</td><td data-value=\"1\"></td><td "));
}

TEST(ReportTable, HasBatchesWhereAnyRowHas) {
  Comparison searched = small_comparison();
  EXPECT_THAT(report_table(searched), Not(HasSubstr("max batch")));
  searched.rows[1].batches = {.every = 6, .largest = 7};
  EXPECT_THAT(report_table(searched), HasSubstr("<th>fits</th><th>max batch</th></tr>"));
  EXPECT_THAT(row_of(searched, "checkpoint"), EndsWith("<td data-value=\"6\">6 (7)</td>"));
  EXPECT_THAT(row_of(searched, "vanilla"), EndsWith("<td data-value=\"0\"></td>"));
}

TEST(ReportTable, HasEachNoteOnceWithItsStrategies) {
  Comparison noted = small_comparison();
  noted.rows[0].launch_bound = noted.rows[1].launch_bound = true;
  noted.rows[1].caution = "a < b";
  noted.rows[0].fits_expandable = true;
  EXPECT_THAT(
      report_table(noted),
      EndsWith("</table></div>\n<ul>\n<li>fragmented: with --alloc-conf expandable_segments:True "
               "fits: vanilla</li>\n<li><b>vanilla, checkpoint</b>: launch-bound: for more than a "
               "tenth of the step, the device waits for the host</li>\n"
               "<li><b>checkpoint</b>: a &lt; b</li>\n"
               "<li><b>reversible:a</b> does not apply: no coupled blocks</li>\n</ul>\n"));
}

TEST(ReportTable, HasNoListWhereThereIsNothingToNote) {
  Comparison plain = small_comparison();
  plain.rows.pop_back();
  EXPECT_THAT(report_table(plain), EndsWith("</tbody>\n</table></div>\n"));
}

TEST(Assumptions, SayWhatTheDevicesFiguresAre) {
  Comparison comparison = small_comparison();
  comparison.scenario.device.context = 2_MiB;
  comparison.scenario.device.sm_count = 108;
  comparison.scenario.device.bytes_per_second = 1.5549e12;
  comparison.scenario.device.host_launch = Nanoseconds{4'500};
  EXPECT_THAT(
      assumptions(comparison),
      AllOf(StartsWith("<ul>\n<li>Which tensors are cast, "), EndsWith("</li>\n</ul>\n"),
            HasSubstr("Room for tensors: 32.0 MiB, the device&#39;s 34.0 MiB less 2.00 MiB for the "
                      "CUDA context."),
            HasSubstr("Times: a cost model of GPU with 108 SMs and 1555 GB/s; 4.50 µs for the host "
                      "to launch a kernel. tidemark devices gpu names"),
            HasSubstr("allocator with its default settings.")));
  EXPECT_EQ(occurrences(assumptions(comparison), "<li>"), 7u);
  comparison.scenario.budget = 32_MiB;
  comparison.budget.allocator.expandable_segments = true;
  EXPECT_THAT(assumptions(comparison), AllOf(HasSubstr("Room for tensors: 32.0 MiB, a budget."),
                                             HasSubstr("allocator as set by --alloc-conf.")));
}

// --- pages --------------------------------------------------------------------------------------

std::vector<std::string> sections_of(const std::string& page) {
  std::vector<std::string> titles;
  for (std::size_t at = page.find("<h2>"); at != page.npos; at = page.find("<h2>", at + 1))
    titles.push_back(page.substr(at + 4, page.find("</h2>", at) - at - 4));
  return titles;
}

/// Of a step that can be drawn.
Comparison drawable() {
  Comparison made = small_comparison();
  made.scenario.trace = std::make_shared<const Trace>(small_trace());
  made.scenario.device = find_device("t4");
  made.scenario.strategies = {parse_strategy("vanilla")};
  made.rows.resize(1);
  return made;
}

TEST(HtmlReport, OfAComparisonHasItsTableAndPictures) {
  Comparison comparison = drawable();
  const std::string page = html_report(std::span(&comparison, 1), "vanilla");
  EXPECT_THAT(sections_of(page), testing::ElementsAre("What each strategy needs and costs",
                                                      "What memory costs in time", "The step",
                                                      "What the numbers assume"));
  EXPECT_THAT(page,
              AllOf(HasSubstr("<title>Tidemark: ViT</title>"), Not(HasSubstr("points:")),
                    HasSubstr("vit on NVIDIA T4"), HasSubstr("<select data-first=\"vanilla\">"),
                    HasSubstr("<article data-name=\"vanilla\">"),
                    HasSubstr("<p class=\"conclusion\">Vanilla is 8.00 MiB short; "),
                    HasSubstr("tidemark-compare-1")));
  comparison.rows[0].batches = {.every = 3, .largest = 3};
  EXPECT_THAT(sections_of(html_report(std::span(&comparison, 1))),
              testing::Contains("Largest batch"));
}

TEST(HtmlReport, OfASweepHasAnArticleForEachPoint) {
  std::vector<Comparison> points = {small_comparison(), small_comparison()};
  points[1].scenario.step.batch = 8;
  const std::string page = html_report(points);
  EXPECT_THAT(sections_of(page), testing::ElementsAre("Over the sweep", "What fits", "Each point",
                                                      "What the numbers assume"));
  EXPECT_THAT(
      page, AllOf(HasSubstr("<title>Tidemark: ViT, a sweep</title>"),
                  HasSubstr("<p>2 points: batch 4, 8</p>"), HasSubstr("<section class=\"points\">"),
                  HasSubstr("<li>checkpoint fits to batch 8, the largest asked</li>"),
                  HasSubstr("<article data-name=\"batch 4\">"),
                  HasSubstr("<article data-name=\"batch 8\">"), HasSubstr("tidemark-sweep-1")));
  EXPECT_EQ(occurrences(page, "<p class=\"conclusion\">"), 2u);
  // Memory and rate of the sweep and a trade-off of each point, for pages and for phones.
  EXPECT_EQ(occurrences(page, "<figure class=\"page\">"), 4u);
  EXPECT_EQ(occurrences(page, "<svg "), 8u);
  EXPECT_THAT(page, AllOf(HasSubstr("class=\"page\">\n" + sweep_svgs(points, 960)[0]),
                          HasSubstr("class=\"phone\">\n" + sweep_svgs(points, 360)[0])));
}

// So that pictures of two points can be compared at a glance.
TEST(HtmlReport, HasTheTradeOffsOfAllPointsOnTheSameAxes) {
  std::vector<Comparison> points = {small_comparison(), small_comparison()};
  points[1].scenario.step.batch = 8;
  const auto first_article = [&] {
    const std::string page = html_report(points);
    const std::size_t begin = page.find("<article data-name=\"batch 4\">");
    return page.substr(begin, page.find("</article>", begin) - begin);
  };
  const std::string before = first_article();
  points[1].rows[0].allocated_peak = 400_MiB;
  EXPECT_NE(first_article(), before);
}

}  // namespace
}  // namespace tidemark::cli::html_report_test
