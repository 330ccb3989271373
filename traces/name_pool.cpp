// Each block is twice as large as the one before, within limits: small traces take little.
#include "traces/name_pool.h"

#include <algorithm>

namespace tidemark {

Name NamePool::add(std::string_view text) {
  if (text.size() > free_.size()) add_block(text.size());
  const std::span<char> copy = free_.first(text.size());
  std::ranges::copy(text, copy.begin());
  free_ = free_.subspan(text.size());
  return Name(std::string_view(copy.data(), copy.size()));
}

void NamePool::share(const NamePool& other) {
  blocks_.insert(blocks_.begin(), other.blocks_.begin(), other.blocks_.end());
}

void NamePool::add_block(std::size_t least) {
  const std::size_t size = std::max(least, next_size_);
  next_size_ = std::min(2 * next_size_, largest_block);
  blocks_.push_back(std::make_shared_for_overwrite<char[]>(size));
  free_ = {blocks_.back().get(), size};
}

}  // namespace tidemark
