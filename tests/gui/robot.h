// Hands without a window: moves the mouse, presses keys and draws frames, so that tests can look
// at the view.
#pragma once

#include <gtest/gtest.h>

#include "gui/navigation.h"
#include "gui/stage.h"
#include "traces/presets.h"

namespace tidemark::gui {

inline WhatIf vit(const std::vector<std::string>& strategies, std::int64_t batch = 8) {
  std::vector<StrategySpec> parsed;
  for (const std::string& text : strategies) parsed.push_back(parse_strategy(text));
  return {.scenario = {.model = find_model("vit-b-16"),
                       .step = {.batch = batch},
                       .device = find_device("a100-80gb"),
                       .strategies = {}},
          .strategies = std::move(parsed)};
}

class Robot {
 public:
  explicit Robot(PixelSize pixels = {1280, 800}, float scale = 1) : size(pixels), stage(scale) {}
  /// Files are read by `reader`.
  explicit Robot(Loading::Reader reader) : model(std::move(reader)), size{1280, 800}, stage(1) {}

  ViewModel model;
  ViewState view;
  Input input;
  PixelSize size;
  Stage stage;

  const Opened& shown() const { return *model.shown(view); }

  void ask(const WhatIf& what_if) {
    model.ask(what_if, view);
    ASSERT_EQ(model.problem(), "");
    show_all(shown(), view);
    frames(3);
  }
  void open(Recording recording) {
    model.add(std::move(recording));
    view.shown = model.recordings().size() - 1;
    show_all(shown(), view);
    frames(3);
  }

  void frames(int count = 1) {
    for (int i = 0; i < count; ++i) {
      model.wait();
      stage.frame(model, view, input, size);
      finish_frame(model, view, input, [this] { return stage.picture(); });
      input.end_frame();
    }
  }
  void move(float x, float y) {
    input.x = x, input.y = y;
    frames(2);  // what is under the mouse is known one frame later
  }
  void hold(std::size_t button) { input.buttons[button] = true, frames(2); }
  void release(std::size_t button) { input.buttons[button] = false, frames(2); }
  void click(float x, float y) {
    move(x, y);
    hold(0);
    release(0);
  }
  void drag(std::size_t button, float x0, float x1, float y) {
    move(x0, y);
    hold(button);
    move((x0 + x1) / 2, y);
    move(x1, y);
    release(button);
  }
  void turn(float wheel) { input.wheel = wheel, frames(1); }
  void press(Key key) {
    input.keys.insert(key);
    frames(1);
    input.keys.erase(key);
    frames(1);
  }
  void type(const std::string& text) {
    input.text = text;
    frames(2);
  }

  /// Where a moment is drawn, and the middle of a stream's lane.
  float x_of(double moment) const {
    const double share = (moment - view.visible.begin) / view.visible.span();
    return view.facts.left + static_cast<float>(share) * (view.facts.right - view.facts.left);
  }
  double moment_at(float x) const {
    return view.visible.begin +
           static_cast<double>((x - view.facts.left) / (view.facts.right - view.facts.left)) *
               view.visible.span();
  }
  /// Whole pixels: Dear ImGui cuts off the rest of a mouse position.
  float lane() const { return view.facts.lanes + 10; }
  float curve() const { return (view.facts.memory_top + view.facts.memory_bottom) / 2; }
  float middle() const { return std::floor((view.facts.left + view.facts.right) / 2); }
};

}  // namespace tidemark::gui
