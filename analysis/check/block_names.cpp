// A name is split into its stem and its last number; names that count up by one extend a range.
#include "analysis/check/block_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace tidemark::regression {
namespace {

/// "blocks.11" in two, or "blocks.0-11" with its last number.
struct Numbered {
  std::string_view stem;  ///< "blocks."
  std::uint64_t first = 0, last = 0;
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_plain = text == "0" || !text.starts_with('0');  // "07" is no count
  if (error != std::errc() || end != text.data() + text.size() || !is_plain) return {};
  return value;
}

std::optional<Numbered> parsed(std::string_view name) {
  const std::size_t stem = name.rfind('.') + 1;  // of a name without a dot: 0
  const std::string_view numbers = name.substr(stem);
  const std::size_t dash = std::min(numbers.find('-'), numbers.size());
  const auto first = number(numbers.substr(0, dash));
  const auto last = dash == numbers.size() ? first : number(numbers.substr(dash + 1));
  if (!first || !last) return {};
  return Numbered{name.substr(0, stem), *first, *last};
}

bool is_single(const std::optional<Numbered>& name) { return name && name->first == name->last; }

}  // namespace

std::vector<std::string> block_ranges(const std::vector<std::string>& names) {
  std::vector<std::string> ranges;
  std::optional<Numbered> open;  // the range that the last entry is
  for (const std::string& name : names) {
    const auto next = parsed(name);
    if (open && is_single(next) && next->stem == open->stem && next->first == open->last + 1) {
      open->last = next->last;
      ranges.back() = fmt::format("{}{}-{}", open->stem, open->first, open->last);
    } else {
      open = is_single(next) ? next : std::nullopt;
      ranges.push_back(name);
    }
  }
  return ranges;
}

bool is_in_ranges(const std::vector<std::string>& ranges, std::string_view name) {
  const auto block = parsed(name);
  return std::ranges::any_of(ranges, [&](const std::string& text) {
    if (text == name) return true;
    const auto range = parsed(text);
    return range && is_single(block) && range->stem == block->stem &&
           range->first <= block->first && block->first <= range->last;
  });
}

}  // namespace tidemark::regression
