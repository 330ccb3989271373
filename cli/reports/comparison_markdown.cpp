// A comparison as Markdown: scenario, table, refusals, notes and conclusion.
#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/print_comparison.h"
#include "cli/text/csv.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

std::string optional_change(const std::optional<double>& ratio) {
  return ratio ? change_text(*ratio) : "";
}

}  // namespace

std::string comparison_markdown(const Comparison& comparison) {
  Bytes largest;
  Nanoseconds longest{};
  for (const Report& row : comparison.rows) {
    largest = std::max({largest, row.allocated_peak, row.reserved_peak});
    longest = std::max(longest, row.step);
  }
  const SizeUnit size(largest);
  const TimeUnit time(longest);
  const bool has_batches = comparison.scenario.finds_largest_batch;
  std::string text;
  for (const std::string& line : describe_scenario(comparison)) text += line + "  \n";
  text += origin_of_numbers(comparison) + "\n\n";
  std::vector<std::string> titles = {"strategy", fmt::format("allocated [{}]", size.name()),
                                     "change",   "reserved",
                                     "planned",  fmt::format("step [{}]", time.name()),
                                     "change",   throughput_title(comparison),
                                     "MFU",      "fits"};
  std::vector<std::string> rules = {
      "---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "---"};
  if (has_batches) titles.emplace_back("max batch"), rules.emplace_back("--:");
  text += markdown_line(titles) + markdown_line(rules);
  for (const Report& row : comparison.rows) {
    if (!row.applies) continue;
    std::vector<std::string> cells = {row.strategy,
                                      size(row.allocated_peak),
                                      optional_change(row.memory_ratio),
                                      size(row.reserved_peak),
                                      size(row.planned),
                                      time(row.step),
                                      optional_change(row.time_ratio),
                                      throughput_text(row),
                                      mfu_text(row),
                                      fits_text(row)};
    if (has_batches) cells.push_back(batches_text(row));
    text += markdown_line(cells);
  }
  std::string refused;
  for (const Report& row : comparison.rows)
    if (!row.applies)
      refused += fmt::format("* `{}` does not apply: {}\n", row.strategy,
                             refusal_text(row.strategy, row.reason));
  if (!refused.empty()) text += "\n" + refused;
  std::string notes;
  for (const std::string& note : notes_on(comparison)) notes += fmt::format("* {}\n", note);
  if (!notes.empty()) text += "\n" + notes;
  return text + fmt::format("\n{}\n", to_text(comparison.conclusion));
}

}  // namespace tidemark::cli
