// A comparison as CSV: one line per strategy, one column per row field.
#include "cli/reports/comparison_fields.h"
#include "cli/reports/print_comparison.h"
#include "cli/text/csv.h"

namespace tidemark::cli {
std::string comparison_csv(const Comparison& comparison) {
  std::vector<std::string> titles;
  for (const RowField& field : row_fields()) titles.emplace_back(field.key);
  std::string text = csv_line(titles);
  for (const Report& row : comparison.rows) {
    std::vector<std::string> cells;
    for (const RowField& field : row_fields()) cells.push_back(field_text(value_of(field, row)));
    text += csv_line(cells);
  }
  return text;
}

}  // namespace tidemark::cli
