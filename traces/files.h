// Whole files in, whole files out. A path that ends in ".zst" is compressed on disk and plain text
// in memory.
#pragma once

#include <string>
#include <string_view>

#include "traces/units.h"

namespace tidemark {

inline constexpr Bytes largest_file{std::int64_t{1} << 30};

/// The text of the file at `path`. Throws InputError when it cannot be read, is damaged, or holds
/// more than `limit` bytes (after decompression).
std::string read_file(const std::string& path, Bytes limit = largest_file);

/// Makes `path` hold `text`, or throws InputError and leaves it as it was: the text is written
/// beside it first and then renamed. Devices and pipes are written directly.
void write_file(const std::string& path, std::string_view text);

/// InputError, as write_file() would throw it, where it is plain that `path` cannot be written: for
/// before work that takes minutes. A disk may still be full afterwards.
void require_writable(const std::string& path);

}  // namespace tidemark
