// Finds the fastest and the smallest strategy with their ties, and what is short if none fits.
#include "analysis/conclusion.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tidemark {
namespace {

// Below this a table shows "0.0 %".
constexpr double tie = 0.0005;

bool ties(double a, double b) { return std::abs(a - b) < tie * std::max(a, b); }
double measure(Bytes bytes) { return static_cast<double>(bytes.count); }
double measure(Nanoseconds time) { return static_cast<double>(time.count()); }

using Rows = std::vector<const Report*>;

// The row with the least of `of`, and whatever ties with it.
template <typename Of>
Rows least(const Rows& rows, Of of) {
  const auto value = [&](const Report* row) { return measure((*row).*of); };
  const double best = value(*std::ranges::min_element(rows, {}, value));
  Rows tied;
  std::ranges::copy_if(rows, std::back_inserter(tied),
                       [&](const Report* row) { return ties(value(row), best); });
  return tied;
}

Standing standing_of(const Rows& tied) {
  const Report& first = *tied.front();
  Standing standing{{}, first.allocated_peak, first.time_ratio};
  for (const Report* row : tied) {
    standing.strategies.push_back(row->strategy);
    if (!ties(measure(row->step), measure(first.step))) standing.one_time = false;
  }
  return standing;
}

// Who needs no more than another and takes less time is to be taken.
Standing smallest_of(const Rows& rows) {
  Rows tied = least(rows, &Report::allocated_peak);
  std::ranges::stable_sort(tied, {}, &Report::step);
  return standing_of(tied);
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
  if (!fitting.empty()) conclusion.fastest = standing_of(least(fitting, &Report::step));
  conclusion.smallest = smallest_of(fitting.empty() ? applying : fitting);
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
