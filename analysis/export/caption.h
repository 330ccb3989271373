// What stands around a picture, in as many lines as its width needs: the title, what is shown, and
// the legend.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/export/svg.h"

namespace tidemark::exports {

/// Lines of at most `width` pixels, broken between words; a longer word is cut with "…".
std::vector<std::string> wrapped(std::string_view text, double width, double size);

/// Title and subtitle, above a picture.
class Caption {
 public:
  Caption(std::string_view title, std::string_view shown, double width);

  double height() const;
  void draw(Svg& svg, double x) const;

 private:
  std::vector<std::string> title_, shown_;
};

enum class Mark : std::uint8_t { None, Box, Point, Cross, Line, Dashes, Limit };

struct LegendEntry {
  Mark mark = Mark::None;
  Color color{};  ///< none for None and Limit, which have the style sheet's
  std::string text;
};

class Legend {
 public:
  Legend(std::vector<LegendEntry> entries, double width);

  double height() const;
  void draw(Svg& svg, double x, double y) const;

 private:
  struct Place {
    double x, y;
  };
  std::vector<LegendEntry> entries_;
  std::vector<Place> places_;
};

/// A stroke of a strategy's line, 16 pixels long.
void draw_dash(Svg& svg, double x, double y, Color color, Mark mark);

/// "✕", 8 pixels wide.
void draw_cross(Svg& svg, double x, double y, Color color, std::string_view tooltip);

}  // namespace tidemark::exports
