// Caching allocators as their tests want them.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "simulator/allocator/allocator_settings.h"
#include "simulator/allocator/caching_allocator.h"

namespace tidemark::allocator {

using namespace literals;

inline constexpr std::int64_t mib = 1 << 20;
inline constexpr std::int64_t first_address = 0x7f0000000000;
inline constexpr std::int64_t first_expandable_address = 0x100000000000;

inline CachingAllocator allocator_with(std::string_view settings, Bytes capacity = 80_GiB,
                                       std::optional<double> fraction = std::nullopt) {
  return CachingAllocator(parse_allocator_settings(settings), capacity, fraction);
}

/// For requests that are expected to succeed.
inline BlockHandle get(CachingAllocator& allocator, Bytes size, std::uint32_t stream = 0) {
  const auto block = allocator.allocate(size, stream);
  EXPECT_TRUE(block.has_value()) << size.count << " B";
  return block.value_or(no_block);
}

/// The order of addresses in the first segment.
inline std::int64_t offset(const CachingAllocator& allocator, BlockHandle block,
                           std::int64_t first = first_address) {
  return allocator.address(block) - first;
}

}  // namespace tidemark::allocator
