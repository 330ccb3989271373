// Compares settings by key, and tells the sizes of a step from everything else.
#include "analysis/check/settings_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace tidemark::regression {
namespace {

constexpr std::array<std::string_view, 3> sizes = {"batch", "sequence", "image"};

bool is_size(std::string_view key) { return std::ranges::find(sizes, key) != sizes.end(); }

std::string shown(const std::string& value) { return value.empty() ? "not set" : value; }

}  // namespace

std::vector<SettingChange> changes_of(const Settings& before, const Settings& now) {
  std::map<std::string, SettingChange> values;
  for (const auto& [key, value] : before) values[key].before = value;
  for (const auto& [key, value] : now) values[key].now = value;
  std::vector<SettingChange> changes;
  for (auto& [key, change] : values) {
    if (change.before == change.now) continue;
    change.key = key;
    changes.push_back(std::move(change));
  }
  return changes;
}

std::string describe(const std::vector<SettingChange>& changes) {
  std::string text;
  for (const auto& [key, before, now] : changes)
    text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", key, shown(before), shown(now));
  return text;
}

bool are_sizes_of_the_step(const std::vector<SettingChange>& changes) {
  return !changes.empty() &&
         std::ranges::all_of(changes, is_size, [](const SettingChange& one) { return one.key; });
}

std::string without_sizes_of_the_step(const Settings& settings) {
  std::map<std::string_view, std::string_view> others;
  for (const auto& [key, value] : settings)
    if (!is_size(key)) others.emplace(key, value);
  std::string text;
  for (const auto& [key, value] : others) text += fmt::format("{}\n{}\n", key, value);
  return text;
}

}  // namespace tidemark::regression
