// Text that other people chose, in messages of one line.
#pragma once

#include <string>
#include <string_view>

namespace tidemark {

/// Control characters replaced, and cut before byte `longest`, but not inside a UTF-8 sequence.
std::string printable(std::string_view text, std::size_t longest = 60);

/// The printable text in quotes: 'h3.attn'.
std::string quoted(std::string_view name);
// The standard's quoted() would be a better match for these where <iomanip> is included.
inline std::string quoted(const char* name) { return quoted(std::string_view(name)); }
inline std::string quoted(const std::string& name) { return quoted(std::string_view(name)); }
inline std::string quoted(std::string& name) { return quoted(std::string_view(name)); }

}  // namespace tidemark
