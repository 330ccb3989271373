// Metrics, changes and tolerances as text, and percentages read as parts per million.
#include "analysis/check/metric.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace tidemark::regression {

using tidemark::to_text;  // of units, beside the overloads of this folder

std::optional<std::int64_t> parse_percent(std::string_view text) {
  double percent = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  if (error != std::errc() || unit != "%" || !(percent >= 0 && percent <= 100)) return {};
  const double parts = percent * (million / 100);
  // Four decimals can be said in parts per million; what is finer would be rounded in silence.
  if (std::abs(parts - std::round(parts)) > 1e-6) return {};
  return std::llround(parts);
}

std::string to_text(Metric metric, std::int64_t value) {
  return metric == Metric::Step ? to_text(Nanoseconds(value)) : to_text(Bytes{value});
}

std::string change_text(Metric metric, std::int64_t change) {
  if (change == 0) return to_text(metric, change);
  return (change > 0 ? "+" : "−") + to_text(metric, std::abs(change));
}

std::string percent_text(std::int64_t whole, std::int64_t change) {
  if (whole == 0) return "";
  const double percent = 100.0 * static_cast<double>(change) / static_cast<double>(whole);
  const char* sign = change < 0 ? "−" : change > 0 ? "+" : "";
  if (change != 0 && std::abs(percent) < 0.005) return fmt::format("{}<0.01 %", sign);
  return fmt::format("{}{:.2f} %", sign, std::abs(percent));
}

std::string to_text(Metric metric, const Tolerance& tolerance) {
  if (tolerance.parts_per_million == 0) return to_text(metric, tolerance.amount);
  return fmt::format("{} %", static_cast<double>(tolerance.parts_per_million) / (million / 100));
}

}  // namespace tidemark::regression
