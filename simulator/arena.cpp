// Packs a schedule into one arena, step by step in issue order.
//   blocks              [ used ][ gap of 0 and 1 ][ gap of 0 ][ used ]
//   hole of taker 0             [           hole             ]
//   hole of taker 1             [      hole      ]
// A gap knows after how many of its waits each taker, a stream with buffers of its own, may take
// it; gaps that touch and agree in this are one. A hole is as much as one taker may take now. Holes
// are indexed by size, so a step takes the same short time however many gaps there are. A search
// through all gaps finds the same places: arena_property_test.cpp.
#include "simulator/arena.h"

#include <algorithm>
#include <utility>

#include "simulator/allocator/block_table.h"
#include "simulator/allocator/free_blocks.h"
#include "simulator/reuse.h"

namespace tidemark {
namespace {

std::int64_t padded(Bytes bytes) { return round_up(bytes.count, arena_alignment); }

class Packing {
 public:
  explicit Packing(const Schedule& schedule)
      : schedule_(schedule),
        reuse_(derive_reuse(schedule)),
        has_order_(schedule.streams > 1),
        takers_(reuse_.takers.size()),
        taker_of_(schedule.streams, takers_),
        ready_after_(takers_),
        holes_(takers_),
        right_(takers_),
        waits_(takers_),
        awaited_(takers_) {
    for (std::size_t t = 0; t < takers_; ++t) taker_of_[index(reuse_.takers[t])] = t;
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
                            if (const std::size_t t = taker_of_[index(s.stream)]; t < takers_)
                              wait(t);
                          },
                          [&](const Synchronize&) {
                            for (std::size_t t = 0; t < takers_; ++t) wait(t);
                          },
                          [](const auto&) {}},
                 step);
    arena_.size = {top_};
    return std::move(arena_);
  }

 private:
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
      const allocator::FreeBlock hole = holes_[taker][fit];
      holes_[taker].erase_at(fit);
      return occupy(taker, hole, bytes);
    }
    if (is_ready(taker, last_)) {
      const allocator::FreeBlock hole = hole_around(taker, last_);
      holes_[taker].erase(hole);
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
  allocator::BlockHandle occupy(std::size_t taker, const allocator::FreeBlock& hole,
                                std::int64_t bytes) {
    const allocator::BlockHandle first = hole.block;
    allocator::BlockHandle last = first;
    std::int64_t size = table_[first].size;
    for (; size < bytes && last != last_; size += table_[last].size) last = table_[last].next;
    for (std::size_t t = 0; t < takers_; ++t)
      right_[t] = (t == taker ? hole.size : withdraw(t, first, last)) - bytes;
    if (size > bytes) {
      cut_gap(last, table_[last].size - (size - bytes));
    } else {
      table_[last].size += bytes - size;
      top_ += bytes - size;
    }
    while (table_[first].size < bytes) unite_with_next(first);
    table_[first].state = allocator::BlockState::Allocated;
    const allocator::BlockHandle next = table_[first].next;
    for (std::size_t t = 0; t < takers_; ++t)
      if (right_[t] > 0) holes_[t].insert({right_[t], table_[next].address, next});
    return first;
  }

  // Takes the taker's holes with a part in [first, last] out of the index, but for what is left of
  // `first`. Returns where the last of them ends, counted from `first`.
  std::int64_t withdraw(std::size_t taker, allocator::BlockHandle first,
                        allocator::BlockHandle last) {
    const std::int64_t begin = table_[first].address;
    std::int64_t end = begin;
    for (allocator::BlockHandle block = first;; block = table_[block].next) {
      const std::int64_t address = table_[block].address;
      if (address >= end && is_ready(taker, block)) {
        const allocator::FreeBlock hole = hole_around(taker, block);
        holes_[taker].erase(hole);
        end = hole.address + hole.size;
        if (hole.address < begin)
          holes_[taker].insert({begin - hole.address, hole.address, hole.block});
      }
      if (block == last) return end - begin;
    }
  }

  void release(BufferId id) {
    const allocator::BlockHandle block = blocks_[index(id)];
    if (block == allocator::no_block) return;
    table_[block].state = allocator::BlockState::Free;
    if (has_order_) {
      const std::span<std::uint32_t> ready_after = ready_after_of(block);
      copy_to(ready_after, reuse_.ready_after[index(id)]);
      await(block, ready_after);
    }
    for (std::size_t t = 0; t < takers_; ++t)
      if (is_ready(t, block)) offer(t, block);
    unite_if_equal(block);
  }

  // Some gaps become a hole of the taker.
  void wait(std::size_t taker) {
    const std::uint32_t count = ++waits_[taker];
    if (count >= awaited_[taker].size()) return;
    for (const allocator::BlockHandle block : std::exchange(awaited_[taker][count], {})) {
      std::uint32_t& awaited = ready_after_of(block)[taker];
      if (!table_.is(block, allocator::BlockState::Free) || awaited != count)
        continue;  // taken meanwhile
      awaited = 0;
      offer(taker, block);
      unite_if_equal(block);
    }
  }

  std::span<std::uint32_t> ready_after_of(allocator::BlockHandle gap) {
    const auto g = static_cast<std::size_t>(gap);
    if (g >= ready_after_.rows()) ready_after_.resize(g + 1);
    return ready_after_[g];
  }

  void await(allocator::BlockHandle gap, std::span<const std::uint32_t> ready_after) {
    for (std::size_t t = 0; t < takers_; ++t) {
      const std::uint32_t waits = ready_after[t];
      if (waits == 0 || waits == never) continue;
      if (waits >= awaited_[t].size()) awaited_[t].resize(waits + 1);
      awaited_[t][waits].push_back(gap);
    }
  }

  void cut_gap(allocator::BlockHandle gap, std::int64_t size) {
    const allocator::BlockHandle rest = table_.cut(gap, size);
    if (last_ == gap) last_ = rest;
    if (!has_order_) return;
    const std::span<std::uint32_t> ready_after = ready_after_of(rest);
    copy_to(ready_after, ready_after_[static_cast<std::size_t>(gap)]);
    await(rest, ready_after);
  }

  // --- blocks ------------------------------------------------------------------------------------

  bool is_ready(std::size_t taker, allocator::BlockHandle block) const {
    return table_.is(block, allocator::BlockState::Free) &&
           (!has_order_ || ready_after_[static_cast<std::size_t>(block)][taker] == 0);
  }

  bool are_equal_gaps(allocator::BlockHandle a, allocator::BlockHandle b) const {
    return table_.is(a, allocator::BlockState::Free) && table_.is(b, allocator::BlockState::Free) &&
           (!has_order_ || std::ranges::equal(ready_after_[static_cast<std::size_t>(a)],
                                              ready_after_[static_cast<std::size_t>(b)]));
  }

  // The first of them stays: holes that begin with it stay known by it.
  void unite_if_equal(allocator::BlockHandle block) {
    if (are_equal_gaps(block, table_[block].next)) unite_with_next(block);
    if (are_equal_gaps(table_[block].previous, block)) unite_with_next(table_[block].previous);
  }

  void unite_with_next(allocator::BlockHandle block) {
    if (table_[block].next == last_) last_ = block;
    table_.unite(block, table_[block].next);
  }

  // --- holes -------------------------------------------------------------------------------------

  // The gap, which just became a hole of the taker, joins those to its left and right.
  void offer(std::size_t taker, allocator::BlockHandle gap) {
    allocator::FreeBlock hole{table_[gap].size, table_[gap].address, gap};
    if (const allocator::BlockHandle next = table_[gap].next; is_ready(taker, next)) {
      const allocator::FreeBlock right = hole_that_begins_with(taker, next);
      holes_[taker].erase(right);
      hole.size += right.size;
    }
    if (const allocator::BlockHandle previous = table_[gap].previous; is_ready(taker, previous)) {
      const allocator::FreeBlock left = hole_that_ends_with(taker, previous);
      holes_[taker].erase(left);
      hole = {left.size + hole.size, left.address, left.block};
    }
    holes_[taker].insert(hole);
  }

  allocator::FreeBlock hole_around(std::size_t taker, allocator::BlockHandle gap) const {
    allocator::FreeBlock hole = hole_that_ends_with(taker, gap);
    hole.size += hole_that_begins_with(taker, gap).size - table_[gap].size;
    return hole;
  }

  allocator::FreeBlock hole_that_ends_with(std::size_t taker, allocator::BlockHandle gap) const {
    allocator::BlockHandle first = gap;
    while (is_ready(taker, table_[first].previous)) first = table_[first].previous;
    const std::int64_t begin = table_[first].address;
    return {table_[gap].address + table_[gap].size - begin, begin, first};
  }

  allocator::FreeBlock hole_that_begins_with(std::size_t taker, allocator::BlockHandle gap) const {
    allocator::BlockHandle last = gap;
    while (is_ready(taker, table_[last].next)) last = table_[last].next;
    const std::int64_t begin = table_[gap].address;
    return {table_[last].address + table_[last].size - begin, begin, gap};
  }

  const Schedule& schedule_;
  const Reuse reuse_;
  const bool has_order_;  // streams follow each other only where there are several
  const std::size_t takers_;
  std::vector<std::size_t> taker_of_;  // by stream; takers_: takes nothing
  Arena arena_;
  std::vector<allocator::BlockHandle> blocks_;  // by buffer
  allocator::BlockTable table_;
  StreamCounts ready_after_;                           // by block, of gaps
  allocator::BlockHandle last_ = allocator::no_block;  // the one that ends at the top
  std::int64_t top_ = 0;
  std::vector<allocator::FreeBlocks> holes_;  // by taker
  std::vector<std::int64_t> right_;           // by taker: what occupy() leaves of its hole
  std::vector<std::uint32_t> waits_;          // by taker, so far
  // By taker and wait: the gaps that it makes hole, and some that are none any more.
  std::vector<std::vector<std::vector<allocator::BlockHandle>>> awaited_;
};

}  // namespace

Arena plan_arena(const Schedule& schedule) { return Packing(schedule).run(); }

}  // namespace tidemark
