// What differs between two profiles: the rows that changed, largest change first.
#pragma once

#include <optional>

#include "simulator/profile.h"

namespace tidemark {

struct DiffRow {
  std::string key;                          ///< after; before's too, unless matched by its place
  std::optional<std::int64_t> before = {};  ///< unset: new
  std::optional<std::int64_t> after = {};   ///< unset: gone

  std::int64_t change() const { return after.value_or(0) - before.value_or(0); }
  bool operator==(const DiffRow&) const = default;
};

struct DiffTable {
  std::string name;
  Measure measure = Measure::Size;
  std::vector<DiffRow> rows;          ///< those that differ
  std::size_t equal = 0;              ///< how many do not
  std::optional<DiffRow> whole = {};  ///< the sums, if the rows are parts of one whole
};

struct Diff {
  std::string before, after;  ///< titles
  std::vector<DiffTable> tables;
  std::vector<std::string> unmatched;  ///< tables and facts that only one of the two states

  bool is_empty() const;
};

/// Rows are matched by their keys; those of blocks, if the two name them differently, by place.
/// Throws UsageError if the two have no table in common.
Diff diff(const Profile& before, const Profile& after);

}  // namespace tidemark
