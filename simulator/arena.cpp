// Packs a schedule into one arena, step by step in issue order.
//   blocks              [ used ][ gap of 0 and 1 ][ gap of 0 ][ used ]
//   hole of stream 0            [           hole             ]
//   hole of stream 1            [      hole      ]
// A gap knows after how many of its waits each stream may take it; gaps that touch and agree in
// this are one. A hole is as much as one stream may take now. Holes are indexed by size, so a step
// takes the same short time however many gaps there are. A search through all gaps finds the same
// places: arena_property_test.cpp.
#include "simulator/arena.h"

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
        holes_(schedule.streams),
        right_(schedule.streams),
        awaited_(schedule.streams) {
    arena_.offsets.assign(schedule.buffers.size(), 0);
    blocks_.assign(schedule.buffers.size(), allocator::no_block);
    for (std::size_t b = 0; b < schedule.buffers.size(); ++b)
      if (schedule.buffers[b].persistent) place(static_cast<BufferId>(b));
  }

  Arena run() && {
    for (const Step& step : schedule_.steps)
      std::visit(Overload{[&](const Allocate& s) { place(s.buffer); },
                          [&](const Free& s) { release(s.buffer); },
                          [&](const Wait& s) { wait(index(s.stream)); },
                          [&](const Synchronize&) {
                            for (std::size_t s = 0; s < schedule_.streams; ++s) wait(s);
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
    const allocator::BlockHandle block = take(index(schedule_[id].stream), bytes);
    blocks_[index(id)] = block;
    arena_.offsets[index(id)] = table_[block].address;
  }

  // Best fit. Only if nothing fits, the hole at the top is taken and grown.
  allocator::BlockHandle take(std::size_t stream, std::int64_t bytes) {
    const allocator::FreeBlocks::Position fit = holes_[stream].best_fit(bytes);
    if (fit != allocator::FreeBlocks::none) {
      const allocator::FreeBlock hole = holes_[stream][fit];
      holes_[stream].erase_at(fit);
      return occupy(stream, hole, bytes);
    }
    if (is_ready(stream, last_)) {
      const allocator::FreeBlock hole = hole_around(stream, last_);
      holes_[stream].erase(hole);
      return occupy(stream, hole, bytes);
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
  allocator::BlockHandle occupy(std::size_t stream, const allocator::FreeBlock& hole,
                                std::int64_t bytes) {
    const allocator::BlockHandle first = hole.block;
    allocator::BlockHandle last = first;
    std::int64_t size = table_[first].size;
    for (; size < bytes && last != last_; size += table_[last].size) last = table_[last].next;
    for (std::size_t s = 0; s < schedule_.streams; ++s)
      right_[s] = (s == stream ? hole.size : withdraw(s, first, last)) - bytes;
    if (size > bytes) {
      cut_gap(last, table_[last].size - (size - bytes));
    } else {
      table_[last].size += bytes - size;
      top_ += bytes - size;
    }
    while (table_[first].size < bytes) unite_with_next(first);
    table_[first].state = allocator::BlockState::Allocated;
    const allocator::BlockHandle next = table_[first].next;
    for (std::size_t s = 0; s < schedule_.streams; ++s)
      if (right_[s] > 0) holes_[s].insert({right_[s], table_[next].address, next});
    return first;
  }

  // Takes the stream's holes with a part in [first, last] out of the index, but for what is left of
  // `first`. Returns where the last of them ends, counted from `first`.
  std::int64_t withdraw(std::size_t stream, allocator::BlockHandle first,
                        allocator::BlockHandle last) {
    const std::int64_t begin = table_[first].address;
    std::int64_t end = begin;
    for (allocator::BlockHandle block = first;; block = table_[block].next) {
      const std::int64_t address = table_[block].address;
      if (address >= end && is_ready(stream, block)) {
        const allocator::FreeBlock hole = hole_around(stream, block);
        holes_[stream].erase(hole);
        end = hole.address + hole.size;
        if (hole.address < begin)
          holes_[stream].insert({begin - hole.address, hole.address, hole.block});
      }
      if (block == last) return end - begin;
    }
  }

  void release(BufferId id) {
    const allocator::BlockHandle block = blocks_[index(id)];
    if (block == allocator::no_block) return;
    table_[block].state = allocator::BlockState::Free;
    const WaitCounts ready_after = reuse_.empty() ? WaitCounts{} : reuse_[index(id)];
    set_ready_after(block, ready_after);
    for (std::size_t s = 0; s < schedule_.streams; ++s)
      if (ready_after[s] == 0) offer(s, block);
    unite_if_equal(block);
  }

  // Some gaps become a hole of the stream.
  void wait(std::size_t stream) {
    const std::uint32_t count = ++waits_[stream];
    if (count >= awaited_[stream].size()) return;
    for (const allocator::BlockHandle block : std::exchange(awaited_[stream][count], {})) {
      std::uint32_t& awaited = ready_after_[static_cast<std::size_t>(block)][stream];
      if (!table_.is(block, allocator::BlockState::Free) || awaited != count)
        continue;  // taken meanwhile
      awaited = 0;
      offer(stream, block);
      unite_if_equal(block);
    }
  }

  void set_ready_after(allocator::BlockHandle gap, const WaitCounts& waits) {
    const auto g = static_cast<std::size_t>(gap);
    if (g >= ready_after_.size()) ready_after_.resize(g + 1);
    ready_after_[g] = waits;
    for (std::size_t s = 0; s < schedule_.streams; ++s) {
      if (waits[s] == 0 || waits[s] == never) continue;
      if (waits[s] >= awaited_[s].size()) awaited_[s].resize(waits[s] + 1);
      awaited_[s][waits[s]].push_back(gap);
    }
  }

  void cut_gap(allocator::BlockHandle gap, std::int64_t size) {
    const WaitCounts ready_after = ready_after_[static_cast<std::size_t>(gap)];
    const allocator::BlockHandle rest = table_.cut(gap, size);
    if (last_ == gap) last_ = rest;
    set_ready_after(rest, ready_after);
  }

  // --- blocks ------------------------------------------------------------------------------------

  bool is_ready(std::size_t stream, allocator::BlockHandle block) const {
    return table_.is(block, allocator::BlockState::Free) &&
           ready_after_[static_cast<std::size_t>(block)][stream] == 0;
  }

  bool are_equal_gaps(allocator::BlockHandle a, allocator::BlockHandle b) const {
    return table_.is(a, allocator::BlockState::Free) && table_.is(b, allocator::BlockState::Free) &&
           ready_after_[static_cast<std::size_t>(a)] == ready_after_[static_cast<std::size_t>(b)];
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

  // The gap, which just became a hole of the stream, joins those to its left and right.
  void offer(std::size_t stream, allocator::BlockHandle gap) {
    allocator::FreeBlock hole{table_[gap].size, table_[gap].address, gap};
    if (const allocator::BlockHandle next = table_[gap].next; is_ready(stream, next)) {
      const allocator::FreeBlock right = hole_that_begins_with(stream, next);
      holes_[stream].erase(right);
      hole.size += right.size;
    }
    if (const allocator::BlockHandle previous = table_[gap].previous; is_ready(stream, previous)) {
      const allocator::FreeBlock left = hole_that_ends_with(stream, previous);
      holes_[stream].erase(left);
      hole = {left.size + hole.size, left.address, left.block};
    }
    holes_[stream].insert(hole);
  }

  allocator::FreeBlock hole_around(std::size_t stream, allocator::BlockHandle gap) const {
    allocator::FreeBlock hole = hole_that_ends_with(stream, gap);
    hole.size += hole_that_begins_with(stream, gap).size - table_[gap].size;
    return hole;
  }

  allocator::FreeBlock hole_that_ends_with(std::size_t stream, allocator::BlockHandle gap) const {
    allocator::BlockHandle first = gap;
    while (is_ready(stream, table_[first].previous)) first = table_[first].previous;
    const std::int64_t begin = table_[first].address;
    return {table_[gap].address + table_[gap].size - begin, begin, first};
  }

  allocator::FreeBlock hole_that_begins_with(std::size_t stream, allocator::BlockHandle gap) const {
    allocator::BlockHandle last = gap;
    while (is_ready(stream, table_[last].next)) last = table_[last].next;
    const std::int64_t begin = table_[gap].address;
    return {table_[last].address + table_[last].size - begin, begin, gap};
  }

  const Schedule& schedule_;
  const std::vector<WaitCounts> reuse_;  // by buffer, or empty
  Arena arena_;
  std::vector<allocator::BlockHandle> blocks_;  // by buffer
  allocator::BlockTable table_;
  std::vector<WaitCounts> ready_after_;                // by block, of gaps
  allocator::BlockHandle last_ = allocator::no_block;  // the one that ends at the top
  std::int64_t top_ = 0;
  std::vector<allocator::FreeBlocks> holes_;  // by stream
  std::vector<std::int64_t> right_;           // by stream: what occupy() leaves of its hole
  WaitCounts waits_{};                        // so far
  // By stream and wait: the gaps that it makes hole, and some that are none any more.
  std::vector<std::vector<std::vector<allocator::BlockHandle>>> awaited_;
};

}  // namespace

Arena plan_arena(const Schedule& schedule) { return Packing(schedule).run(); }

}  // namespace tidemark
