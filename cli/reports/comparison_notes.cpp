// What has to be said about a comparison's numbers beside the numbers.
#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/print_comparison.h"

namespace tidemark::cli {
namespace {

constexpr std::string_view expandable_option = "--alloc-conf expandable_segments:True";

template <typename Is>
std::string names_where(const Comparison& comparison, Is is) {
  std::string names;
  for (const Report& row : comparison.rows)
    if (row.applies && is(row)) names += (names.empty() ? "" : ", ") + row.strategy;
  return names;
}

void add_fragmented(const Comparison& comparison, std::vector<std::string>& notes) {
  const std::string cured = names_where(
      comparison, [](const Report& row) { return row.fits_expandable.value_or(false); });
  if (!cured.empty())
    notes.push_back(fmt::format("fragmented: with {} fits: {}", expandable_option, cured));
  const std::string others = names_where(
      comparison, [](const Report& row) { return !row.fits_expandable.value_or(true); });
  if (!others.empty())
    notes.push_back(fmt::format("fragmented, with {} as well: {}", expandable_option, others));
}

void add_uneven(const Comparison& comparison, std::vector<std::string>& notes) {
  std::string cures;
  for (const Report& row : comparison.rows)
    if (row.expandable_batches)
      cures += fmt::format("{}{} {}", cures.empty() ? "" : ", ", row.strategy,
                           row.expandable_batches->every);
  const bool is_uneven = std::ranges::any_of(comparison.rows, [](const Report& row) {
    return row.batches && row.batches->every != row.batches->largest;
  });
  if (!is_uneven) return;
  notes.emplace_back(
      "max batch: every batch up to it fits; in brackets the largest that fits at all, since "
      "fragmentation does not grow evenly with the batch");
  if (!cures.empty())
    notes.push_back(fmt::format("with {} every batch fits up to: {}", expandable_option, cures));
}

void add_cut_short(const Comparison& comparison, std::vector<std::string>& notes) {
  const std::string cut = names_where(comparison, [](const Report& row) {
    return (row.batches && row.batches->cut_short) ||
           (row.expandable_batches && row.expandable_batches->cut_short);
  });
  if (!cut.empty())
    notes.push_back(fmt::format("max batch: only {} batches were tried one by one: {}",
                                most_batches_tried, cut));
}

}  // namespace

std::vector<std::string> notes_on(const Comparison& comparison) {
  std::vector<std::string> notes;
  add_fragmented(comparison, notes);
  add_uneven(comparison, notes);
  add_cut_short(comparison, notes);
  return notes;
}

}  // namespace tidemark::cli
