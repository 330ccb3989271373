// Texts that are compressed on disk (.zst).
#pragma once

#include <string>
#include <string_view>

#include "base/file_kind.h"
#include "base/read_progress.h"

namespace tidemark {

std::string compressed(std::string_view text);

/// The text of one frame or several. Throws InputError, which names `path`, if they are damaged,
/// end early, or hold more than the kind of file may have.
std::string decompressed(std::string_view packed, const std::string& path, const FileKindRow& kind,
                         ReadProgress* progress = nullptr);

}  // namespace tidemark
