// What PYTORCH_CUDA_ALLOC_CONF may say in PyTorch 2.6, and the size rules that follow from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace tidemark::allocator {

struct AllocatorSettings {
  /// Blocks of this size or more are neither split nor handed to smaller requests.
  std::optional<Bytes> max_split_size;
  /// A request of that size or more takes a block only if that is less than so much larger.
  Bytes max_non_split_rounding{20 << 20};
  /// In how many steps each power of two is divided, to round sizes up to a step. The first entry
  /// is for sizes below 2 MiB, the next below 4 MiB, …, the last from 32 GiB. 0 and 1: none.
  std::array<std::int64_t, 16> roundup_divisions{};
  bool expandable_segments = false;
  /// Share of the allowed memory above which old cached segments are freed; 0 means never.
  /// PyTorch heeds it only where a memory fraction is set.
  double garbage_collection_threshold = 0;

  bool operator==(const AllocatorSettings&) const = default;
};

/// The same with expandable segments, whose pages are given back one by one: what PyTorch advises
/// against fragmentation.
inline AllocatorSettings expandable(AllocatorSettings settings) {
  settings.expandable_segments = true;
  return settings;
}

/// Reads "max_split_size_mb:128,expandable_segments:True". Options that do not change what is
/// allocated on the device are checked and dropped. Throws InputError.
AllocatorSettings parse_allocator_settings(std::string_view text);

inline constexpr Bytes smallest_block{512};
/// Larger ones live in another pool, with other segments.
inline constexpr Bytes largest_small_block{1 << 20};

/// The size of the block that a request of `size`, in [1 B, 1 EiB), looks for.
Bytes rounded_size(const AllocatorSettings& settings, Bytes size);

/// What the device is asked for when no cached block serves one of `rounded` size.
Bytes segment_size(Bytes rounded);

}  // namespace tidemark::allocator
