// How much of a file is too much.
#pragma once

#include <cstdint>
#include <string>

#include "base/file_kind.h"

namespace tidemark {

/// Throws InputError, which names `path`, if so many bytes are more than the kind may have.
void require_within(const FileKindRow& kind, const std::string& path, std::uint64_t size);

/// Likewise of what was read so far, where the end was not seen.
void require_within_so_far(const FileKindRow& kind, const std::string& path, std::uint64_t size);

}  // namespace tidemark
