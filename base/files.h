// Whole files in, whole files out. A path that ends in ".zst" is compressed on disk and plain text
// in memory.
#pragma once

#include <string>
#include <string_view>

#include "base/file_kind.h"
#include "base/read_progress.h"

namespace tidemark {

/// The text of the file at `path`. Throws InputError when it cannot be read, is damaged, or is
/// larger (after decompression) than its kind may be. `progress`, if given, is told of the
/// unpacking of a .zst.
std::string read_file(const std::string& path, FileKind kind);
std::string read_file(const std::string& path, const FileKindRow& kind,
                      ReadProgress* progress = nullptr);

/// As read_file(), of what is piped into the program.
std::string read_standard_input(FileKind kind);

/// Makes `path` hold `text`, or throws InputError and leaves it as it was: the text is written
/// beside it first and then renamed. Devices and pipes are written directly.
void write_file(const std::string& path, std::string_view text);

/// InputError, as write_file() would throw it, where it is plain that `path` cannot be written: for
/// before work that takes minutes. A disk may still be full afterwards.
void require_writable(const std::string& path);

}  // namespace tidemark
