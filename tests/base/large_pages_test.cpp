// What the system was asked for stands in its own list of this process's memory.
#include "base/large_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tidemark::large_pages_test {
namespace {

#ifdef __linux__

// The flags of the mapping around the address, as /proc/self/smaps has them: " rd wr mr … hg".
std::string flags_around(const void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (words >> std::hex >> begin >> dash >> end && dash == '-')
      is_here = begin <= address && address < end;
    if (is_here && line.starts_with("VmFlags:")) return line;
  }
  return "";
}

bool asks_for_large_pages(std::size_t bytes, std::size_t at) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  prefer_large_pages(memory, bytes);
  const std::string flags = flags_around(static_cast<char*>(memory) + at);
  munmap(memory, bytes);
  return flags.find(" hg") != std::string::npos;
}

TEST(LargePages, AreAskedForWhereSeveralFit) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "this system has no transparent huge pages";
  EXPECT_TRUE(asks_for_large_pages(16 << 20, 8 << 20));
  EXPECT_FALSE(asks_for_large_pages(4 << 20, 2 << 20)) << "two pages are not worth a question";
}

#endif

TEST(LargePages, LeaveAVectorAsItIsButForItsRoom) {
  std::vector<int> items = {7, 8};
  reserve_in_large_pages(items, 10'000'000);
  EXPECT_EQ(items, (std::vector<int>{7, 8}));
  EXPECT_GE(items.capacity(), 10'000'000u);
  EXPECT_EQ(filled_in_large_pages(3, 5), (std::vector<int>{5, 5, 5}));
}

}  // namespace
}  // namespace tidemark::large_pages_test
