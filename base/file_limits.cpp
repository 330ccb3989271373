// Words the refusal of files that are larger than their kind may be.
#include "base/file_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace tidemark {

void require_within(const FileKindRow& kind, const std::string& path, std::uint64_t size) {
  if (size <= static_cast<std::uint64_t>(kind.limit.count)) return;
  // A compressed file may claim any size.
  const auto shown = std::min<std::uint64_t>(size, std::numeric_limits<std::int64_t>::max());
  throw InputError(fmt::format("{}: holds {}; {} may have {} ({})", path,
                               to_text(Bytes{static_cast<std::int64_t>(shown)}), kind.name,
                               to_text(kind.limit), kind.remedy));
}

void require_within_so_far(const FileKindRow& kind, const std::string& path, std::uint64_t size) {
  if (size <= static_cast<std::uint64_t>(kind.limit.count)) return;
  throw InputError(fmt::format("{}: does not end within {}, the most that {} may have ({})", path,
                               to_text(kind.limit), kind.name, kind.remedy));
}

}  // namespace tidemark
