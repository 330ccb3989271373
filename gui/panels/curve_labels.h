// Labels over the memory curve, each where it hides least of the data and no other label.
#pragma once

#include <span>

#include "gui/panels/timeline_parts.h"

namespace tidemark::gui {

/// Where bytes are in the curve.
struct Heights {
  Box box;
  double top;         ///< bytes at its upper edge
  double bottom = 0;  ///< at its lower edge

  float operator()(Bytes bytes) const {
    const double share = (static_cast<double>(bytes.count) - bottom) / (top - bottom);
    return box.y1 - static_cast<float>(share) * box.height();
  }
};

class CurveLabels {
 public:
  CurveLabels(const TimelinePlaces& places, const Opened& shown,
              std::vector<const Opened*> overlaid, const Heights& height)
      : places_(places), shown_(shown), overlaid_(std::move(overlaid)), height_(height) {}

  float height() const { return 1.25F * places_.em; }

  /// Into the best of these places; the first of equal ones.
  void put(ImDrawList& list, std::string_view text, Color color, std::span<const Box> candidates);
  /// At the tip of a triangle above a peak.
  void put_above(ImDrawList& list, std::string_view text, Color color, ImVec2 tip);
  /// Beside a horizontal line.
  void put_along(ImDrawList& list, std::string_view text, Color color, float y);

  /// Pixels of the curve and of others' lines under all labels so far.
  float covered() const { return covered_; }

 private:
  float cover(const Box& label) const;
  float width_of(std::string_view text) const { return text_width(text) + 0.6F * places_.em; }

  const TimelinePlaces& places_;
  const Opened& shown_;
  std::vector<const Opened*> overlaid_;
  Heights height_;
  std::vector<Box> taken_;
  float covered_ = 0;
};

}  // namespace tidemark::gui
