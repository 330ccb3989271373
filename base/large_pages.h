// Room for arrays of millions of items, in pages of 2 MiB instead of 4 KiB.
#pragma once

#include <cstddef>
#include <vector>

namespace tidemark {

/// Asks the system to back the whole pages of 2 MiB in this memory with one page each, if there are
/// several. It holds nothing yet; where the system does not know the question, nothing happens.
void prefer_large_pages(void* memory, std::size_t bytes);

/// Room for `count` items. Whoever fills many megabytes once waits for the system, which clears
/// what it gives page by page, longer than the filling takes.
template <typename T>
void reserve_in_large_pages(std::vector<T>& items, std::size_t count) {
  items.reserve(count);
  prefer_large_pages(items.data(), items.capacity() * sizeof(T));
}

/// So many items in such pages, all equal.
template <typename T>
std::vector<T> filled_in_large_pages(std::size_t count, const T& item) {
  std::vector<T> items;
  reserve_in_large_pages(items, count);
  items.resize(count, item);
  return items;
}

}  // namespace tidemark
