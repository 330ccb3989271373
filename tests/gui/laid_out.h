// A timeline laid out by hand: a thousand pixels of time from x = 100 on, and a row for each part,
// so that tests can say where on paper a thing has to be.
#pragma once

#include <memory>

#include "gui/panels/timeline_parts.h"
#include "tests/gui/drawn.h"
#include "tests/gui/robot.h"
#include "tests/gui/synthetic.h"

namespace tidemark::gui {

struct LaidOut {
  LaidOut(Recording recording, Range visible, const CurveChoice& choice = {})
      : LaidOut(std::make_shared<const Opened>(std::move(recording)), visible, choice) {}
  LaidOut(std::shared_ptr<const Opened> what, Range visible, const CurveChoice& choice = {})
      : opened(std::move(what)) {
    places.em = 14;
    places.all = {0, 0, 1100, 456};
    places.key = {100, 0, 1100, 20};
    places.axis = {100, 20, 1100, 40};
    places.phases = {100, 40, 1100, 60};
    places.modules = {100, 60, 1100, 80};
    for (std::size_t s = 0; s < opened->lanes().size(); ++s) {
      const float y = 100 + 20 * static_cast<float>(s);
      places.lanes.push_back({opened.get(), s, {100, y, 1100, y + 18}});
    }
    places.reading = {100, 200, 1100, 220};
    places.memory = {100, 220, 1100, 420};
    places.mini_map = {100, 424, 1100, 456};
    places.time = {visible, 100, 1100};
    places.curves = {std::make_shared<const Bands>(opened, choice, visible)};
  }

  std::shared_ptr<const Opened> opened;
  TimelinePlaces places;
  ViewState view;
};

/// For tests that draw by hand: from the first frame on there is a font.
class WithFont : public testing::Test {
 protected:
  void SetUp() override { robot_.frames(1); }
  Robot robot_;
};

}  // namespace tidemark::gui
