// What a middle block saves by kind of op: the table behind the published shares.
#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/print_comparison.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

// Kinds that any row has, in the order of the op table.
std::vector<OpKind> kinds_of(const Comparison& comparison) {
  std::vector<OpKind> kinds;
  for (const Report& row : comparison.rows)
    for (const KindUnits& units : row.units.kinds)
      if (std::ranges::find(kinds, units.kind) == kinds.end()) kinds.push_back(units.kind);
  std::ranges::sort(kinds);
  return kinds;
}

std::string units_text(double units) { return units == 0 ? "" : fmt::format("{:.2f}", units); }

std::vector<TextCell> cells(const Report& row, const std::vector<OpKind>& kinds,
                            double KindUnits::*member, double total) {
  std::vector<TextCell> cells = {{units_text(total), Ink::Bold}};
  for (const OpKind kind : kinds) {
    const auto found = std::ranges::find(row.units.kinds, kind, &KindUnits::kind);
    cells.push_back({found == row.units.kinds.end() ? "" : units_text((*found).*member)});
  }
  return cells;
}

void add_rows(TextTable& table, const Report& row, const std::vector<OpKind>& kinds) {
  const auto add = [&](TextCell name, const char* counting, TextCell change,
                       std::vector<TextCell> units) {
    std::vector<TextCell> line = {std::move(name), {counting}, std::move(change)};
    std::ranges::move(units, std::back_inserter(line));
    table.add_row(std::move(line));
  };
  const bool differs = row.saved_ratio && *row.saved_ratio != 1;
  add({row.strategy, Ink::Bold}, "per op",
      differs ? TextCell{fmt::format("{:.2f} %", (1 - *row.saved_ratio) * 100), Ink::Good}
              : TextCell{},
      cells(row, kinds, &KindUnits::per_op, row.units.per_op));
  add({}, "unique", {}, cells(row, kinds, &KindUnits::unique, row.units.unique));
}

}  // namespace

std::string block_units_table(const Comparison& comparison, const Style& style) {
  const auto first = std::ranges::find_if(
      comparison.rows, [](const Report& row) { return row.applies && !row.units.kinds.empty(); });
  if (first == comparison.rows.end()) return "\nNo block saves activations.\n";
  const std::vector<OpKind> kinds = kinds_of(comparison);
  TextTable table;
  table.add_column({"strategy", Align::Left});
  table.add_column({"counting", Align::Left});
  table.add_column({"saves"});
  table.add_column({"total"});
  int importance = 9;  // of the last kinds least
  for (const OpKind kind : kinds)
    table.add_column({std::string(to_string(kind)), Align::Right, importance--});
  for (const Report& row : comparison.rows)
    if (row.applies) add_rows(table, row, kinds);
  std::string text =
      fmt::format("\nSaved by {}, in units of {} (one 16-bit tensor [batch, tokens, width]):\n",
                  first->units.block, to_text(first->units.unit));
  text += table.draw(style, "--format json has all");
  return text;
}

}  // namespace tidemark::cli
