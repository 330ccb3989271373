// SVG pictures: well-formed, drawn by another program, and showing the numbers of the step.
#include "analysis/export/pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/export/axis.h"
#include "analysis/export/caption.h"
#include "analysis/export/palette.h"
#include "analysis/export/stacks.h"
#include "analysis/export/svg.h"
#include "tests/analysis/recording/recorded.h"
#include "tests/export/tools.h"
#include "tests/simulator/chain.h"
#include "traces/presets.h"

namespace tidemark::exports::pictures_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

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
  const SweepPicture sweep{
      "s", "batch", Quantity::Size, {{"a<b", {1, 2, -1}}, {"c", {-1, -1, -1}}}, {"8", "16", "32"},
      1.5};
  const std::vector<Recording> recordings = {recorded(hostile, "vanilla"), vision("pareprop"),
                                             recorded(chain(1), "vanilla")};
  std::vector<std::string> pictures;
  for (const double width : {page_width, phone_width}) {
    pictures.push_back(tradeoff_svg({rows, Bytes{80}, "t & u"}, width));
    pictures.push_back(tradeoff_svg({{}, Bytes{80}, "nothing"}, width));
    pictures.push_back(batches_svg(rows, "b", width));
    pictures.push_back(curves_svg(sweep, extent_of(sweep), width));
    pictures.push_back(curves_svg({.title = "empty", .quantity = Quantity::Rate}, {}, width));
    for (const Recording& recording : recordings) {
      pictures.push_back(memory_svg(recording, extent_of(recordings), width));
      pictures.push_back(icicle_svg(recording, width));
    }
  }
  pictures.push_back(stacked({pictures[0], pictures[5]}));
  return pictures;
}

// The texts of a picture, in order.
std::vector<std::string> texts(const std::string& svg) {
  std::vector<std::string> found;
  for (std::size_t at = svg.find("<text "); at != std::string::npos; at = svg.find("<text ", at)) {
    at = svg.find('>', at) + 1;
    found.push_back(svg.substr(at, svg.find('<', at) - at));
  }
  return found;
}

TEST(Svg, OfEveryKindIsWellFormed) {
  if (!is_installed("xmllint")) GTEST_SKIP() << "xmllint is not installed";
  for (const std::string& picture : all_pictures()) EXPECT_TRUE(is_xml(picture));
}

TEST(Svg, IsDrawnByAnotherProgram) {
  if (!is_installed("rsvg-convert")) GTEST_SKIP() << "rsvg-convert is not installed";
  for (const std::string& picture : all_pictures()) {
    const unsigned width = rendered_size(picture).first;
    EXPECT_TRUE(width == 960 || width == 360) << width;
  }
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

TEST(TradeoffPicture, MarksTheBudgetAndWhatDoesNotFit) {
  std::vector<Report> rows = {row("large", 100, 10), row("small", 10, 20)};
  rows[0].fits = false;
  const std::string svg = tradeoff_svg({rows, Bytes{50}, "t"});
  EXPECT_THAT(texts(svg), Contains("memory budget 50 B").Times(2));  // at the line, in the key
  EXPECT_THAT(svg, HasSubstr("large: allocated 100 B, step 10 ns, does not fit"));
  EXPECT_THAT(texts(tradeoff_svg({rows, Bytes{5000}, "t"})),
              Contains("memory budget 4.88 KiB, beyond the axis"));
}

TEST(TradeoffPicture, HasAKeyAndSaysWhichMemoryAndTimeItShows) {
  const std::vector<Report> rows = {row("large", 100, 10), row("small", 10, 20)};
  for (const double width : {page_width, phone_width}) {
    const std::vector<std::string> shown = texts(tradeoff_svg({rows, Bytes{50}, "t"}, width));
    EXPECT_THAT(shown, Contains("another needs less of both"));
    EXPECT_THAT(shown, Contains("does not fit"));
    std::string all;
    for (const std::string& text : shown) all += text + " ";
    EXPECT_THAT(all, HasSubstr("allocated memory at the peak, without what the allocator only"));
    EXPECT_THAT(all, HasSubstr("more time than the fastest, which takes 10 ns"));
  }
}

TEST(TradeoffPicture, OfOneComparisonBeginsAtNoMemoryAndAtTheFastest) {
  const std::vector<Report> rows = {row("large", 1000, 10), row("small", 990, 12)};
  const auto shown = texts(tradeoff_svg({rows, Bytes{}, "t"}));
  EXPECT_THAT(shown, IsSupersetOf({"0", "200", "1000", "+0 %", "+5 %", "+20 %"}));
}

// The axes' texts; names of strategies, captions and keys differ.
std::vector<std::string> axis_texts(const std::string& svg) {
  std::vector<std::string> found;
  for (const std::string& text : texts(svg))
    if (text.ends_with(" %") || text.find_first_not_of("0123456789.") == std::string::npos)
      found.push_back(text);
  return found;
}

TEST(TradeoffPicture, OfOneSweepSharesItsAxes) {
  const std::vector<Report> little = {row("a", 10, 10), row("b", 7, 11)},
                            much = {row("a", 1000, 500), row("b", 700, 650)};
  TradeoffExtent extent;
  extent.include(little), extent.include(much);
  const std::string first = tradeoff_svg({little, Bytes{800}, "x"}, extent),
                    second = tradeoff_svg({much, Bytes{800}, "x"}, extent);
  EXPECT_EQ(axis_texts(first), axis_texts(second));
  // From 7 to 1000 by powers of two: neither lies on the ground.
  EXPECT_THAT(axis_texts(first), IsSupersetOf({"4", "64", "1024", "+0 %", "+30 %"}));
  EXPECT_THAT(first, HasSubstr("logarithmic"));
}

TEST(TradeoffPicture, NamesEveryPointOnAPhone) {
  std::vector<Report> rows;
  for (int i = 0; i < 12; ++i)
    rows.push_back(row("overlap+checkpoint " + std::to_string(i), 2000 - i, 1000 + i));
  const auto shown = texts(tradeoff_svg({rows, Bytes{}, "t"}, phone_width));
  for (const Report& one : rows) EXPECT_THAT(shown, Contains(one.strategy));
}

TEST(SweepPicture, TellsDashedLinesApartInItsKey) {
  SweepPicture picture{.title = "t", .dimension = "batch", .points = {"1", "2"}};
  for (std::size_t i = 0; i < line_colors.size() + 2; ++i)
    picture.curves.push_back({"strategy " + std::to_string(i), {1, 2}});
  for (const double width : {page_width, phone_width}) {
    const std::string svg = curves_svg(picture, extent_of(picture), width);
    EXPECT_EQ(count(svg, "class=\"front dashed\""),
              2u * 2u);  // the line, and its stroke in the key
    for (const SweepCurve& curve : picture.curves) EXPECT_THAT(texts(svg), Contains(curve.name));
  }
}

TEST(MemoryPicture, OfTwoStrategiesSharesItsAxes) {
  const std::vector<Recording> both = {vision("vanilla"), vision("reversible")};
  EXPECT_EQ(axis_texts(memory_svg(both[0], extent_of(both))),
            axis_texts(memory_svg(both[1], extent_of(both))));
  EXPECT_NE(axis_texts(memory_svg(both[0])), axis_texts(memory_svg(both[1])));
}

TEST(Axis, IsLogarithmicWhereTheSmallestWouldLieOnTheGround) {
  const Axis near = shared_size_axis({100, 800}, 6), far = shared_size_axis({100, 801}, 6);
  EXPECT_EQ(near.scale, Scale::Linear);
  EXPECT_EQ(near.begin, 0);
  EXPECT_EQ(far.scale, Scale::Log);
  EXPECT_EQ(far.begin, 64);  // powers of two around 100 and 801
  EXPECT_EQ(far.end, 1024);
  EXPECT_DOUBLE_EQ(far.place(256), 0.5);
  const Axis counts = shared_count_axis({155, 3200}, 6);
  EXPECT_EQ(counts.begin, 100);
  EXPECT_EQ(counts.end, 5000);
  EXPECT_EQ(counts.ticks.size(), 6u);  // 100 200 500 1000 2000 5000
}

TEST(Wrapped, BreaksBetweenWordsAndCutsWhatIsLonger) {
  EXPECT_THAT(wrapped("ab cd ef", 31, 10), ElementsAre("ab cd", "ef"));  // 5 letters of 6 pixels
  EXPECT_THAT(wrapped("abcdefghij", 31, 10), ElementsAre("abcd…"));
  EXPECT_THAT(wrapped("", 31, 10), ElementsAre());
}

TEST(BatchPicture, SaysWhereNotEvenOneFits) {
  std::vector<Report> rows = {row("a", 1, 1), row("b", 1, 1), row("unasked", 1, 1)};
  rows[0].batches = {.every = 12, .largest = 12}, rows[1].batches = BatchLimits{};
  const std::string svg = batches_svg(rows, "t");
  EXPECT_THAT(svg, HasSubstr(">not even 1<"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("unasked")));
}

}  // namespace
}  // namespace tidemark::exports::pictures_test
