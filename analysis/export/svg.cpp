// The style sheet, escaping of text that may be no UTF-8, estimated text widths, and elements.
#include "analysis/export/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tidemark::exports {
namespace {

// Light by default; a reader in dark mode gets light ink on dark ground. Fills stay as they are.
constexpr std::string_view style = R"(<style>
text{font-family:"DejaVu Sans",Verdana,sans-serif;fill:#222}
.ground{fill:#fff}.dim{fill:#666}.bold{font-weight:bold}.title{font-weight:bold}
.axis{stroke:#888;stroke-width:1}.grid{stroke:#ddd;stroke-width:1}
.limit{stroke:#c00;stroke-width:1.5;stroke-dasharray:6 4}.mark{stroke:#222;stroke-width:1}
.front{fill:none;stroke-width:2}.dashed{stroke-dasharray:5 3}.edge{stroke:#fff;stroke-width:.5}
@media (prefers-color-scheme:dark){text{fill:#eee}.ground{fill:#16191d}.dim{fill:#aaa}
.grid{stroke:#333}.mark{stroke:#eee}.limit{stroke:#f66}.edge{stroke:#16191d}}
@media print{text{fill:#000}.ground{fill:#fff}.dim{fill:#444}.grid{stroke:#ddd}.mark{stroke:#000}}
</style>
)";

// Length of the UTF-8 sequence at the beginning, or 0 if it is not sound.
std::size_t sequence_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80             ? 1
                             : (first & 0xE0) == 0xC0 ? 2
                             : (first & 0xF0) == 0xE0 ? 3
                             : (first & 0xF8) == 0xF0 ? 4
                                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates, and what lies beyond Unicode.
  const auto second = length > 1 ? static_cast<unsigned char>(text[1]) : 0;
  const bool is_overlong = first == 0xC0 || first == 0xC1 || (first == 0xE0 && second < 0xA0) ||
                           (first == 0xF0 && second < 0x90);
  const bool is_beyond =
      (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F) || first > 0xF4;
  return is_overlong || is_beyond ? 0 : length;
}

// The next character; moves on behind it.
std::string_view take_character(std::string_view& text) {
  const std::size_t length = std::max<std::size_t>(1, sequence_length(text));
  const std::string_view character = text.substr(0, length);
  text.remove_prefix(length);
  return character;
}

std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); take_character(text)) ++count;
  return count;
}

constexpr double em_per_character = 0.6;

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const bool sound = sequence_length(text) > 0;
    const std::string_view character = take_character(text);
    const char c = character.front();
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (c == '\n' || c == '\t') {
      out += c;
    } else if (!sound || (c >= 0 && c < 0x20) || c == 0x7F || character == "\xEF\xBF\xBE" ||
               character == "\xEF\xBF\xBF") {
      out += "\xEF\xBF\xBD";
    } else {
      out += character;
    }
  }
  return out;
}

std::string svg_number(double value) {
  const double rounded = std::round(value * 100) / 100;
  return fmt::format("{}", rounded == 0 ? 0.0 : rounded);
}

double text_width(std::string_view text, double size) {
  return static_cast<double>(characters(text)) * size * em_per_character;
}

std::string fitted(std::string_view text, double width, double size) {
  const double room = width / (size * em_per_character);
  if (static_cast<double>(characters(text)) <= room) return std::string(text);
  if (room < 3) return "";
  std::string cut;
  for (double used = 2; used <= room; ++used) cut += take_character(text);
  return cut + "…";
}

double nice_step(double range, int steps) {
  const double rough = std::max(range, 1e-9) / steps;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) return factor * power;
  return 10 * power;
}

std::string stacked(const std::vector<std::string>& pictures) {
  // The head that Svg wrote says how large each is.
  const auto number_after = [](const std::string& picture, std::string_view key) {
    const std::size_t at = picture.find(key) + key.size();
    return std::stod(picture.substr(at, picture.find('"', at) - at));
  };
  double width = 0, height = 0;
  std::string inner;
  for (const std::string& picture : pictures) {
    inner += fmt::format("<svg y=\"{}\"{}", svg_number(height), picture.substr(4));
    width = std::max(width, number_after(picture, " width=\""));
    height += number_after(picture, " height=\"");
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\">\n{2}</svg>\n",
      svg_number(width), svg_number(height), inner);
}

Svg::Svg(double width, double height, std::string_view title) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n<title>{2}</title>\n",
      svg_number(width), svg_number(height), xml_escaped(title));
  out_ += style;
  out_ += fmt::format("<rect class=\"ground\" width=\"{}\" height=\"{}\"/>\n", svg_number(width),
                      svg_number(height));
}

void Svg::end(std::string_view element, std::string_view tooltip) {
  if (tooltip.empty()) {
    out_ += "/>\n";
  } else {
    out_ += fmt::format("><title>{}</title></{}>\n", xml_escaped(tooltip), element);
  }
}

void Svg::rect(const Box& box, Color fill, std::string_view tooltip, std::string_view kind) {
  out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"",
                      svg_number(box.x), svg_number(box.y), svg_number(box.width),
                      svg_number(box.height), hex(fill));
  if (!kind.empty()) out_ += fmt::format(" class=\"{}\"", kind);
  end("rect", tooltip);
}

void Svg::text(double x, double y, std::string_view text, const TextLook& look) {
  if (text.empty()) return;
  constexpr std::array<std::string_view, 3> anchors = {"start", "middle", "end"};
  out_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\"", svg_number(x), svg_number(y),
                      svg_number(look.size));
  if (!look.kind.empty()) out_ += fmt::format(" class=\"{}\"", look.kind);
  if (look.color) out_ += fmt::format(" style=\"fill:{}\"", hex(*look.color));
  if (look.anchor != Anchor::Start)
    out_ += fmt::format(" text-anchor=\"{}\"", anchors[static_cast<std::size_t>(look.anchor)]);
  out_ += fmt::format(">{}</text>\n", xml_escaped(text));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view kind) {
  out_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n",
                      svg_number(x1), svg_number(y1), svg_number(x2), svg_number(y2), kind);
}

void Svg::area(std::string_view path, Color fill, std::string_view tooltip) {
  out_ += fmt::format("<path d=\"{}\" fill=\"{}\"", path, hex(fill));
  end("path", tooltip);
}

void Svg::stroke(std::string_view path, Color color, std::string_view kind) {
  out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"", path,
                      hex(color));
  if (!kind.empty()) out_ += fmt::format(" class=\"{}\"", kind);
  out_ += "/>\n";
}

void Svg::circle(double x, double y, double radius, Color fill, std::string_view tooltip) {
  out_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" class=\"edge\"",
                      svg_number(x), svg_number(y), svg_number(radius), hex(fill));
  end("circle", tooltip);
}

std::string Svg::finish() && { return std::move(out_) + "</svg>\n"; }

}  // namespace tidemark::exports
