// Packs long integer lists, and words the errors: syntax, merge conflicts, keys that occur twice.
#include "base/json_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/quoted.h"

namespace tidemark {
namespace {

/// "3:17": where byte number `position` (from one) of `text` stands.
std::string line_and_column(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position == 0 ? 0 : position - 1);
  const auto lines = std::ranges::count(before, '\n');
  const std::size_t line_begin = lines == 0 ? 0 : before.rfind('\n') + 1;
  return fmt::format("{}:{}", lines + 1, before.size() - line_begin + 1);
}

std::string_view line_from(std::string_view text, std::size_t begin) {
  return text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
}

bool is_conflict_marker(std::string_view line) {
  return std::ranges::any_of(
      std::array<std::string_view, 4>{"<<<<<<<", "|||||||", "=======", ">>>>>>>"},
      [&](std::string_view marker) { return line.starts_with(marker); });
}

/// Where git could not merge two versions, it leaves both, with markers: "…conflict (lines 3, 9)…",
/// if byte number `position` (from one) stands in such a line; else "".
std::string conflict_at(std::string_view text, std::size_t position) {
  const std::size_t at = std::min(position == 0 ? 0 : position - 1, text.size());
  const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  if (!is_conflict_marker(line_from(text, begin))) return "";
  std::string lines;
  int markers = 0;
  auto number = std::ranges::count(text.substr(0, begin), '\n') + 1;
  for (std::size_t next = begin; next < text.size(); ++number) {
    const std::string_view line = line_from(text, next);
    if (is_conflict_marker(line)) lines += fmt::format("{}{}", markers++ ? ", " : "", number);
    if (line.starts_with(">>>>>>>")) break;
    next += line.size() + 1;
  }
  return fmt::format(
      "found a merge conflict (its markers are in line{} {}); keep what you want of both sides and "
      "delete the markers",
      markers == 1 ? "" : "s", lines);
}

/// The parser's own words without its "[json.exception…] parse error at line 1, column 2: ".
std::string reason(std::string_view what) {
  for (const std::string_view prefix : {"] ", "column ", ": "}) {
    const std::size_t found = what.find(prefix);
    if (found != std::string_view::npos)
      what.remove_prefix(found + prefix.size());
    else
      break;
  }
  return printable(what, 240);
}

}  // namespace

JsonDocument::Column::Column(const std::vector<std::int64_t>& values) {
  const auto is_narrow = [](std::int64_t value) {
    return value == static_cast<std::int32_t>(value);
  };
  if (std::ranges::all_of(values, is_narrow)) {
    narrow_.reserve(values.size());
    for (const std::int64_t value : values) narrow_.push_back(static_cast<std::int32_t>(value));
  } else {
    wide_ = values;
  }
}

void JsonBuilder::end_array_of(const std::vector<std::int64_t>& values) {
  // Of a short list, like a shape, values of the common form are smaller.
  constexpr std::size_t shortest = 16;
  if (values.size() < shortest) {
    for (const std::int64_t value : values) number_integer(value);
    end_array();
    return;
  }
  require_room(values.size());
  in_columns_ += values.size();
  JsonDocument::Value& list = document_.values_[close()];
  list.is_column = true;
  list.column = document_.columns_.size();
  document_.columns_.emplace_back(values);
}

void JsonBuilder::fail_too_large() const {
  throw InputError(fmt::format("{}: more than {} values; this is not a file for Tidemark",
                               document_.file_, JsonDocument::max_values));
}

bool JsonBuilder::parse_error(std::size_t position, const std::string&,
                              const nlohmann::json::exception& error) {
  const std::string conflict = conflict_at(text_, position);
  throw InputError(fmt::format("{}:{}: {}", document_.file_, line_and_column(text_, position),
                               conflict.empty() ? reason(error.what()) : conflict));
}

std::uint32_t JsonBuilder::intern_unexpected(std::string_view text) {
  auto known = ids_.find(text);
  if (known == ids_.end()) {
    const auto id = static_cast<std::uint32_t>(document_.strings_.size());
    known = ids_.emplace(document_.strings_.emplace_back(text), id).first;
    behind_.push_back(0);
  }
  behind_[last_] = known->second;
  return last_ = known->second;
}

bool JsonBuilder::open(JsonKind kind) {
  const auto index = static_cast<std::uint32_t>(document_.values_.size());
  // An open container reaches to the end of the document, so that pointers can be made already.
  add(kind, {.end = std::numeric_limits<std::uint32_t>::max()});
  if (open_.size() == JsonDocument::max_depth)
    document_.fail_at(index, fmt::format("more than {} levels of nesting; a file for Tidemark "
                                         "needs fewer",
                                         JsonDocument::max_depth));
  open_.push_back(index);
  return true;
}

void JsonBuilder::reject_duplicate_keys(std::uint32_t object) {
  keys_.clear();
  const auto end = static_cast<std::uint32_t>(document_.values_.size());
  for (std::uint32_t i = object + 1; i < end; i = document_.next(i))
    keys_.push_back(document_.values_[i].key);
  std::ranges::sort(keys_);
  const auto twice = std::ranges::adjacent_find(keys_);
  if (twice == keys_.end()) return;
  document_.fail_at(object, fmt::format("found the key '{}' twice; keep one of them",
                                        printable(document_.strings_[*twice], 64)));
}

}  // namespace tidemark
