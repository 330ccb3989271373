// Cuts long text at a character's boundary and shows control characters as '?'.
#include "base/quoted.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark {

std::string printable(std::string_view text, std::size_t longest) {
  std::size_t length = std::min(text.size(), longest);
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  if (length < text.size())
    while (length > 0 && continues(text[length])) --length;
  std::string shown(text.substr(0, length));
  std::ranges::replace_if(
      shown, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return length < text.size() ? shown + "…" : shown;
}

std::string quoted(std::string_view name) { return fmt::format("'{}'", printable(name)); }

}  // namespace tidemark
