// The words of a share: whole percent, rounded down, so that 100 % is the end.
#include "base/read_progress.h"

#include <fmt/format.h>

namespace tidemark {

std::string ReadProgress::text() const {
  const double share = share_;
  if (share == unknown) return part_.load();
  return fmt::format("{}, {} %", part_.load(), static_cast<int>(100 * share));
}

}  // namespace tidemark
