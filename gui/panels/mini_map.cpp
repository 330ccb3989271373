// The whole step, small, with its peak and the part that is visible.
#include <algorithm>

#include "gui/navigation.h"
#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {

void draw_mini_map(ImDrawList& list, const TimelinePlaces& places, const Opened& opened,
                   const ViewState& view) {
  const Box& box = places.mini_map;
  const Axis all{whole({view.end}), box.x0, box.x1};
  list.AddRectFilled(box.min(), box.max(), ink(theme::plot));
  const auto top =
      static_cast<double>(std::max<std::int64_t>(1, opened.memory().total_of(opened.peak()).count));
  const float first = std::floor(all.to_pixel(0)), last = std::ceil(all.to_pixel(opened.end()));
  for (float x = first; x < last; x += 2) {  // a small picture needs no more
    const StateId state = opened.memory().highest_in(all.to_value(x), all.to_value(x + 2));
    const double share = static_cast<double>(opened.memory().total_of(state).count) / top;
    const float y = box.y1 - static_cast<float>(share) * (box.height() - 2);
    list.AddRectFilled({x, y}, {x + 2, box.y1}, ink(mixed(theme::plot, theme::faint, 0.6)));
  }
  const float peak = std::floor(
      all.to_pixel(static_cast<double>(opened.memory().begin_of(opened.peak()).count())));
  list.AddRectFilled({peak, box.y0}, {peak + 2, box.y1}, ink(theme::bright, 200));
  const float x0 = std::max(box.x0, all.to_pixel(view.visible.begin));
  const float x1 = std::max(x0 + 3, std::min(box.x1, all.to_pixel(view.visible.end)));
  list.AddRectFilled(box.min(), {x0, box.y1}, ink(theme::ground, 150));
  list.AddRectFilled({x1, box.y0}, box.max(), ink(theme::ground, 150));
  list.AddRect({x0, box.y0}, {x1, box.y1}, ink(theme::accent), 2, 0, 1.5F);
}

}  // namespace tidemark::gui
