// Fills lines word by word by display width; a number and its percent sign stay together.
#include "cli/text/wrapping.h"

#include <algorithm>

#include "cli/text/terminal.h"

namespace tidemark::cli {

std::vector<std::string> wrapped_lines(std::string_view text, std::size_t width) {
  std::vector<std::string> lines = {""};
  bool is_first = true;
  while (!text.empty()) {
    std::size_t end = text.find(' ');
    if (end != text.npos && text.substr(end).starts_with(" %")) end = text.find(' ', end + 1);
    const std::string_view word = text.substr(0, end);  // a number and its percent sign are one
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!is_first && display_width(lines.back()) + 1 + display_width(word) > width) {
      lines.emplace_back();
    } else if (!is_first) {
      lines.back() += ' ';
    }
    lines.back() += word;
    is_first = false;
  }
  return lines;
}

std::string wrapped_text(std::string_view text, std::size_t width) {
  constexpr std::string_view indent = "  ";
  std::string wrapped;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::string_view before;
    for (const std::string& part : wrapped_lines(line, width - indent.size())) {
      wrapped.append(before).append(part).append("\n");
      before = indent;
    }
  }
  return wrapped;
}

}  // namespace tidemark::cli
