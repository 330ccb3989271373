// Writes SVG 1.1: elements one after the other, numbers always with a point and at most two
// decimals, text escaped. The same picture is always the same text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/export/palette.h"

namespace tidemark::exports {

/// "&lt;b&gt;": text as it may stand in an element or in quotes. What is not UTF-8 or is a control
/// character becomes U+FFFD.
std::string xml_escaped(std::string_view text);

/// "12.5": at most two decimals, no trailing zeros, never "-0".
std::string svg_number(double value);

/// An estimate in pixels, from the mean width of a digit or small letter in DejaVu Sans (0.6 em).
double text_width(std::string_view text, double size);

/// The text cut with "…" to what fits; "" if less than two characters would be left.
std::string fitted(std::string_view text, double width, double size);

/// A round number, 1, 2 or 5 times a power of ten (of two for `binary`), so that `range` has about
/// `steps` of them.
double nice_step(double range, int steps);

enum class Anchor : std::uint8_t { Start, Middle, End };

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// How text looks: classes of the picture's style sheet.
struct TextLook {
  std::string_view kind = "";  ///< "", "dim", "bold" or "title"
  Anchor anchor = Anchor::Start;
  double size = 11;
  std::optional<Color> color = {};  ///< instead of the style sheet's
};

/// Pictures that Svg made, one below the other in one.
std::string stacked(const std::vector<std::string>& pictures);

class Svg {
 public:
  Svg(double width, double height, std::string_view title);

  /// `tooltip` may be "".
  void rect(const Box& box, Color fill, std::string_view tooltip, std::string_view kind = "");
  void text(double x, double y, std::string_view text, const TextLook& look = {});
  void line(double x1, double y1, double x2, double y2, std::string_view kind);
  /// `points` as in a path's d.
  void area(std::string_view path, Color fill, std::string_view tooltip);
  void stroke(std::string_view path, Color color, std::string_view kind = "");
  void circle(double x, double y, double radius, Color fill, std::string_view tooltip);

  /// The whole picture; nothing may be drawn afterwards.
  std::string finish() &&;

 private:
  void end(std::string_view element, std::string_view tooltip);
  std::string out_;
};

}  // namespace tidemark::exports
