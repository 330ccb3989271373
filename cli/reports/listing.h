// A list of things with some columns each, in every format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands/formats.h"
#include "cli/commands/scenario.h"
#include "cli/reports/comparison_fields.h"
#include "cli/text/text_table.h"

namespace tidemark::cli {

struct ListColumn {
  std::string key;    ///< in JSON and CSV
  std::string title;  ///< for people
  Align align = Align::Left;
  int importance = 10;
};

struct ListCell {
  FieldValue value;
  std::optional<std::string> shown = {};  ///< to people; unset: the value as it is
};

struct Listing {
  std::vector<ListColumn> columns;
  std::vector<std::vector<ListCell>> rows;
};

std::string print(const Listing& listing, Format format, const Style& style);

}  // namespace tidemark::cli
