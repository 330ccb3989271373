// Reads and writes figures, their sources and names.
#include "simulator/cost/figure_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tidemark {
namespace {

// Of a short time in millionths of a second.
std::string with_prefix(double number, std::string_view unit) {
  if (unit == "s" && number > 0 && number < 1e-3) return with_prefix(number * 1e6, "µs");
  constexpr std::string_view prefixes = " kMGTPE";
  std::size_t prefix = 0;
  for (; number >= 999.5 && prefix + 1 < prefixes.size(); ++prefix) number /= 1000;
  const int decimals = number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  const std::string_view letter = prefixes.substr(prefix, prefix == 0 ? 0 : 1);
  return fmt::format("{:.{}f} {}{}", number, decimals, letter, unit);
}

}  // namespace

std::string json_quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string plain_text(const JsonView& view) {
  const std::string_view text = view.text();
  const bool is_plain =
      std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  if (text.empty() || text.size() > 1000 || !is_plain)
    view.fail("found text that is empty, too long or not printable; need up to 1000 characters");
  return std::string(text);
}

std::string plain_name(const JsonView& view) {
  std::string name = plain_text(view);
  const bool is_name = std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (!is_name || name.size() > 64)
    view.fail("found a name with other characters; need up to 64 of a-z, 0-9 and '-'");
  return name;
}

FigureSource read_source(const JsonView& figure) {
  const JsonView kind = figure.at("kind");
  const auto found = std::ranges::find(figure_kind_names, kind.text());
  if (found == figure_kind_names.end())
    kind.fail(
        unknown_name("kind", kind.text(), {figure_kind_names.begin(), figure_kind_names.end()}));
  return {static_cast<FigureKind>(found - figure_kind_names.begin()),
          plain_text(figure.at("source"))};
}

std::string number_text(double number) {
  const std::string plain = fmt::format("{}", number);
  for (const int exponent : {12, 9, 6}) {
    const double unit = std::pow(10.0, exponent);
    if (number < unit) continue;
    const std::string text = fmt::format("{}e{}", number / unit, exponent);
    double again = 0;
    std::from_chars(text.data(), text.data() + text.size(), again);
    return again == number && text.size() < plain.size() ? text : plain;
  }
  return plain;
}

std::string sourced(const std::string& value, const FigureSource& source) {
  return fmt::format(R"({{"value": {}, "kind": "{}", "source": {}}})", value,
                     figure_kind_names[static_cast<std::size_t>(source.kind)],
                     json_quoted(source.text));
}

std::string display_text(double number, std::string_view unit) {
  if (unit == "B") return to_text(Bytes{std::llround(number)});
  if (unit == "ns") return to_text(Nanoseconds(std::llround(number)));
  if (unit.empty()) return fmt::format("{}", number);
  if (number == 0) return "none";
  return with_prefix(number, unit);
}

}  // namespace tidemark
