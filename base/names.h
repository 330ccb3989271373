// One table per enum: names, parsing and help texts read it, and a static_assert keeps its order.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tidemark {

template <typename Enum>
struct Named {
  Enum value;
  std::string_view name;
};

// Clang deduces aggregates by itself from version 17 on.
template <typename Enum>
Named(Enum, std::string_view) -> Named<Enum>;

/// True if entry i of the table describes enumerator i.
template <typename Table>
constexpr bool is_in_order(const Table& table) {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (static_cast<std::size_t>(table[i].value) != i) return false;
  return true;
}

template <typename Table>
std::vector<std::string_view> names_of(const Table& table) {
  std::vector<std::string_view> names;
  for (const auto& entry : table) names.push_back(entry.name);
  return names;
}

/// The enumerator called `name`; UsageError with the known names otherwise.
template <typename Table>
auto parse_name(const Table& table, std::string_view what, std::string_view name) {
  for (const auto& entry : table)
    if (entry.name == name) return entry.value;
  throw UsageError(unknown_name(what, name, names_of(table)));
}

}  // namespace tidemark
