// Text in lines of a limited width, broken at blanks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::cli {

/// A word that is longer than a line stands alone in one. At least one line.
std::vector<std::string> wrapped_lines(std::string_view text, std::size_t width);

/// Each line of a text by itself; what continues one is indented.
std::string wrapped_text(std::string_view text, std::size_t width);

}  // namespace tidemark::cli
