// The caching allocator's rules once more, as slowly and plainly as possible: one map of blocks by
// address, a scan for every question, every statistic summed up anew. Shares nothing with the model
// but the two types of the interface. For the property test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/allocator/allocator_settings.h"
#include "simulator/allocator/caching_allocator.h"

namespace tidemark::allocator {

class NaiveAllocator {
 public:
  NaiveAllocator(const AllocatorSettings& settings, std::int64_t capacity,
                 std::optional<double> fraction)
      : settings_(settings), capacity_(capacity) {
    if (fraction) allowed_ = std::floor(*fraction * static_cast<double>(capacity));
    next_address_ = settings.expandable_segments ? 0x100000000000 : 0x7f0000000000;
  }

  /// The address, or nothing if out of memory.
  std::optional<std::int64_t> allocate(std::int64_t request, std::uint32_t stream) {
    poll();
    const std::int64_t size = rounded(request);
    const bool small = size <= mib;
    if (!find_block(size, stream, small)) {
      collect_garbage();
      if (!grow(size, stream, small) &&
          !(release_oversize(size, stream, small) && grow(size, stream, small))) {
        empty_cache();
        ++counters_.retries;
        if (!grow(size, stream, small)) return ++counters_.ooms, std::nullopt;
      }
    }
    return hand_out(chosen_, size, request);
  }

  void free(std::int64_t address) {
    Block& block = blocks_.at(address);
    block.state = block.uses.empty() ? Free : Pending;
    for (const std::uint32_t stream : block.uses) events_.push_back({stream, address});
    if (block.state == Free) become_free(address);
  }

  void record_stream(std::int64_t address, std::uint32_t stream) {
    Block& block = blocks_.at(address);
    if (stream != block.stream) block.uses.insert(stream);
  }

  void complete_events(std::uint32_t stream) {
    for (Event& event : events_)
      if (event.stream == stream) event.complete = true;
  }

  void empty_cache() {
    ++counters_.full_syncs;
    for (Event& event : events_) event.complete = true;
    poll();
    for (const std::int64_t address : addresses_of(Free)) {
      if (settings_.expandable_segments) {
        unmap(address);
      } else if (is_whole(address)) {
        release(address);
      }
    }
  }

  AllocatorStats stats() {
    AllocatorStats s = counters_;
    std::set<std::int64_t> segments;
    for (const auto& [address, block] : blocks_) {
      if (block.state == Unmapped) continue;
      segments.insert(block.segment);
      (block.small ? s.reserved_small : s.reserved_large).count += block.size;
      if (block.state == Allocated) s.allocated.count += block.size;
      if (block.state == Free && !is_whole(address) && !settings_.expandable_segments) {
        ++s.inactive_split_blocks;
        s.inactive_split.count += block.size;
      }
      if (block.state == Free) continue;
      ++s.active_blocks;
      s.active.count += block.size;
      s.requested.count += block.request;
    }
    s.reserved = s.reserved_small + s.reserved_large;
    if (!settings_.expandable_segments) s.segments = static_cast<std::int64_t>(segments.size());
    s.allocated_peak = counters_.allocated_peak = std::max(counters_.allocated_peak, s.allocated);
    s.reserved_peak = counters_.reserved_peak;
    return s;
  }

 private:
  enum State { Allocated, Pending, Free, Unmapped };

  struct Block {
    std::int64_t size;
    std::int64_t segment;  // the lowest address of its segment
    std::uint32_t stream;
    bool small;
    State state;
    std::int64_t request = 0;
    std::int64_t searches_before = 0;  // when it became free
    std::set<std::uint32_t> uses{};    // until no event is left
  };

  struct Event {
    std::uint32_t stream;
    std::int64_t address;
    bool complete = false;
  };

  static constexpr std::int64_t mib = 1 << 20;
  static constexpr std::int64_t infinity = INT64_MAX;

  std::int64_t max_split() const {
    return settings_.max_split_size ? settings_.max_split_size->count : infinity;
  }

  // 1.2 of the rules: in doubles, which are exact here, instead of bits.
  std::int64_t rounded(std::int64_t n) const {
    if (n < 512) return 512;
    const double power = std::floor(std::log2(static_cast<double>(n)));
    const auto entry = static_cast<std::size_t>(std::clamp(power - 20, 0.0, 15.0));
    const std::int64_t divisions = settings_.roundup_divisions[entry];
    std::int64_t step = 512;
    if (divisions > 1 && n > 512 * divisions)
      step = static_cast<std::int64_t>(std::exp2(power)) / divisions;
    return n % step == 0 ? n : n - n % step + step;
  }

  std::int64_t segment_size_for(std::int64_t size) const {
    if (size <= mib) return 2 * mib;
    if (size < 10 * mib) return 20 * mib;
    return (size + 2 * mib - 1) / (2 * mib) * (2 * mib);
  }

  std::int64_t reserved() const {
    std::int64_t sum = 0;
    for (const auto& [address, block] : blocks_)
      if (block.state != Unmapped) sum += block.size;
    return sum;
  }

  std::vector<std::int64_t> addresses_of(State state) const {
    std::vector<std::int64_t> addresses;
    for (const auto& [address, block] : blocks_)
      if (block.state == state) addresses.push_back(address);
    return addresses;
  }

  // The block of the same segment that ends or begins where this one begins or ends.
  std::optional<std::int64_t> before(std::int64_t address) const {
    const auto block = blocks_.find(address);
    if (block == blocks_.begin()) return std::nullopt;
    const auto other = std::prev(block);
    return other->second.segment == block->second.segment ? std::optional(other->first)
                                                          : std::nullopt;
  }
  std::optional<std::int64_t> after(std::int64_t address) const {
    const auto block = blocks_.find(address);
    const auto other = std::next(block);
    if (other == blocks_.end() || other->second.segment != block->second.segment)
      return std::nullopt;
    return other->first;
  }
  bool is_whole(std::int64_t address) const { return !before(address) && !after(address); }

  // The free blocks of a pool by (size, address).
  std::vector<std::pair<std::int64_t, std::int64_t>> free_blocks(std::uint32_t stream,
                                                                 bool small) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    for (const auto& [address, block] : blocks_)
      if (block.state == Free && block.stream == stream && block.small == small)
        found.emplace_back(block.size, address);
    std::sort(found.begin(), found.end());
    return found;
  }

  // 1.5. Leaves the address in chosen_.
  bool find_block(std::int64_t size, std::uint32_t stream, bool small) {
    ++searches_[small];
    auto candidates = free_blocks(stream, small);
    std::erase_if(candidates, [&](const auto& block) { return block.first < size; });
    if (candidates.empty()) return false;
    const auto could_become = [&](const auto& block) {
      const auto next = after(block.second);
      const bool grows = next && blocks_.at(*next).state == Unmapped;
      return block.first + (grows ? blocks_.at(*next).size : 0);
    };
    std::size_t i = 0;
    while (settings_.expandable_segments && i + 1 < candidates.size() &&
           could_become(candidates[i + 1]) < could_become(candidates[i]))
      ++i;
    const std::int64_t found = candidates[i].first;
    if (size < max_split() && found >= max_split()) return false;
    if (size >= max_split() && found >= size + settings_.max_non_split_rounding.count) return false;
    chosen_ = candidates[i].second;
    return true;
  }

  // 1.8
  bool grow(std::int64_t size, std::uint32_t stream, bool small) {
    const std::int64_t asked = segment_size_for(size);
    if (allowed_ && static_cast<double>(reserved() + asked) > *allowed_) return false;
    if (settings_.expandable_segments) return map_room(size, stream, small);
    if (reserved() + asked > capacity_) return false;
    ++counters_.device_allocs;
    chosen_ = next_address_;
    next_address_ += (asked + 2 * mib - 1) / (2 * mib) * (2 * mib);
    blocks_[chosen_] = {asked, chosen_, stream, small, Free};
    note_reserved();
    return true;
  }

  void note_reserved() {
    counters_.reserved_peak = std::max(counters_.reserved_peak, Bytes{reserved()});
  }

  // 1.6
  std::int64_t hand_out(std::int64_t address, std::int64_t size, std::int64_t request) {
    Block& block = blocks_.at(address);
    const std::int64_t rest = block.size - size;
    const bool split = block.small || settings_.expandable_segments
                           ? rest >= 512
                           : size < max_split() && rest > mib;
    if (split) cut(address, size);
    block.state = Allocated;
    block.request = request;
    return address;
  }

  void cut(std::int64_t address, std::int64_t size) {
    Block& block = blocks_.at(address);
    Block rest = block;
    rest.size -= size;
    rest.searches_before = searches_[rest.small];
    block.size = size;
    blocks_[address + size] = rest;
  }

  // 1.7
  void poll() {
    std::set<std::uint32_t> stopped;
    std::vector<Event> waiting;
    std::vector<std::int64_t> touched;
    for (const Event& event : events_) {
      if (!event.complete) stopped.insert(event.stream);
      if (stopped.contains(event.stream)) {
        waiting.push_back(event);
      } else {
        touched.push_back(event.address);
      }
    }
    events_ = waiting;
    for (const std::int64_t address : touched) {
      const bool still_waits = std::any_of(events_.begin(), events_.end(), [&](const Event& event) {
        return event.address == address;
      });
      const auto block = blocks_.find(address);  // gone if an earlier one took it in
      if (still_waits || block == blocks_.end() || block->second.state != Pending) continue;
      block->second.state = Free;
      become_free(address);
    }
  }

  void become_free(std::int64_t address) {
    Block& block = blocks_.at(address);
    block.uses.clear();
    block.searches_before = searches_[block.small];
    merge(address);
  }

  // With neighbours in the same state.
  void merge(std::int64_t address) {
    const State state = blocks_.at(address).state;
    if (const auto next = after(address); next && blocks_.at(*next).state == state) {
      blocks_.at(address).size += blocks_.at(*next).size;
      blocks_.erase(*next);
    }
    if (const auto previous = before(address); previous && blocks_.at(*previous).state == state) {
      blocks_.at(*previous).size += blocks_.at(address).size;
      blocks_.at(*previous).searches_before = blocks_.at(address).searches_before;
      blocks_.erase(address);
    }
  }

  void release(std::int64_t address) {
    blocks_.erase(address);
    ++counters_.device_frees;
  }

  // 1.10
  bool release_oversize(std::int64_t size, std::uint32_t stream, bool small) {
    if (!settings_.max_split_size || settings_.expandable_segments) return false;
    const std::int64_t needed = std::max(size, max_split());
    auto candidates = free_blocks(stream, small);
    for (const auto& [found, address] : candidates)
      if (found >= needed) return release(address), true;
    std::int64_t sum = 0;
    for (; !candidates.empty() && candidates.back().first >= max_split(); candidates.pop_back()) {
      if (sum >= needed) break;
      sum += candidates.back().first;
      release(candidates.back().second);
    }
    return sum >= needed;
  }

  // 1.12
  void collect_garbage() {
    if (!allowed_ || settings_.garbage_collection_threshold <= 0) return;
    const double threshold = std::floor(settings_.garbage_collection_threshold * *allowed_);
    while (static_cast<double>(reserved()) > threshold) {
      std::vector<std::int64_t> garbage;
      std::int64_t ages = 0;
      for (const std::int64_t address : addresses_of(Free)) {
        if (blocks_.at(address).small || !is_whole(address)) continue;
        garbage.push_back(address);
        ages += age(address);
      }
      if (garbage.empty()) return;
      const double mean = static_cast<double>(ages) / static_cast<double>(garbage.size());
      for (const std::int64_t address : garbage)
        if (static_cast<double>(age(address)) >= mean) release(address);
    }
  }

  std::int64_t age(std::int64_t address) const {
    return searches_[0] - blocks_.at(address).searches_before;
  }

  // 1.9: from here on, expandable segments.
  static std::int64_t page(bool small) { return (small ? 2 : 20) * mib; }

  bool map_room(std::int64_t size, std::uint32_t stream, bool small) {
    std::int64_t first = room_for(size, stream, small);
    if (blocks_.at(first).state == Unmapped && !map(first, size)) return false;
    while (blocks_.at(first).size < size)
      if (!map(*after(first), size - blocks_.at(first).size)) return false;
    chosen_ = first;
    return true;
  }

  // The first block of a run with room, in an old segment or a new one.
  std::int64_t room_for(std::int64_t size, std::uint32_t stream, bool small) {
    for (const std::int64_t unmapped : addresses_of(Unmapped)) {
      const Block& block = blocks_.at(unmapped);
      if (block.stream != stream || block.small != small) continue;
      const auto previous = before(unmapped);
      const std::int64_t first =
          previous && blocks_.at(*previous).state == Free ? *previous : unmapped;
      std::int64_t room = 0;
      for (std::optional<std::int64_t> i = first; i; i = after(*i)) {
        if (blocks_.at(*i).state != Free && blocks_.at(*i).state != Unmapped) break;
        room += blocks_.at(*i).size;
      }
      if (room >= size) return first;
    }
    const std::int64_t range =
        (capacity_ + capacity_ / 8 + page(small) - 1) / page(small) * page(small);
    const std::int64_t address = next_address_;
    next_address_ += range + (std::int64_t{1} << 40);
    blocks_[address] = {range, address, stream, small, Unmapped};
    return address;
  }

  bool map(std::int64_t address, std::int64_t size) {
    const Block block = blocks_.at(address);
    const std::int64_t bytes = (std::min(size, block.size) + page(block.small) - 1) /
                               page(block.small) * page(block.small);
    if (reserved() + bytes > capacity_) return false;
    ++counters_.device_allocs;
    if (bytes < block.size) cut(address, bytes);
    blocks_.at(address).state = Free;
    merge(address);
    note_reserved();
    return true;
  }

  void unmap(std::int64_t address) {
    const Block block = blocks_.at(address);
    std::int64_t begin = block.segment;
    while (begin < address) begin += page(block.small);
    std::int64_t end = begin;
    while (end + page(block.small) <= address + block.size) end += page(block.small);
    if (begin == end) return;
    ++counters_.device_frees;
    if (begin > address) cut(address, begin - address);
    if (end < address + block.size) cut(begin, end - begin);
    blocks_.at(begin).state = Unmapped;
    merge(begin);
    for (const std::int64_t unmapped : addresses_of(Unmapped))
      if (blocks_.at(unmapped).segment == block.segment && is_whole(unmapped))
        blocks_.erase(unmapped);
  }

  AllocatorSettings settings_;
  std::int64_t capacity_;
  std::optional<double> allowed_;
  std::int64_t next_address_ = 0;
  std::int64_t chosen_ = 0;        // of the last successful find_block() or grow()
  std::int64_t searches_[2] = {};  // in large and in small pools
  std::map<std::int64_t, Block> blocks_;
  std::vector<Event> events_;
  AllocatorStats counters_;  // of which stats() computes all that can be summed up
};

}  // namespace tidemark::allocator
