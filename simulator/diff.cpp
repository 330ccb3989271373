#include "simulator/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "traces/error.h"

namespace tidemark {
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

}  // namespace

bool Diff::is_empty() const {
  return std::ranges::all_of(tables, [](const DiffTable& table) { return table.rows.empty(); });
}

Diff diff(const Profile& before, const Profile& after) {
  Diff result{before.title, after.title, {}, {}};
  for (const ProfileTable& table : after.tables) {
    const auto old = std::ranges::find(before.tables, table.name, &ProfileTable::name);
    if (old == before.tables.end()) {
      result.unmatched.push_back(table.name);
    } else {
      result.tables.push_back(compare(*old, table, result.unmatched));
    }
  }
  for (const ProfileTable& table : before.tables)
    if (std::ranges::find(after.tables, table.name, &ProfileTable::name) == after.tables.end())
      result.unmatched.push_back(table.name);
  if (result.tables.empty())
    throw UsageError(fmt::format(
        "{} and {} have no number in common (compare two files of one kind, or a timeline with an "
        "explanation)",
        before.title, after.title));
  return result;
}

}  // namespace tidemark
