// How often a text has a part.
#pragma once

#include <string_view>

namespace tidemark {

inline std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace tidemark
