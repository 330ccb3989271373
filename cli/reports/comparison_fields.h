// The single values of a row for programs, in one table: JSON and CSV have the same keys in the
// same order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "analysis/report.h"

namespace tidemark::cli {

/// Nothing is null in JSON and an empty cell in CSV.
using FieldValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

/// As in a CSV cell.
std::string field_text(const FieldValue& value);

struct RowField {
  std::string_view key;
  std::string_view help;
  FieldValue (*of)(const Report& row);
  bool always = false;  ///< also of a strategy that does not apply
};

std::span<const RowField> row_fields();

/// The field's value, or nothing if the strategy does not apply.
FieldValue value_of(const RowField& field, const Report& row);

}  // namespace tidemark::cli
