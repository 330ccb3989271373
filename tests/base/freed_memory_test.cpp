// What is freed stays in the program's heap, where the next array finds it.
#include "base/freed_memory.h"

#include <gtest/gtest.h>

#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tidemark::freed_memory_test {
namespace {

TEST(FreedMemory, ServesTheNextArray) {
#ifdef __GLIBC__
  keep_freed_memory();
  constexpr std::size_t size = 16 << 20;
  const std::size_t mapped = mallinfo2().hblkhd;
  { const std::vector<char> first(size); }
  const std::size_t heap = mallinfo2().arena;
  EXPECT_GE(mallinfo2().fordblks, size) << "the first array went back to the system";
  const std::vector<char> second(size);
  EXPECT_EQ(mallinfo2().arena, heap) << "the second array came from the system";
  EXPECT_EQ(mallinfo2().hblkhd, mapped) << "an array has pages of its own";
#else
  GTEST_SKIP() << "a setting of glibc's allocator";
#endif
}

}  // namespace
}  // namespace tidemark::freed_memory_test
