// Reads lists and ranges of numbers, and compares all points at once on all cores.
#include "analysis/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/parallel.h"
#include "base/quoted.h"

namespace tidemark {
namespace {

[[noreturn]] void refuse(std::string_view piece, std::string_view what, std::int64_t max) {
  throw UsageError(fmt::format(
      "{}: {} is not a whole number from 1 to {} (or a list such as 8,16,32, a range in steps such "
      "as 8:64:8, or one by factors such as 8:256:x2)",
      what, quoted(piece), max));
}

std::optional<std::int64_t> parse_number(std::string_view text, std::int64_t max) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > max)
    return std::nullopt;
  return value;
}

void add_piece(std::string_view piece, std::string_view what, std::int64_t max,
               std::vector<std::int64_t>& values) {
  const std::size_t first = piece.find(':'), second = piece.rfind(':');
  if (first == std::string_view::npos) {
    const auto value = parse_number(piece, max);
    if (!value) refuse(piece, what, max);
    return values.push_back(*value);
  }
  std::string_view step_text = piece.substr(second + 1);
  const bool multiplies = step_text.starts_with('x');
  if (multiplies) step_text.remove_prefix(1);
  const auto begin = parse_number(piece.substr(0, first), max);
  const auto end = first == second ? std::nullopt
                                   : parse_number(piece.substr(first + 1, second - first - 1), max);
  const auto step = parse_number(step_text, max);
  if (!begin || !end || !step || *end < *begin || (multiplies && *step < 2))
    refuse(piece, what, max);
  for (std::int64_t value = *begin; value <= *end;) {
    values.push_back(value);
    if (values.size() > most_points)
      throw UsageError(fmt::format("{}: {} has more than {} values (take larger steps)", what,
                                   quoted(piece), most_points));
    if (multiplies && value > *end / *step) break;
    value = multiplies ? value * *step : value + *step;
  }
}

}  // namespace

std::vector<std::int64_t> parse_range(std::string_view text, std::string_view what,
                                      std::int64_t max) {
  std::vector<std::int64_t> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    add_piece(text.substr(begin, end - begin), what, max, values);
    begin = end + 1;
  }
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<Comparison> sweep(std::span<const Scenario> scenarios,
                              const std::function<void(std::size_t done)>& progress) {
  std::vector<Comparison> points(scenarios.size());
  std::mutex telling;
  std::size_t done = 0;
  parallel_for(scenarios.size(), [&](std::size_t i) {
    points[i] = compare(scenarios[i]);
    const std::lock_guard lock(telling);
    if (progress) progress(++done);
  });
  return points;
}

std::vector<std::string> point_names(std::span<const Comparison> points) {
  const auto varies = [&](auto of) {
    return std::ranges::any_of(
        points, [&](const Comparison& point) { return of(point) != of(points.front()); });
  };
  const auto batch = [](const Comparison& c) { return c.scenario.step.batch; };
  const auto sequence = [](const Comparison& c) { return c.scenario.step.sequence.value_or(0); };
  const auto image = [](const Comparison& c) { return c.scenario.step.image.value_or(0); };
  const auto device = [](const Comparison& c) { return c.scenario.device.name; };
  std::vector<std::string> names;
  for (const Comparison& point : points) {
    std::string name;
    const auto add = [&](const std::string& part) { name += (name.empty() ? "" : " · ") + part; };
    if (varies(batch)) add(fmt::format("batch {}", batch(point)));
    if (varies(sequence)) add(fmt::format("sequence {}", sequence(point)));
    if (varies(image)) add(fmt::format("image {}", image(point)));
    if (varies(device)) add(device(point));
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<const Report*> rows_of(std::span<const Comparison> points, std::string_view strategy) {
  std::vector<const Report*> rows;
  for (const Comparison& point : points) {
    const auto found = std::ranges::find(point.rows, strategy, &Report::strategy);
    rows.push_back(found == point.rows.end() || !found->applies ? nullptr : &*found);
  }
  return rows;
}

}  // namespace tidemark
