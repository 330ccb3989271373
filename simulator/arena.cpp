// Packs a schedule into one arena, step by step in issue order.
//   blocks              [ used ][ gap of 0 and 1 ][ gap of 0 ][ used ]
//   hole of taker 0             [           hole             ]
//   hole of taker 1             [      hole      ]
// A gap knows after how many of its waits each taker, a stream with buffers of its own, may take
// it; gaps that touch and agree in this are one. A hole is as much as one taker may take now, and
// its first and its last gap know each other. Holes are indexed by size, so a step takes the same
// short time however many gaps there are. A search through all gaps finds the same places:
// arena_property_test.cpp.
#include "simulator/arena.h"

#include <algorithm>
#include <utility>

#include "simulator/allocator/block_table.h"
#include "simulator/allocator/free_blocks.h"
#include "simulator/reuse.h"

namespace tidemark {
namespace {

std::int64_t padded(Bytes bytes) { return round_up(bytes.count, arena_alignment); }

// `few` is how many takers there are, if the compiler is to know it; 0: any number. Streams follow
// each other only where there are several: `has_order`.
template <std::size_t few, bool has_order>
class Packing {
 public:
  Packing(const Schedule& schedule, const Reuse& reuse)
      : schedule_(schedule),
        reuse_(reuse),
        any_takers_(reuse.takers.size()),
        taker_of_(schedule.streams, takers()),
        gaps_(2 * takers()),
        holes_(takers()),
        right_(takers()),
        waits_(takers()),
        awaited_(takers()) {
    for (std::size_t t = 0; t < takers(); ++t) taker_of_[index(reuse_.takers[t])] = t;
    arena_.offsets.assign(schedule.buffers.size(), 0);
    blocks_.assign(schedule.buffers.size(), allocator::no_block);
    for (std::size_t b = 0; b < schedule.buffers.size(); ++b)
      if (schedule.buffers[b].persistent) place(static_cast<BufferId>(b));
  }

  Arena run() && {
    for (const Step& step : schedule_.steps)
      std::visit(Overload{[&](const Allocate& s) { place(s.buffer); },
                          [&](const Free& s) { release(s.buffer); },
                          [&](const Wait& s) {
                            if (const std::size_t t = taker_of_[index(s.stream)]; t < takers())
                              wait(t);
                          },
                          [&](const Synchronize&) {
                            for (std::size_t t = 0; t < takers(); ++t) wait(t);
                          },
                          [](const auto&) {}},
                 step);
    arena_.size = {top_};
    return std::move(arena_);
  }

 private:
  struct Hole {
    allocator::BlockHandle first, last;  // of its gaps
  };
  struct Awaiting {
    allocator::BlockHandle gap;
    std::uint32_t next;
  };
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Rest {
    std::int64_t size;
    allocator::BlockHandle last;  // gap of the hole
  };

  std::size_t takers() const { return few > 0 ? few : any_takers_; }

  void place(BufferId id) {
    const std::int64_t bytes = padded(schedule_[id].size);
    if (bytes == 0) return;
    const allocator::BlockHandle block = take(taker_of_[index(schedule_[id].stream)], bytes);
    blocks_[index(id)] = block;
    arena_.offsets[index(id)] = table_[block].address;
  }

  // Best fit. Only if nothing fits, the hole at the top is taken and grown.
  allocator::BlockHandle take(std::size_t taker, std::int64_t bytes) {
    const allocator::FreeBlocks::Position fit = holes_[taker].best_fit(bytes);
    if (fit != allocator::FreeBlocks::none) {
      const Hole hole = hole_that_begins_with(taker, holes_[taker][fit].block);
      holes_[taker].erase_at(fit);
      return occupy(taker, hole, bytes);
    }
    if (is_ready(taker, last_)) {
      const Hole hole = hole_that_ends_with(taker, last_);
      holes_[taker].erase(entry_of(hole));
      return occupy(taker, hole, bytes);
    }
    const allocator::BlockHandle block = table_.add({.address = top_,
                                                     .size = bytes,
                                                     .previous = last_,
                                                     .state = allocator::BlockState::Allocated});
    if (last_ != allocator::no_block) table_[last_].next = block;
    last_ = block;
    top_ += bytes;
    return block;
  }

  // The hole's first gaps become one used block; what they lack is added at the top. Of the holes
  // that had a part in them, the rest to the left and to the right remains.
  allocator::BlockHandle occupy(std::size_t taker, const Hole& hole, std::int64_t bytes) {
    const allocator::BlockHandle first = hole.first;
    allocator::BlockHandle last = first;
    std::int64_t size = table_[first].size;
    for (; size < bytes && last != last_; size += table_[last].size) last = table_[last].next;
    for (std::size_t t = 0; t < takers(); ++t) {
      right_[t] = t == taker ? Rest{size_of(hole), hole.last} : withdraw(t, first, last);
      right_[t].size -= bytes;
    }
    if (size > bytes) {
      cut_gap(last, table_[last].size - (size - bytes));
    } else {
      table_[last].size += bytes - size;
      top_ += bytes - size;
    }
    while (table_[first].size < bytes) swallow_next(first);
    table_[first].state = allocator::BlockState::Allocated;
    const allocator::BlockHandle next = table_[first].next;
    for (std::size_t t = 0; t < takers(); ++t)
      if (const Rest& rest = right_[t]; rest.size > 0)
        add_hole(t, {next, rest.last == last ? next : rest.last}, rest.size);
    return first;
  }

  // Takes the taker's holes with a part in [first, last] out of the index, but for what is left of
  // `first`. Returns where the last of them ends, counted from `first`.
  Rest withdraw(std::size_t taker, allocator::BlockHandle first, allocator::BlockHandle last) {
    const std::int64_t begin = table_[first].address;
    std::int64_t end = begin;
    allocator::BlockHandle end_gap = allocator::no_block;
    for (allocator::BlockHandle block = first;; block = table_[block].next) {
      if (table_[block].address >= end && is_ready(taker, block)) {
        const Hole hole =
            block == first ? hole_around(taker, block) : hole_that_begins_with(taker, block);
        const std::int64_t address = table_[hole.first].address, size = size_of(hole);
        holes_[taker].erase(size, address);
        end = address + size, end_gap = hole.last;
        if (address < begin) add_hole(taker, {hole.first, table_[first].previous}, begin - address);
      }
      if (block == last) return {end - begin, end_gap};
    }
  }

  void release(BufferId id) {
    const allocator::BlockHandle block = blocks_[index(id)];
    if (block == allocator::no_block) return;
    table_[block].state = allocator::BlockState::Free;
    if (has_order) {
      make_room_for(block);
      note_ready_after(block, reuse_.ready_after[index(id)]);
      await(block);
    }
    for (std::size_t t = 0; t < takers(); ++t)
      if (is_ready(t, block)) offer(t, block);
    unite_if_equal(block);
  }

  // Some gaps become a hole of the taker.
  void wait(std::size_t taker) {
    const std::uint32_t count = ++waits_[taker];
    if (count >= awaited_[taker].size()) return;
    for (std::uint32_t place = awaited_[taker][count]; place != none;
         place = awaiting_[place].next) {
      const allocator::BlockHandle block = awaiting_[place].gap;
      std::uint32_t& awaited = ready_after(block)[taker];
      if (!table_.is(block, allocator::BlockState::Free) || awaited != count)
        continue;  // taken meanwhile
      awaited = 0;
      offer(taker, block);
      unite_if_equal(block);
    }
  }

  void make_room_for(allocator::BlockHandle gap) {
    const auto g = static_cast<std::size_t>(gap);
    if (g >= gaps_.rows()) gaps_.resize(g + 1);
  }

  std::span<std::uint32_t> ready_after(allocator::BlockHandle gap) {
    return gaps_[static_cast<std::size_t>(gap)];
  }
  std::span<const std::uint32_t> ready_after(allocator::BlockHandle gap) const {
    return gaps_[static_cast<std::size_t>(gap)];
  }
  void note_ready_after(allocator::BlockHandle gap, std::span<const std::uint32_t> waits) {
    const std::span<std::uint32_t> noted = ready_after(gap);
    for (std::size_t t = 0; t < takers(); ++t) noted[t] = waits[t];
  }

  void await(allocator::BlockHandle gap) {
    for (std::size_t t = 0; t < takers(); ++t) {
      const std::uint32_t waits = ready_after(gap)[t];
      if (waits == 0 || waits == never_follows) continue;
      if (waits >= awaited_[t].size()) awaited_[t].resize(waits + 1, none);
      const auto place = static_cast<std::uint32_t>(awaiting_.size());
      awaiting_.push_back({gap, std::exchange(awaited_[t][waits], place)});
    }
  }

  void cut_gap(allocator::BlockHandle gap, std::int64_t size) {
    const allocator::BlockHandle rest = table_.cut(gap, size);
    if (last_ == gap) last_ = rest;
    if (!has_order) return;
    make_room_for(rest);
    note_ready_after(rest, ready_after(gap));
    await(rest);
  }

  // --- blocks ------------------------------------------------------------------------------------

  bool is_ready(std::size_t taker, allocator::BlockHandle block) const {
    return table_.is(block, allocator::BlockState::Free) &&
           (!has_order || ready_after(block)[taker] == 0);
  }

  bool are_equal_gaps(allocator::BlockHandle a, allocator::BlockHandle b) const {
    if (!table_.is(a, allocator::BlockState::Free) || !table_.is(b, allocator::BlockState::Free))
      return false;
    for (std::size_t t = 0; has_order && t < takers(); ++t)
      if (ready_after(a)[t] != ready_after(b)[t]) return false;
    return true;
  }

  void unite_if_equal(allocator::BlockHandle block) {
    if (are_equal_gaps(block, table_[block].next)) unite_with_next(block);
    if (are_equal_gaps(table_[block].previous, block)) unite_with_next(table_[block].previous);
  }

  // The first of them stays, so that holes that begin with it still do; those that end with the
  // second end with the first.
  void unite_with_next(allocator::BlockHandle block) {
    const allocator::BlockHandle gone = table_[block].next;
    for (std::size_t t = 0; has_order && t < takers(); ++t)
      if (is_ready(t, gone) && !is_ready(t, table_[gone].next))
        link(t, {hole_that_ends_with(t, gone).first, block});
    swallow_next(block);
  }

  void swallow_next(allocator::BlockHandle block) {
    if (table_[block].next == last_) last_ = block;
    table_.unite(block, table_[block].next);
  }

  // --- holes -------------------------------------------------------------------------------------

  // The gap, which just became a hole of the taker, joins those to its left and right.
  void offer(std::size_t taker, allocator::BlockHandle gap) {
    Hole hole{gap, gap};
    if (const allocator::BlockHandle next = table_[gap].next; is_ready(taker, next)) {
      hole.last = hole_that_begins_with(taker, next).last;
      holes_[taker].erase(entry_of({next, hole.last}));
    }
    if (const allocator::BlockHandle previous = table_[gap].previous; is_ready(taker, previous)) {
      hole.first = hole_that_ends_with(taker, previous).first;
      holes_[taker].erase(entry_of({hole.first, previous}));
    }
    add_hole(taker, hole, size_of(hole));
  }

  void add_hole(std::size_t taker, const Hole& hole, std::int64_t size) {
    holes_[taker].insert(size, table_[hole.first].address, hole.first);
    if (has_order) link(taker, hole);
  }

  std::int64_t size_of(const Hole& hole) const {
    return table_[hole.last].address + table_[hole.last].size - table_[hole.first].address;
  }

  allocator::FreeBlock entry_of(const Hole& hole) const {
    return {size_of(hole), table_[hole.first].address, hole.first};
  }

  // With one stream a hole is a gap.
  std::uint32_t& other_end(std::size_t taker, allocator::BlockHandle gap) {
    return gaps_[static_cast<std::size_t>(gap)][takers() + taker];
  }

  void link(std::size_t taker, const Hole& hole) {
    other_end(taker, hole.first) = static_cast<std::uint32_t>(hole.last);
    other_end(taker, hole.last) = static_cast<std::uint32_t>(hole.first);
  }

  Hole hole_that_begins_with(std::size_t taker, allocator::BlockHandle gap) {
    return {gap, has_order ? allocator::BlockHandle{other_end(taker, gap)} : gap};
  }

  Hole hole_that_ends_with(std::size_t taker, allocator::BlockHandle gap) {
    return {has_order ? allocator::BlockHandle{other_end(taker, gap)} : gap, gap};
  }

  Hole hole_around(std::size_t taker, allocator::BlockHandle gap) {
    while (is_ready(taker, table_[gap].next)) gap = table_[gap].next;
    return hole_that_ends_with(taker, gap);
  }

  const Schedule& schedule_;
  const Reuse& reuse_;
  const std::size_t any_takers_;
  std::vector<std::size_t> taker_of_;  // by stream; takers(): takes nothing
  Arena arena_;
  std::vector<allocator::BlockHandle> blocks_;  // by buffer
  allocator::BlockTable table_;
  StreamCounts gaps_;  // by block, of gaps: by taker when it is ready; then the hole's other end
  allocator::BlockHandle last_ = allocator::no_block;  // the one that ends at the top
  std::int64_t top_ = 0;
  std::vector<allocator::FreeBlocks> holes_;  // by taker
  std::vector<Rest> right_;                   // by taker: what occupy() leaves of its hole
  std::vector<std::uint32_t> waits_;          // by taker, so far
  // Lists of the gaps that a taker's wait makes holes, and of some that are none any more.
  std::vector<std::vector<std::uint32_t>> awaited_;  // by taker and wait: the first place
  std::vector<Awaiting> awaiting_;
};

}  // namespace

Arena plan_arena(const Schedule& schedule) {
  const Reuse reuse = derive_reuse(schedule);
  if (schedule.streams == 1) return Packing<1, false>(schedule, reuse).run();
  if (reuse.takers.size() == 1) return Packing<1, true>(schedule, reuse).run();
  if (reuse.takers.size() == 2) return Packing<2, true>(schedule, reuse).run();
  return Packing<0, true>(schedule, reuse).run();
}

}  // namespace tidemark
