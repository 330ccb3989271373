// A text as JSON has it, for writers that put their lines together themselves.
#pragma once

#include <string>
#include <string_view>

namespace tidemark {

/// Appends it in quotes, escaped. What is not UTF-8 cannot stand in JSON and becomes U+FFFD.
void append_json_text(std::string& out, std::string_view text);

std::string json_text(std::string_view text);

}  // namespace tidemark
