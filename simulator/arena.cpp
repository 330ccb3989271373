#include "simulator/arena.h"

#include <algorithm>
#include <optional>

#include "simulator/block_table.h"
#include "simulator/free_blocks.h"
#include "simulator/stream_order.h"

namespace tidemark {
namespace {

std::int64_t padded(Bytes bytes) { return round_up(bytes.count, arena_alignment); }

// One stream: all that was freed is ready. Blocks know their neighbours, free ones are indexed by
// size, so each step takes the same short time however many gaps there are.
class OneStream {
 public:
  explicit OneStream(const Schedule& schedule) : schedule_(schedule) {
    arena_.offsets.assign(schedule.buffers.size(), 0);
    blocks_.assign(schedule.buffers.size(), no_block);
    for (std::size_t b = 0; b < schedule.buffers.size(); ++b)
      if (schedule.buffers[b].persistent) place(static_cast<BufferId>(b));
  }

  Arena run() && {
    for (const Step& step : schedule_.steps) {
      if (const auto* a = std::get_if<Allocate>(&step)) place(a->buffer);
      if (const auto* f = std::get_if<Free>(&step)) release(f->buffer);
    }
    arena_.size = {top_};
    return std::move(arena_);
  }

 private:
  void place(BufferId id) {
    const std::int64_t bytes = padded(schedule_[id].size);
    if (bytes == 0) return;
    const BlockHandle block = take(bytes);
    table_[block].state = BlockState::Allocated;
    blocks_[index(id)] = block;
    arena_.offsets[index(id)] = table_[block].address;
  }

  BlockHandle take(std::int64_t bytes) {
    const FreeBlocks::Position fit = free_.best_fit(bytes);
    if (fit == FreeBlocks::none) return grow(bytes);
    const BlockHandle block = free_[fit].block;
    free_.erase_at(fit);
    if (table_[block].size > bytes) {
      const BlockHandle rest = table_.cut(block, bytes);
      if (last_ == block) last_ = rest;
      offer(rest);
    }
    return block;
  }

  // Free space at the top is grown into.
  BlockHandle grow(std::int64_t bytes) {
    if (last_ != no_block && table_[last_].state == BlockState::Free) {
      free_.erase(entry(last_));
      top_ += bytes - table_[last_].size;
      table_[last_].size = bytes;
      return last_;
    }
    const BlockHandle block =
        table_.add({.address = top_, .size = bytes, .previous = last_, .state = BlockState::Free});
    if (last_ != no_block) table_[last_].next = block;
    last_ = block;
    top_ += bytes;
    return block;
  }

  void release(BufferId id) {
    BlockHandle block = blocks_[index(id)];
    if (block == no_block) return;
    table_[block].state = BlockState::Free;
    const BlockHandle next = table_[block].next, previous = table_[block].previous;
    if (table_.is(next, BlockState::Free)) {
      free_.erase(entry(next));
      table_.unite(block, next);
      if (last_ == next) last_ = block;
    }
    if (table_.is(previous, BlockState::Free)) {
      free_.erase(entry(previous));
      table_.unite(previous, block);
      if (last_ == block) last_ = previous;
      block = previous;
    }
    offer(block);
  }

  void offer(BlockHandle block) {
    table_[block].state = BlockState::Free;
    free_.insert(entry(block));
  }

  FreeBlock entry(BlockHandle block) const {
    return {table_[block].size, table_[block].address, block};
  }

  const Schedule& schedule_;
  Arena arena_;
  BlockTable table_;
  FreeBlocks free_;
  std::vector<BlockHandle> blocks_;  // by buffer
  BlockHandle last_ = no_block;      // the one that ends at the top
  std::int64_t top_ = 0;
};

struct Gap {
  std::int64_t begin, end;
  Clock after;  // its last users, by stream
  std::int64_t size() const { return end - begin; }
};

class SeveralStreams {
 public:
  explicit SeveralStreams(const Schedule& schedule)
      : schedule_(schedule), streams_(schedule.streams) {
    arena_.offsets.assign(schedule.buffers.size(), 0);
    used_.resize(schedule.buffers.size());
    recorded_.resize(schedule.events);
    for (std::size_t b = 0; b < schedule.buffers.size(); ++b)
      if (schedule.buffers[b].persistent) place(static_cast<BufferId>(b));
  }

  Arena run() && {
    for (const Step& step : schedule_.steps)
      std::visit(
          Overload{[&](const Allocate& s) { place(s.buffer); }, [&](const Free& s) { release(s); },
                   [&](const Run& s) { note_run(s); }, [&](const CopyOut& s) { note_copy(s); },
                   [&](const CopyIn& s) { note_copy(s); },
                   [&](const Record& s) { recorded_[index(s.event)] = known(s.stream); },
                   [&](const Wait& s) { learn(known(s.stream), recorded_[index(s.event)]); },
                   [&](const Synchronize& s) {
                     for (std::size_t t = 0; t < streams_; ++t)
                       learn(known_[t], recorded_[index(s.event)]);
                   }},
          step);
    arena_.size = {top_};
    return std::move(arena_);
  }

 private:
  Clock& known(StreamId stream) { return known_[index(stream)]; }

  void learn(Clock& clock, const Clock& other) const {
    for (std::size_t t = 0; t < streams_; ++t) clock[t] = std::max(clock[t], other[t]);
  }

  bool follows(const Clock& clock, const Clock& other) const {
    for (std::size_t t = 0; t < streams_; ++t)
      if (clock[t] < other[t]) return false;
    return true;
  }

  void note_run(const Run& run) {
    const std::uint32_t now = ++known(run.stream)[index(run.stream)];
    for (const BufferId b : schedule_.reads(run)) used_[index(b)][index(run.stream)] = now;
    for (const BufferId b : schedule_.writes(run)) used_[index(b)][index(run.stream)] = now;
  }

  template <typename Copy>
  void note_copy(const Copy& copy) {
    used_[index(copy.buffer)][index(copy.stream)] = ++known(copy.stream)[index(copy.stream)];
  }

  // Consecutive gaps [first, last) without anything between them.
  struct Room {
    std::size_t first = 0, last = 0;
    std::int64_t begin = 0, end = 0;
  };

  void place(BufferId id) {
    const Buffer& buffer = schedule_[id];
    const std::int64_t bytes = padded(buffer.size);
    if (bytes == 0) return;
    const std::optional<Room> room = find_room(bytes, known(buffer.stream));
    arena_.offsets[index(id)] = room ? room->begin : top_;
    if (room) take(*room, arena_.offsets[index(id)] + bytes);
    top_ = std::max(top_, arena_.offsets[index(id)] + bytes);
  }

  // Best fit; room that reaches the top can be grown and counts only if nothing else fits.
  std::optional<Room> find_room(std::int64_t bytes, const Clock& now) const {
    std::optional<Room> best;
    Room room;
    const auto consider = [&] {
      const std::int64_t size = room.end - room.begin;
      if (size >= bytes && (!best || size < best->end - best->begin)) best = room;
      return best && best->end - best->begin == bytes;
    };
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      const Gap& gap = gaps_[g];
      const bool touches_next = g + 1 < gaps_.size() && gaps_[g + 1].begin == gap.end;
      if (gap.size() < bytes && gap.end != top_ && room.end != gap.begin && !touches_next) continue;
      if (!follows(now, gap.after)) continue;
      if (room.last == g && room.end == gap.begin) {
        room.end = gap.end, room.last = g + 1;
        continue;
      }
      if (consider()) return best;
      room = {g, g + 1, gap.begin, gap.end};
    }
    consider();
    const bool reaches_top = room.last == gaps_.size() && room.end == top_;
    if (!best && reaches_top && room.last > 0) best = room;
    return best;
  }

  void take(const Room& room, std::int64_t end) {
    std::size_t kept = room.first;
    while (kept < room.last && gaps_[kept].end <= end) ++kept;
    if (kept < room.last) gaps_[kept].begin = std::max(gaps_[kept].begin, end);
    gaps_.erase(gaps_.begin() + static_cast<std::ptrdiff_t>(room.first),
                gaps_.begin() + static_cast<std::ptrdiff_t>(kept));
  }

  void release(const Free& step) {
    const std::int64_t begin = arena_.offsets[index(step.buffer)];
    const std::int64_t bytes = padded(schedule_[step.buffer].size);
    if (bytes == 0) return;
    Gap gap{begin, begin + bytes, {}};
    gap.after = used_[index(step.buffer)];
    auto next = std::ranges::lower_bound(gaps_, begin, {}, &Gap::begin);
    if (next != gaps_.end() && joins(gap, *next)) {
      gap.end = next->end;
      next = gaps_.erase(next);
    }
    if (next != gaps_.begin() && joins(*std::prev(next), gap)) {
      std::prev(next)->end = gap.end;
      return;
    }
    gaps_.insert(next, gap);
  }

  static bool joins(const Gap& a, const Gap& b) { return a.end == b.begin && a.after == b.after; }

  const Schedule& schedule_;
  std::size_t streams_;
  Arena arena_;
  std::vector<Gap> gaps_;  // by address
  std::int64_t top_ = 0;
  std::vector<Clock> used_;
  std::array<Clock, max_streams> known_{};
  std::vector<Clock> recorded_;
};

}  // namespace

Arena plan_arena(const Schedule& schedule) {
  if (schedule.streams == 1) return OneStream(schedule).run();
  return SeveralStreams(schedule).run();
}

}  // namespace tidemark
