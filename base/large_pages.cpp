// Transparent huge pages of Linux (Documentation/admin-guide/mm/transhuge.rst), by madvise().
#include "base/large_pages.h"

#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tidemark {

void prefer_large_pages(void* memory, std::size_t bytes) {
#ifdef __linux__
  constexpr std::uintptr_t page = 2 << 20;
  constexpr std::size_t several = 4;  // below, what lies around them costs as much
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / page * page;
  if (end < begin + several * page) return;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // a wish: may fail
#else
  (void)memory, (void)bytes;
#endif
}

}  // namespace tidemark
