// Compares tables row by row, by key, or by place where two models name their blocks differently.
#include "analysis/diff/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "analysis/diff/profile_match.h"
#include "base/error.h"

namespace tidemark::diff {
namespace {

using Rows = std::unordered_map<std::string_view, const ProfileRow*>;

Rows by_key(const ProfileTable& table, std::string ProfileRow::*key) {
  Rows rows;
  for (const ProfileRow& row : table.rows)
    if (!(row.*key).empty()) rows.emplace(row.*key, &row);
  return rows;
}

// Blocks that two models name differently stand in the same places.
bool matches_by_place(const ProfileTable& before, const ProfileTable& after) {
  const Rows known = by_key(before, &ProfileRow::key);
  const auto has_place = [](const ProfileRow& row) { return !row.place.empty(); };
  const auto is_known = [&](const ProfileRow& row) {
    return has_place(row) && known.contains(row.key);
  };
  return std::ranges::any_of(before.rows, has_place) &&
         std::ranges::any_of(after.rows, has_place) && std::ranges::none_of(after.rows, is_known);
}

DiffTable compare(const ProfileTable& before, const ProfileTable& after,
                  std::vector<std::string>& unmatched) {
  DiffTable result{after.name, after.measure, {}, 0, {}};
  const bool by_place = matches_by_place(before, after);
  const auto name = [&](const ProfileRow& row) -> const std::string& {
    return by_place && !row.place.empty() ? row.place : row.key;
  };
  std::unordered_map<std::string_view, const ProfileRow*> old;
  for (const ProfileRow& row : before.rows) old.emplace(name(row), &row);
  DiffRow whole{"all", 0, 0};
  for (const ProfileRow& row : after.rows) {
    DiffRow line{row.key, {}, row.value};
    if (const auto found = old.find(name(row)); found != old.end()) {
      line.before = found->second->value;
      if (found->second->key != row.key)
        line.key = fmt::format("{} → {}", found->second->key, row.key);
      old.erase(found);
    }
    *whole.after += row.value;
    if (!line.before && after.kind == RowKind::Fact) {
      unmatched.push_back(row.key);
    } else if (line.before == line.after) {
      ++result.equal;
    } else {
      result.rows.push_back(std::move(line));
    }
  }
  for (const ProfileRow& row : before.rows) {
    *whole.before += row.value;
    const auto gone = old.find(name(row));
    if (gone == old.end() || gone->second != &row) continue;
    if (before.kind == RowKind::Fact) {
      unmatched.push_back(row.key);
    } else {
      result.rows.push_back({row.key, row.value, {}});
    }
  }
  std::ranges::stable_sort(result.rows, [](const DiffRow& a, const DiffRow& b) {
    return std::pair(-std::abs(a.change()), std::string_view(a.key)) <
           std::pair(-std::abs(b.change()), std::string_view(b.key));
  });
  if (before.kind == RowKind::Part && after.kind == RowKind::Part) result.whole = whole;
  return result;
}

// A whole that has one part, as the time of a single stream, says nothing that others do not.
bool is_one_part(const ProfileTable& table) {
  return table.kind == RowKind::Part && table.rows.size() == 1;
}

}  // namespace

bool Diff::is_empty() const {
  return std::ranges::all_of(tables, [](const DiffTable& table) { return table.rows.empty(); });
}

Diff diff(const Profile& before, const Profile& after) {
  const MatchedTables found = match(before, after);
  Diff result{.before = found.before, .after = found.after, .tables = {}, .unmatched = {}};
  if (!before.source.empty() && !after.source.empty() && before.source != after.source)
    result.before_label = before.source, result.after_label = after.source;
  const auto table_like = [](const std::vector<ProfileTable>& tables, const ProfileTable& wanted) {
    return std::ranges::find_if(tables, [&](const ProfileTable& table) {
      return table.name == wanted.name && table.measure == wanted.measure;
    });
  };
  for (const ProfileTable& table : found.new_tables) {
    const auto old = table_like(found.old_tables, table);
    if (old == found.old_tables.end()) {
      result.unmatched.push_back(table.name);
    } else if (!is_one_part(*old) || !is_one_part(table)) {
      result.tables.push_back(compare(*old, table, result.unmatched));
    }
  }
  for (const ProfileTable& table : found.old_tables)
    if (table_like(found.new_tables, table) == found.new_tables.end())
      result.unmatched.push_back(table.name);
  if (result.tables.empty())
    throw UsageError(
        fmt::format("{} and {} have no number in common (docs/reports.md says what "
                    "can be compared)",
                    result.before, result.after));
  return result;
}

}  // namespace tidemark::diff
