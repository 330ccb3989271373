// Segments before the first event: those at the end, with the events undone from the last to the
// first. Blocks before: those at the end that no event names, and those that are freed unmade.
#include "importers/pool_replay.h"

#include <algorithm>
#include <unordered_map>

namespace tidemark::importers {

using enum SnapshotAction;

PoolReplay::PoolReplay(const MemorySnapshot& snapshot, std::size_t device)
    : snapshot_(snapshot), device_(static_cast<std::int64_t>(device)) {
  for (const SnapshotSegment& segment : snapshot.segments)
    if (segment.device == device_) add(segment.address, segment.size, segment.is_expandable);
  static const std::vector<SnapshotEvent> none;
  const auto& events = device < snapshot.events.size() ? snapshot.events[device] : none;
  for (std::size_t i = events.size(); i-- > 0;) {
    const SnapshotEvent& event = events[i];
    if (event.action == SegmentAlloc || event.action == SegmentMap)
      remove(event.address, event.size);
    if (event.action == SegmentFree || event.action == SegmentUnmap)
      add(event.address, event.size, event.action == SegmentUnmap);
  }
  find_blocks_before(events);
}

void PoolReplay::find_blocks_before(const std::vector<SnapshotEvent>& events) {
  std::unordered_map<std::int64_t, SnapshotAction> first;
  for (const SnapshotEvent& event : events) {
    if (event.action > FreeCompleted) continue;
    const bool is_first = first.try_emplace(event.address, event.action).second;
    if (is_first && event.action != Alloc)
      blocks_.try_emplace(event.address, Block{.size = rounded_size(snapshot_.settings,
                                                                    std::max(event.size, Bytes{1})),
                                               .requested = event.size,
                                               .stack = no_stack,
                                               .stream = event.stream,
                                               .is_pending = event.action == FreeCompleted});
  }
  for (const SnapshotSegment& segment : snapshot_.segments) {
    if (segment.device != device_) continue;
    for (const SnapshotBlock& block : segment.blocks)
      if (block.state != BlockState::Inactive && !first.contains(block.address))
        blocks_.try_emplace(block.address,
                            Block{.size = block.size,
                                  .requested = block.requested,
                                  .stack = block.stack,
                                  .stream = segment.stream,
                                  .is_pending = block.state == BlockState::PendingFree});
  }
}

void PoolReplay::add(std::int64_t begin, Bytes size, bool is_expandable) {
  if (size.count == 0) return;
  remove(begin, size);  // a contradiction otherwise: nothing is counted twice
  std::int64_t end = begin + size.count;
  reserved_ += size;
  // Neighbours that are mapped one by one are one segment, in which blocks grow together.
  const auto after = segments_.find(end);
  if (is_expandable && after != segments_.end() && after->second.is_expandable) {
    end = after->second.end;
    segments_.erase(after);
  }
  const auto next = segments_.lower_bound(begin);
  if (is_expandable && next != segments_.begin()) {
    Segment& before = std::prev(next)->second;
    if (before.is_expandable && before.end == begin) {
      before.end = end;
      return;
    }
  }
  segments_.insert_or_assign(begin, Segment{end, is_expandable});
}

void PoolReplay::remove(std::int64_t begin, Bytes size) {
  const std::int64_t end = begin + size.count;
  auto at = segments_.lower_bound(begin);
  if (at != segments_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != segments_.end() && at->first < end) {
    const std::int64_t from = at->first;
    const Segment whole = at->second;
    at = segments_.erase(at);
    reserved_ -= Bytes{std::min(end, whole.end) - std::max(begin, from)};
    if (from < begin) segments_.insert_or_assign(from, Segment{begin, whole.is_expandable});
    if (whole.end > end) segments_.insert_or_assign(end, Segment{whole.end, whole.is_expandable});
  }
}

// The rules of split() in PyTorch 2.6's allocator. A block is cut from the beginning of a free one,
// and free neighbours are one; so the free one ended where the next block in use begins.
Bytes PoolReplay::block_size(std::int64_t address, Bytes requested) const {
  const Bytes rounded = rounded_size(snapshot_.settings, std::max(requested, Bytes{1}));
  auto segment = segments_.upper_bound(address);
  if (segment == segments_.begin()) return rounded;
  --segment;
  if (segment->second.end <= address) return rounded;
  const auto next = blocks_.upper_bound(address);
  const std::int64_t end =
      next == blocks_.end() ? segment->second.end : std::min(segment->second.end, next->first);
  const Bytes all{end - address};
  if (all < rounded) return rounded;  // a contradiction: the request says more
  const Bytes rest = all - rounded;
  const bool is_small = rounded <= allocator::largest_small_block;
  if (is_small || segment->second.is_expandable)
    return rest >= allocator::smallest_block ? rounded : all;
  const auto& most = snapshot_.settings.max_split_size;
  return (!most || rounded < *most) && rest > allocator::largest_small_block ? rounded : all;
}

PoolReplay::Change PoolReplay::apply(const SnapshotEvent& event) {
  using Kind = Change::Kind;
  switch (event.action) {
    case Alloc: {
      if (blocks_.contains(event.address)) break;
      const Block block = {.size = block_size(event.address, event.size),
                           .requested = event.size,
                           .stack = event.stack,
                           .stream = event.stream};
      blocks_.emplace(event.address, block);
      return {Kind::Appears, block};
    }
    case FreeRequested: {
      const auto found = blocks_.find(event.address);
      if (found == blocks_.end() || found->second.is_pending) break;
      found->second.is_pending = true;
      return {Kind::Pending, found->second};
    }
    case FreeCompleted: {
      const auto found = blocks_.find(event.address);
      if (found == blocks_.end()) break;
      const Block block = found->second;
      blocks_.erase(found);
      return {Kind::Disappears, block};
    }
    case SegmentAlloc:
    case SegmentMap:
      add(event.address, event.size, event.action == SegmentMap);
      return {};
    case SegmentFree:
    case SegmentUnmap:
      remove(event.address, event.size);
      return {};
    case Snapshot:
    case Oom:
    case Unknown:
      return {};
  }
  ++contradictions_;
  return {};
}

PoolState PoolReplay::state() const {
  PoolState state;
  state.reserved = reserved_;
  state.segments = segments_.size(), state.blocks = blocks_.size();
  for (const auto& [address, block] : blocks_) state.active += block.size;
  for (const auto& [begin, segment] : segments_) {
    std::int64_t free_from = begin;
    const auto gap_until = [&](std::int64_t end) {
      if (end <= free_from) return;
      ++state.gaps;
      state.largest_gap = std::max(state.largest_gap, Bytes{end - free_from});
    };
    auto block = blocks_.lower_bound(begin);
    const bool is_unused = block == blocks_.end() || block->first >= segment.end;
    for (; block != blocks_.end() && block->first < segment.end; ++block) {
      gap_until(block->first);
      free_from = std::max(free_from, block->first + block->second.size.count);
    }
    gap_until(segment.end);
    if (is_unused) state.unused += Bytes{segment.end - begin};
  }
  return state;
}

}  // namespace tidemark::importers
