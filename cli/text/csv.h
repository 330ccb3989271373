// Comma-separated values as in RFC 4180, with plain line ends; and tables in Markdown.
#pragma once

#include <string>
#include <vector>

namespace tidemark::cli {

std::string csv_line(const std::vector<std::string>& cells);

/// "| a | b |"
std::string markdown_line(const std::vector<std::string>& cells);

}  // namespace tidemark::cli
