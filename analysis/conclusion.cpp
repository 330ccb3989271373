// Finds the fastest and the smallest strategy with their ties, and what is short if none fits.
#include "analysis/conclusion.h"

#include <algorithm>
#include <cmath>

namespace tidemark {
namespace {

// Below this a table shows "0.0 %".
constexpr double tie = 0.0005;

bool ties(double a, double b) { return std::abs(a - b) < tie * std::max(a, b); }
double measure(Bytes bytes) { return static_cast<double>(bytes.count); }
double measure(Nanoseconds time) { return static_cast<double>(time.count()); }

using Rows = std::vector<const Report*>;

// The row with the least of `of`, and whatever ties with it; the first one's numbers.
template <typename Of>
std::optional<Standing> least(const Rows& rows, Of of) {
  if (rows.empty()) return std::nullopt;
  const Report& best =
      **std::ranges::min_element(rows, {}, [&](const Report* row) { return measure((*row).*of); });
  Standing standing{{}, best.allocated_peak, best.time_ratio};
  for (const Report* row : rows)
    if (ties(measure((*row).*of), measure(best.*of))) standing.strategies.push_back(row->strategy);
  return standing;
}

const Report& row_named(const Rows& rows, const std::string& strategy) {
  return **std::ranges::find(rows, strategy, &Report::strategy);
}

Shortage shortage_of(const Report& row) { return {row.short_by, row.fits_expandable}; }

bool all_need_the_same(const Rows& rows) {
  return std::ranges::all_of(rows, [&](const Report* row) {
    return ties(measure(row->allocated_peak), measure(rows.front()->allocated_peak));
  });
}

}  // namespace

Conclusion conclude(std::span<const Report> rows, const Device& device, Bytes capacity) {
  Conclusion conclusion;
  conclusion.device = device.title;
  conclusion.capacity = capacity;
  Rows applying, fitting;
  for (const Report& row : rows) {
    if (!row.applies) continue;
    applying.push_back(&row);
    if (row.fits) fitting.push_back(&row);
  }
  conclusion.compared = applying.size();
  if (applying.empty()) return conclusion;
  conclusion.fastest = least(fitting, &Report::step);
  conclusion.smallest = least(fitting.empty() ? applying : fitting, &Report::allocated_peak);
  const Report& smallest = row_named(applying, conclusion.smallest->strategies.front());
  if (fitting.empty()) conclusion.nearest = shortage_of(smallest);
  const auto vanilla = std::ranges::find(applying, reference_strategy().name, &Report::strategy);
  if (vanilla != applying.end() && !(*vanilla)->fits && !fitting.empty())
    conclusion.vanilla = shortage_of(**vanilla);
  if (!fitting.empty() && !(applying.size() > 1 && all_need_the_same(applying))) return conclusion;
  conclusion.maker = smallest.peak_maker;
  conclusion.at_peak = smallest.at_peak;
  return conclusion;
}

}  // namespace tidemark
