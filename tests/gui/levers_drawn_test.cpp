// The table of levers and their picture: rows have the numbers of their reports, points stand where
// their memory and time are, and hands find both.
#include <gmock/gmock.h>

#include "gui/facts.h"
#include "tests/gui/reader.h"

namespace tidemark::gui::levers_drawn_test {
namespace {

// 26.8 GiB where 23.1 are.
WhatIf short_of_memory() {
  WhatIf what_if = vit({"vanilla"}, 16);
  what_if.scenario.model = find_model("gpt2");
  what_if.scenario.device = find_device("rtx-4090");
  return what_if;
}

// One robot for all: trying two dozen levers is most of the time.
class DrawnLevers : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    robot_ = std::make_unique<Reader>(PixelSize{1280, 1200});
    robot_->ask(short_of_memory());
  }
  static void TearDownTestSuite() { robot_.reset(); }
  void SetUp() override {
    robot_->view.lever_order = LeverOrder::Best, robot_->view.measure = Measure::Allocated;
    robot_->view.marked.clear();
    robot_->move(5, 5);
    robot_->frames(2);
  }
  static const LeverTable& table() { return *robot_->model.levers().newest(); }
  static const Report& now() { return table().now(); }
  static std::vector<std::string> listed() {
    const Drawing drawing = robot_->drawn();
    std::vector<const Drawn*> names;
    for (const TriedLever& lever : table().tried)
      for (const Drawn& one : drawing.texts)
        if (one.text == lever.name && one.box.x0 < 900 && one.box.x0 > 290 && one.box.y0 > 500)
          names.push_back(&one);
    std::ranges::sort(names, {}, [](const Drawn* one) { return one->box.y0; });
    std::vector<std::string> texts;
    for (const Drawn* one : names) texts.push_back(one->text);
    return texts;
  }
  static const TriedLever& lever(std::string_view name) {
    return *std::ranges::find(table().tried, name, &TriedLever::name);
  }

  static std::unique_ptr<Reader> robot_;
};
std::unique_ptr<Reader> DrawnLevers::robot_;

TEST_F(DrawnLevers, TheHeadSaysWhatIsMissing) {
  ASSERT_FALSE(now().fits);
  EXPECT_TRUE(robot_->says(to_text(now().allocated_peak) + " allocated, " +
                           to_text(now().short_by) + " too much"));
  robot_->view.measure = Measure::Live;
  robot_->frames(2);
  EXPECT_TRUE(robot_->says(to_text(now().live_peak) + " live, "));
}

TEST_F(DrawnLevers, ARowHasTheNumbersOfItsReport) {
  const auto names = listed();
  ASSERT_GT(names.size(), 5u);
  for (const std::string& name : names) {
    const TriedLever& one = lever(name);
    EXPECT_EQ(robot_->line_of(name, 290, 940),
              name + " | " + change_text(now().allocated_peak, one.report.allocated_peak) + " | " +
                  to_text(one.report.allocated_peak) + " | " +
                  change_text(time_ratio(one.report, now())) + " | " +
                  (one.report.fits ? "fits" : "no"));
  }
}

// Right-aligned, as the numbers below them are.
TEST_F(DrawnLevers, ColumnsHaveTheirHeads) {
  const Drawing drawing = robot_->drawn();
  const std::string name = listed().front();
  const Drawn* number = nullptr;
  const std::string needs = to_text(lever(name).report.allocated_peak);
  for (const Drawn& one : drawing.texts)
    if (one.text == needs && one.box.y0 > 500 && one.box.x0 > 600 && !number) number = &one;
  ASSERT_TRUE(number);
  for (const char* head : {"saves", "needs", "time"}) ASSERT_TRUE(drawing.says(head)) << head;
  EXPECT_NEAR(drawing.find("needs")->box.x1, number->box.x1, 20);
  EXPECT_LT(drawing.find("saves")->box.x1, drawing.find("needs")->box.x0);
}

TEST_F(DrawnLevers, BarsAreTheShareThatIsSaved) {
  const std::string name = listed().front();
  const Drawing drawing = robot_->drawn();
  const Drawn* row = nullptr;
  for (const Drawn& one : drawing.texts)
    if (one.text == name && one.box.y0 > 500 && one.box.x0 > 290 && !row) row = &one;
  ASSERT_TRUE(row);
  const double share = 1 - static_cast<double>(lever(name).report.allocated_peak.count) /
                               static_cast<double>(now().allocated_peak.count);
  bool has_bar = false;
  for (const Drawn& bar : drawing.of_color(theme::accent))
    has_bar |= bar.alpha() == 70 && std::abs(bar.box.y0 - row->box.y0) < 6 &&
               std::abs(bar.box.width() - static_cast<float>(share) * 6.4F * 14) < 2;
  EXPECT_TRUE(has_bar) << share;
}

TEST_F(DrawnLevers, AreSortedByMemoryOrTime) {
  robot_->view.lever_order = LeverOrder::Memory;
  robot_->frames(2);
  const auto by_memory = listed();
  for (std::size_t i = 1; i < by_memory.size(); ++i)
    EXPECT_LE(lever(by_memory[i - 1]).report.allocated_peak,
              lever(by_memory[i]).report.allocated_peak);
  robot_->view.lever_order = LeverOrder::Time;
  robot_->frames(2);
  const auto by_time = listed();
  for (std::size_t i = 1; i < by_time.size(); ++i)
    EXPECT_GE(lever(by_time[i - 1]).report.samples_per_second,
              lever(by_time[i]).report.samples_per_second);
  EXPECT_NE(by_time, by_memory);
}

TEST_F(DrawnLevers, OrderAndMeasureAreChosenFromLists) {
  robot_->click_on("best");
  robot_->click_on("memory");
  EXPECT_EQ(robot_->view.lever_order, LeverOrder::Memory);
  const Drawing drawing = robot_->drawn();
  const Drawn* measure = nullptr;
  for (const Drawn& one : drawing.texts)
    if (one.text == "allocated" && one.box.y0 > 500 && !measure) measure = &one;
  ASSERT_TRUE(measure);
  robot_->click(std::floor(measure->box.x0) + 5, std::floor(measure->box.y0) + 6);
  const Drawing opened = robot_->drawn();
  const Drawn* reserved = nullptr;
  for (const Drawn& one : opened.texts)
    if (one.text == "reserved" && one.box.y0 > 400) reserved = &one;
  ASSERT_TRUE(reserved);
  robot_->click(std::floor(reserved->box.x0) + 5, std::floor(reserved->box.y0) + 6);
  EXPECT_EQ(robot_->view.measure, Measure::Reserved);
}

TEST_F(DrawnLevers, CollectedOnesAreSummedUpAndCleared) {
  EXPECT_TRUE(robot_->says("click: apply, Ctrl + click: collect"));
  const std::string name = listed().front();
  robot_->view.marked = {name};
  robot_->frames(4);
  EXPECT_TRUE(robot_->says("• " + name));
  EXPECT_TRUE(robot_->says("1 collected: " +
                           change_text(now().allocated_peak, lever(name).report.allocated_peak)));
  robot_->click_on("clear");
  EXPECT_TRUE(robot_->view.marked.empty());
}

// A cut description is whole in the tooltip.
TEST_F(DrawnLevers, TheMouseReadsWhatHasNoRoom) {
  const TriedLever* cut = nullptr;
  const Drawing drawing = robot_->drawn();
  for (const std::string& name : listed())
    if (!cut && !drawing.says(lever(name).does)) cut = &lever(name);
  ASSERT_TRUE(cut);
  for (const Drawn& one : drawing.texts)
    if (one.text == cut->name && one.box.x0 > 290 && one.box.x0 < 900 && one.box.y0 > 500)
      robot_->move(500, std::floor(one.box.y0) + 6);
  EXPECT_TRUE(robot_->drawn().mentions("allocated: " + to_text(cut->report.allocated_peak)));
  EXPECT_EQ(robot_->view.hovered_lever, cut->name);
}

class DrawnFront : public DrawnLevers {
 protected:
  static constexpr double slowest = 2.2;  // times: what is slower is not drawn
  struct Point {
    const TriedLever* lever;
    ImVec2 at;
  };
  static ImVec2 middle(const Drawn& disc) {
    return {(disc.box.x0 + disc.box.x1) / 2, (disc.box.y0 + disc.box.y1) / 2};
  }
  /// Discs as they are drawn: what nothing beats first, then the others, each in the table's order.
  static std::vector<Point> points() {
    std::vector<ImVec2> discs;
    for (const Drawn& shape : robot_->drawn().shapes) {
      const bool is_point = shape.has_color(theme::accent) || shape.has_color(theme::faint) ||
                            shape.has_color(theme::alarm);
      // 0.28 em in radius.
      if (is_point && shape.alpha() == 255 && std::abs(shape.box.width() - 0.56F * 14) < 1.6F &&
          std::abs(shape.box.height() - 0.56F * 14) < 1.6F && shape.box.x0 > 950)
        discs.push_back(middle(shape));
    }
    const auto best = unbeaten(table(), robot_->view.measure);
    std::vector<Point> points;
    std::size_t next = 0;
    for (const bool is_best : {true, false})
      for (const TriedLever& one : table().tried)
        if ((std::ranges::find(best, &one) != best.end()) == is_best &&
            time_ratio(one.report, now()) < slowest && next < discs.size())
          points.push_back({&one, discs[next++]});
    return next == discs.size() ? points : std::vector<Point>();
  }
};

TEST_F(DrawnFront, MemoryGoesRightAndTimeUp) {
  const auto points = DrawnFront::points();
  ASSERT_EQ(points.size(), robot_->view.facts.front_points);
  ASSERT_GT(points.size(), 10u);
  for (const Point& a : points)
    for (const Point& b : points) {
      if (a.lever->report.allocated_peak < b.lever->report.allocated_peak) {
        EXPECT_LE(a.at.x, b.at.x + 0.6F) << a.lever->name << " and " << b.lever->name;
      }
      if (a.lever->report.samples_per_second < b.lever->report.samples_per_second) {
        EXPECT_LE(a.at.y, b.at.y + 0.6F) << a.lever->name << " and " << b.lever->name;
      }
    }
}

// Along both axes alike: two points give the scale, all others lie on it.
TEST_F(DrawnFront, ScalesAreStraight) {
  const auto points = DrawnFront::points();
  ASSERT_GT(points.size(), 10u);
  const auto bytes = [](const Point& p) {
    return static_cast<double>(p.lever->report.allocated_peak.count);
  };
  const auto time = [](const Point& p) { return 1 / p.lever->report.samples_per_second; };
  const auto [least, most] = std::ranges::minmax(points, {}, bytes);
  const auto [fast, slow] = std::ranges::minmax(points, {}, time);
  for (const Point& p : points) {
    const double x =
        static_cast<double>(least.at.x) + (bytes(p) - bytes(least)) / (bytes(most) - bytes(least)) *
                                              static_cast<double>(most.at.x - least.at.x);
    EXPECT_NEAR(p.at.x, x, 1) << p.lever->name;
    const double y =
        static_cast<double>(fast.at.y) + (time(p) - time(fast)) / (time(slow) - time(fast)) *
                                             static_cast<double>(slow.at.y - fast.at.y);
    EXPECT_NEAR(p.at.y, y, 1) << p.lever->name;
  }
}

TEST_F(DrawnFront, NothingIsBeyondTheCapacityLineThatFits) {
  const double capacity = static_cast<double>(table().comparison.budget.capacity.count);
  std::vector<Box> lines;
  for (const Drawn& shape : robot_->drawn().of_color(theme::alarm))
    if (shape.alpha() == 26 && shape.box.x0 > 950) lines.push_back(shape.box);
  ASSERT_EQ(lines.size(), 1u);
  for (const Point& p : points()) {
    const bool is_beyond = static_cast<double>(p.lever->report.allocated_peak.count) > capacity;
    EXPECT_EQ(p.at.x > lines[0].x0, is_beyond) << p.lever->name;
  }
}

TEST_F(DrawnFront, TheMouseFindsThePointThatIsNearest) {
  const auto points = DrawnFront::points();
  ASSERT_GT(points.size(), 10u);
  // One that stands alone.
  const Point* alone = nullptr;
  for (const Point& a : points) {
    const bool is_alone = std::ranges::all_of(points, [&](const Point& b) {
      return &a == &b || std::hypot(a.at.x - b.at.x, a.at.y - b.at.y) > 30;
    });
    if (is_alone && !alone) alone = &a;
  }
  ASSERT_TRUE(alone);
  robot_->move(std::floor(alone->at.x) + 5, std::floor(alone->at.y));
  EXPECT_EQ(robot_->view.hovered_lever, alone->lever->name);
  EXPECT_TRUE(robot_->drawn().mentions(alone->lever->does.substr(0, 20)));
  robot_->move(std::floor(alone->at.x) + 20, std::floor(alone->at.y));  // beyond a letter
  EXPECT_EQ(robot_->view.hovered_lever, "");
}

TEST_F(DrawnFront, SaysWhatIsNotDrawn) {
  std::size_t slower = 0;
  for (const TriedLever& one : table().tried) slower += time_ratio(one.report, now()) >= slowest;
  EXPECT_EQ(robot_->drawn().mentions("Far slower, not drawn:"), slower > 0);
  EXPECT_EQ(points().size() + slower, table().tried.size());
}

TEST_F(DrawnFront, GivesWayToDetailsOnceSomethingIsSelected) {
  EXPECT_TRUE(robot_->says("time of a sample against memory"));
  robot_->view.selection.category = Category::Activation;
  robot_->frames(2);
  EXPECT_FALSE(robot_->says("time of a sample against memory"));
  robot_->view.selection = {};
  robot_->view.range = Range{0, 1e6};
  robot_->frames(2);
  EXPECT_FALSE(robot_->says("time of a sample against memory"));
  robot_->view.range.reset();
}

}  // namespace
}  // namespace tidemark::gui::levers_drawn_test
