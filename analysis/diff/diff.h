// What differs between two profiles: the rows that changed, largest change first.
#pragma once

#include <optional>

#include "analysis/diff/profile.h"

namespace tidemark::diff {

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
  /// What the columns are called: "predicted" and "measured" where that is the difference.
  std::string_view before_label = "before", after_label = "after";
  std::vector<DiffTable> tables;
  std::vector<std::string> unmatched;  ///< tables and facts that only one of the two states

  bool is_empty() const;
};

/// Two single steps are compared in all that both say. Where a file has many, each number is a
/// table with a row per step: matched by their keys within one kind of file, by batch, device and
/// strategy across kinds; a single step is looked for among the many. Blocks that two models name
/// differently are matched by place. Throws UsageError if nothing can be matched.
Diff diff(const Profile& before, const Profile& after);

}  // namespace tidemark::diff
