// SVG pictures: well-formed, drawn by another program, and showing the numbers of the step.
#include "simulator/export/pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/export/palette.h"
#include "simulator/export/stacks.h"
#include "simulator/export/svg.h"
#include "tests/export/tools.h"
#include "tests/simulator/chain.h"
#include "tests/simulator/recording/recorded.h"
#include "traces/presets.h"

namespace tidemark {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Recording vision(std::string_view strategy) {
  return recorded(build_trace(find_model("vit-ti-16"), {.batch = 2}), strategy);
}

Report row(std::string strategy, std::int64_t bytes, std::int64_t time) {
  Report report;
  report.strategy = std::move(strategy);
  report.allocated_peak = {bytes};
  report.step = Nanoseconds{time};
  report.fits = true;
  return report;
}

std::vector<std::string> all_pictures() {
  Trace hostile = small_trace();
  hostile.model = "<script>&\"'\x01\xff";
  hostile.ops[0].name = "</svg>]]>";
  const std::vector<Report> rows = {row("a<b", 100, 10), row("c", 50, 20), row("d", 60, 30)};
  const std::vector<SweepCurve> curves = {{"a<b", {1, 2, -1}}, {"c", {-1, -1, -1}}};
  const std::vector<std::string> points = {"8", "16", "32"};
  std::vector<std::string> pictures = {
      tradeoff_svg(rows, Bytes{80}, "t & u"), tradeoff_svg({}, Bytes{80}, "nothing"),
      batches_svg(rows, "b"), curves_svg(curves, points, Quantity::Size, 1.5, "s"),
      curves_svg({}, {}, Quantity::Rate, 0, "empty")};
  for (const Recording& recording :
       {recorded(hostile, "vanilla"), vision("pareprop"), recorded(chain(1), "vanilla")}) {
    pictures.push_back(memory_svg(recording));
    pictures.push_back(icicle_svg(recording));
  }
  pictures.push_back(stacked({pictures[0], pictures[5]}));
  return pictures;
}

TEST(Svg, OfEveryKindIsWellFormed) {
  if (!is_installed("xmllint")) GTEST_SKIP() << "xmllint is not installed";
  for (const std::string& picture : all_pictures()) EXPECT_TRUE(is_xml(picture));
}

TEST(Svg, IsDrawnByAnotherProgram) {
  if (!is_installed("rsvg-convert")) GTEST_SKIP() << "rsvg-convert is not installed";
  for (const std::string& picture : all_pictures()) EXPECT_EQ(rendered_size(picture).first, 960u);
}

TEST(Svg, OfOneStepIsAlwaysTheSameText) {
  EXPECT_EQ(memory_svg(vision("pareprop")), memory_svg(vision("pareprop")));
  EXPECT_EQ(icicle_svg(vision("mesa")), icicle_svg(vision("mesa")));
}

TEST(Svg, HasNoNumberInAnotherLocaleOrOutOfProportion) {
  EXPECT_EQ(svg_number(-0.001), "0");
  EXPECT_EQ(svg_number(12.345), "12.35");
  EXPECT_EQ(svg_number(1e6), "1000000");
  for (const std::string& picture : all_pictures()) {
    EXPECT_EQ(picture.find("nan"), std::string::npos);
    EXPECT_EQ(picture.find("inf\""), std::string::npos);
  }
}

TEST(Svg, EscapesWhatIsNoText) {
  EXPECT_EQ(xml_escaped("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(xml_escaped("x\x01y\xffz"), "x\uFFFDy\uFFFDz");
  EXPECT_EQ(xml_escaped("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(xml_escaped("µ…😀"), "µ…😀");
}

TEST(Svg, CutsTextToItsRoom) {
  EXPECT_EQ(fitted("abcdef", 60, 10), "abcdef");  // 6 em of 0.6 · 10 are 36
  EXPECT_EQ(fitted("abcdef", 30, 10), "abcd…");
  EXPECT_EQ(fitted("abcdef", 17, 10), "");
}

TEST(MemoryPicture, ShowsPeakStreamsAndEveryCategory) {
  const Recording recording = vision("pareprop");
  const std::string svg = memory_svg(recording);
  const Peak top = peak(recording.schedule, recording.timeline);
  EXPECT_THAT(svg, HasSubstr(">peak " + to_text(top.bytes) + "<"));
  EXPECT_THAT(svg, HasSubstr(">stream 1<"));
  for (std::size_t c = 0; c < category_count; ++c) {
    const bool is_there = std::ranges::find(recording.schedule.buffers, static_cast<Category>(c),
                                            &Buffer::category) != recording.schedule.buffers.end();
    EXPECT_EQ(svg.find(hex(category_colors[c].color)) != std::string::npos || !is_there, true)
        << categories[c].name;
  }
}

// x0 to x3 and the gradient of x4 are there before the last layer's backward; then that of x3.
TEST(StackedCurve, NeverLosesAPeakThatLastsForOneEvent) {
  const Recording recording = recorded(chain(4), "vanilla");
  const Bytes top = peak(recording.schedule, recording.timeline).bytes;
  for (const std::size_t columns : {1u, 2u, 7u, 1000u}) {
    Bytes highest;
    for (const BytesByCategory& bytes :
         stacked_curve(recording.schedule, recording.timeline, columns))
      highest = std::max(highest, total(bytes));
    EXPECT_EQ(highest, top) << columns;
  }
}

void expect_sums(const AliveNode& node) {
  if (node.children.empty()) return;
  Bytes sum;
  for (const AliveNode& child : node.children) sum += child.size, expect_sums(child);
  EXPECT_EQ(sum, node.size) << node.name;
}

TEST(AliveTree, AddsUpToThePeakAtEveryNode) {
  for (const char* strategy : {"vanilla", "mesa", "pareprop"}) {
    const Recording recording = vision(strategy);
    const AliveNode root = alive_tree(recording);
    const Peak top = peak(recording.schedule, recording.timeline);
    EXPECT_EQ(root.size, top.bytes);
    for (const AliveNode& node : root.children)
      for (std::size_t c = 0; c < category_count; ++c)
        if (categories[c].name == node.name) {
          EXPECT_EQ(node.size, top.by_category[c]);
        }
    expect_sums(root);
  }
}

TEST(CollapsedStacks, AddUpToThePeak) {
  const Recording recording = vision("checkpoint");
  std::istringstream lines(collapsed_stacks(recording));
  std::int64_t sum = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(count(line, ";"), 2u) << line;
    sum += std::stoll(line.substr(line.rfind(' ')));
  }
  EXPECT_EQ(Bytes{sum}, peak(recording.schedule, recording.timeline).bytes);
}

TEST(ParetoFront, HoldsWhatNothingElseBeatsInBoth) {
  std::vector<Report> rows = {row("slow and small", 10, 30), row("beaten", 25, 25),
                              row("fast and large", 40, 10), row("equal to the next", 20, 20),
                              row("middle", 20, 20),         row("refused", 1, 1)};
  rows.back().applies = false;
  EXPECT_THAT(pareto_front(rows), ElementsAre(2u, 3u, 0u));
}

TEST(TradeoffPicture, MarksTheRoomAndWhatDoesNotFit) {
  std::vector<Report> rows = {row("large", 100, 10), row("small", 10, 20)};
  rows[0].fits = false;
  const std::string svg = tradeoff_svg(rows, Bytes{50}, "t");
  EXPECT_THAT(svg, HasSubstr("room 50 B"));
  EXPECT_THAT(svg, HasSubstr("large: allocated 100 B, step 10 ns, does not fit"));
  EXPECT_EQ(count(svg, "<circle"), 2u);
}

TEST(BatchPicture, SaysWhereNotEvenOneFits) {
  std::vector<Report> rows = {row("a", 1, 1), row("b", 1, 1), row("unasked", 1, 1)};
  rows[0].batches = {.every = 12, .largest = 12}, rows[1].batches = BatchLimits{};
  const std::string svg = batches_svg(rows, "t");
  EXPECT_THAT(svg, HasSubstr(">not even 1<"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("unasked")));
}

}  // namespace
}  // namespace tidemark
