// What a label would hide, and where it hides least.
#include "gui/panels/curve_labels.h"

#include <algorithm>

namespace tidemark::gui {
namespace {

// Columns that are looked at: labels are some hundred pixels wide.
constexpr float stride = 4;

float common_area(const Box& a, const Box& b) {
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  return width > 0 && height > 0 ? width * height : 0;
}

bool is_within(const Box& inner, const Box& outer) {
  return inner.x0 >= outer.x0 && inner.x1 <= outer.x1 && inner.y0 >= outer.y0 &&
         inner.y1 <= outer.y1;
}

}  // namespace

// The stack fills all below it; of a line only what it crosses is hidden.
float CurveLabels::cover(const Box& label) const {
  const auto y_of = [&](const Opened& one, float x) {
    return height_(places_.curve_of(one).total_of(state_under(places_, one, x)));
  };
  const auto is_over = [&](const Opened& one, float x) {
    const double moment = places_.moment_at(one, x);
    return moment >= 0 && moment <= one.end();
  };
  float pixels = 0;
  for (float x = label.x0; x < label.x1; x += stride) {
    if (is_over(shown_, x))
      pixels += std::clamp(label.y1 - y_of(shown_, x), 0.0F, label.height()) * stride;
    for (const Opened* other : overlaid_)
      if (is_over(*other, x) && label.y0 <= y_of(*other, x) && y_of(*other, x) <= label.y1)
        pixels += stride * 2;
  }
  return pixels;
}

void CurveLabels::put(ImDrawList& list, std::string_view text, Color color,
                      std::span<const Box> candidates) {
  // Two labels on each other cannot be read at all: worse than any curve that is hidden.
  constexpr float dreadful = 1e3F;
  const Box* best = nullptr;
  float least = 0, least_cover = 0;
  for (const Box& candidate : candidates) {
    const float covers = cover(candidate);
    float cost = covers + (is_within(candidate, places_.memory) ? 0 : dreadful);
    for (const Box& other : taken_) cost += dreadful * common_area(candidate, other);
    if (!best || cost < least) best = &candidate, least = cost, least_cover = covers;
  }
  if (!best) return;
  covered_ += least_cover;
  taken_.push_back(*best);
  list.AddRectFilled(best->min(), best->max(), ink(theme::plot, 210), 3);
  draw_text(list, *best, text, color, Align::Center);
}

void CurveLabels::put_above(ImDrawList& list, std::string_view text, Color color, ImVec2 tip) {
  const float r = 0.32F * places_.em, width = width_of(text);
  list.AddTriangleFilled(tip, {tip.x + r, tip.y - 1.6F * r}, {tip.x - r, tip.y - 1.6F * r},
                         ink(color));
  std::vector<Box> candidates;
  for (const float y : {tip.y - 2 - height(), tip.y - 2 - 2 * height(), tip.y - 2 - 3 * height()})
    for (const float x : {tip.x + r + 2, tip.x - r - 2 - width, tip.x - width / 2}) {
      const float x0 =
          std::clamp(x, places_.time.x0, std::max(places_.time.x0, places_.time.x1 - width));
      const bool hides_tip =
          x0 < tip.x + r && x0 + width > tip.x - r && y + height() > tip.y - 2 * r;
      if (!hides_tip) candidates.push_back({x0, y, x0 + width, y + height()});
    }
  put(list, text, color, candidates);
}

void CurveLabels::put_along(ImDrawList& list, std::string_view text, Color color, float y) {
  const float width = width_of(text);
  const float room = std::max(0.0F, places_.time.x1 - places_.time.x0 - 8 - width);
  std::vector<Box> candidates;
  for (const float top : {y - 1 - height(), y + 2})
    for (const float share : {0.0F, 1.0F, 0.5F, 0.25F, 0.75F}) {
      const float x0 = places_.time.x0 + 4 + share * room;
      candidates.push_back({x0, top, x0 + width, top + height()});
    }
  put(list, text, color, candidates);
}

}  // namespace tidemark::gui
