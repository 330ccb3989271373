// Texts that other programs have compressed with gzip (.gz): profiles of PyTorch mostly are.
#pragma once

#include <string>
#include <string_view>

#include "base/file_kind.h"

namespace tidemark {

bool is_gzip(std::string_view path);

/// The text of one member or several. Throws InputError, which names `path`, if they are damaged,
/// end early, or hold more than the kind of file may have.
std::string gunzipped(std::string_view packed, const std::string& path, const FileKindRow& kind);

/// The first bytes of a file's text, which may be compressed so; fewer if it has fewer, is damaged,
/// or cannot be read.
std::string first_bytes(const std::string& path, std::size_t count);

}  // namespace tidemark
