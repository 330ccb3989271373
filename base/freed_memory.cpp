// Two of glibc's settings; elsewhere the system's allocator does as it does.
#include "base/freed_memory.h"

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tidemark {

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int largest_threshold = 32 << 20;  // the most that glibc takes on 64 bits
  mallopt(M_MMAP_THRESHOLD, largest_threshold);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace tidemark
