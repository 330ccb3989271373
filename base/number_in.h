// A text that is one number and nothing else.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace tidemark {

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace tidemark
