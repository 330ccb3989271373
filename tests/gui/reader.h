// A robot that reads: it finds what is written in the window, and clicks on it.
#pragma once

#include "tests/gui/drawn.h"
#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui {

class Reader : public Robot {
 public:
  using Robot::Robot;

  Drawing drawn() const { return Drawing::of_frame(); }
  bool says(std::string_view text) const { return drawn().says(text); }
  /// All on the line of this text, joined by " | ".
  std::string line_of(std::string_view text) const { return drawn().line_of(text); }
  /// Likewise of what is right of `left` on it.
  std::string line_of(std::string_view text, float left, float right = 1e6F) const {
    const Drawing drawing = drawn();
    const Drawn* one = nullptr;
    for (const Drawn& each : drawing.texts) {
      const bool is_here = each.box.x0 >= left && each.box.x0 < right;
      if (is_here && each.text == text) one = &each;
      if (is_here && !one && each.text.starts_with(text)) one = &each;
      if (one && one->text == text) break;
    }
    return one ? drawing.line_in({left, one->box.y0, right, one->box.y1}) : "";
  }
  /// In the middle of the first text that is or begins so.
  void click_on(std::string_view text) {
    const Drawing drawing = drawn();
    const Drawn* one = drawing.find(text);
    ASSERT_TRUE(one) << text;
    click(std::floor((one->box.x0 + one->box.x1) / 2), std::floor((one->box.y0 + one->box.y1) / 2));
  }
  /// Of those that are so, the one that was drawn last: in a list that is open.
  void click_on_last(std::string_view text) {
    const Drawing drawing = drawn();
    const auto found = std::find_if(drawing.texts.rbegin(), drawing.texts.rend(),
                                    [&](const Drawn& one) { return one.text == text; });
    ASSERT_NE(found, drawing.texts.rend()) << text;
    click(std::floor((found->box.x0 + found->box.x1) / 2),
          std::floor((found->box.y0 + found->box.y1) / 2));
  }
  void move_to(std::string_view text) {
    const Drawing drawing = drawn();
    const Drawn* one = drawing.find(text);
    ASSERT_TRUE(one) << text;
    move(std::floor((one->box.x0 + one->box.x1) / 2), std::floor((one->box.y0 + one->box.y1) / 2));
  }
  void open_tab(Tab tab) {
    view.wanted_tab = tab;
    frames(4);
    ASSERT_EQ(view.tab, tab);
  }
};

}  // namespace tidemark::gui
