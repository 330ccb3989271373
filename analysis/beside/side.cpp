// A prediction is the allocator's calls with their buffers; moments are found by running sums.
#include "analysis/beside/side.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

#include "simulator/allocator/allocator_calls.h"

namespace tidemark::beside {
namespace {

using allocator::AllocatorCall;

/// Numbers the blocks of a prediction: a buffer's is its own, those of other slots come behind.
class PredictedBlocks {
 public:
  PredictedBlocks(Side& side, const Schedule& schedule) : side_(side) {
    for (const Buffer& buffer : schedule.buffers)
      side.blocks.push_back({buffer.size, buffer.tensor, buffer.role, buffer.category});
    buffers_ = side.blocks.size();
  }

  std::uint32_t allocated(const AllocatorCall& call, Category category) {
    if (call.slot >= open_.size()) open_.resize(call.slot + 1);
    std::uint32_t block = call.slot;
    if (block >= buffers_) {
      block = static_cast<std::uint32_t>(side_.blocks.size());
      side_.blocks.push_back({call.size, no_tensor, Role::Temporary, category});
    }
    return open_[call.slot] = block;
  }
  std::uint32_t freed(const AllocatorCall& call) const { return open_[call.slot]; }

 private:
  Side& side_;
  std::size_t buffers_ = 0;
  std::vector<std::uint32_t> open_;  // by slot
};

/// How far a side, as it changes, is from blocks of another one: bytes of sizes that only one has.
class RunningDifference {
 public:
  RunningDifference(const Side& side, const Side& other, const std::vector<std::uint32_t>& found)
      : side_(side) {
    for (const std::uint32_t block : found) ++wanted_[rounded(other.blocks[block].size).count];
    for (const std::uint32_t block : side.before) apply({block, true});
  }
  void apply(const Change& change) {
    const Block& block = side_.blocks[change.block];
    taken_ += change.appears ? block.taken() : Bytes{} - block.taken();
    const Bytes size = change.appears ? meant_size(change.block, block) : meant_.at(change.block);
    now_ += change.appears ? size : Bytes{} - size;
    const auto wanted = wanted_.find(size.count);
    if (wanted == wanted_.end()) return;
    if (change.appears && wanted->second-- > 0) shared_ += size;
    if (!change.appears && wanted->second++ >= 0) shared_ -= size;
  }
  /// But for what the other side has in all, which stays.
  Bytes bytes() const { return now_ - shared_ - shared_; }
  Bytes taken() const { return taken_; }

 private:
  // Scratch may be any block that is about as large.
  Bytes meant_size(std::uint32_t number, const Block& block) {
    Bytes size = rounded(block.size);
    if (is_scratch(block)) {
      auto near = wanted_.lower_bound(size.count - size.count / scratch_share);
      const auto end = wanted_.upper_bound(size.count + size.count / scratch_share);
      while (near != end && near->second <= 0) ++near;
      if (near != end) size = {near->first};
    }
    return meant_[number] = size;
  }

  const Side& side_;
  std::map<std::int64_t, std::int64_t> wanted_;     // by size: how many are still missing
  std::unordered_map<std::uint32_t, Bytes> meant_;  // by block
  Bytes now_, shared_, taken_;
};

}  // namespace

Side predicted_side(const Evaluation& evaluation, const Framework& framework,
                    const Device& device) {
  Side side{.trace = evaluation.planned.trace.get()};
  side.lines = lines_by_tensor(*side.trace);
  side.operations.resize(side.trace->tensors.size());
  for (const Op& op : side.trace->ops)
    for (const TensorId output : side.trace->outputs(op))
      if (const OpaqueRow* row = opaque_row(*side.trace, op))
        side.operations[index((*side.trace)[output].storage)] = row->operation;
  const allocator::AllocatorCalls calls =
      allocator::calls_of(*side.trace, evaluation.schedule, framework, device);
  PredictedBlocks blocks(side, evaluation.schedule);
  const std::size_t buffers = evaluation.schedule.buffers.size();
  for (const AllocatorCall& call : calls.before)
    if (call.slot < buffers || call.slot >= buffers + calls.state_slots)
      side.before.push_back(blocks.allocated(call, Category::Workspace));
  for (const AllocatorCall& call : calls.step) {
    if (call.kind == AllocatorCall::Kind::Allocate)
      side.changes.push_back({blocks.allocated(call, Category::Temporary), true});
    if (call.kind == AllocatorCall::Kind::Free) side.changes.push_back({blocks.freed(call), false});
  }
  return side;
}

Side recorded_side(const Recording& recording, const std::vector<Bytes>& requested) {
  Side side{.trace = recording.trace.get()};
  if (!recording.decisions.empty()) side.callers = &recording.decisions;
  for (std::size_t b = 0; b < recording.schedule.buffers.size(); ++b) {
    const Buffer& buffer = recording.schedule.buffers[b];
    const bool is_known = b < requested.size() && requested[b] > Bytes{};
    const Bytes size = is_known ? std::min(requested[b], buffer.size) : buffer.size;
    side.blocks.push_back({size, buffer.tensor, buffer.role, buffer.category, buffer.size - size});
    if (buffer.persistent) side.before.push_back(static_cast<std::uint32_t>(b));
  }
  for (const MemoryEvent& event : recording.timeline.memory)
    side.changes.push_back({static_cast<std::uint32_t>(index(event.buffer)), event.appears});
  return side;
}

Side with_predicted_sizes(Side recorded, const Side& predicted) {
  std::set<std::int64_t> sizes;
  for (const Block& block : predicted.blocks) sizes.insert(rounded(block.size).count);
  for (Block& block : recorded.blocks) {
    const auto above = sizes.upper_bound(block.size.count);
    if (above == sizes.begin() || block.size <= most_unsplit) continue;
    const Bytes size{*std::prev(above)};
    if (block.size - size > most_unsplit) continue;
    block.unsplit += block.size - size;
    block.size = size;
  }
  return recorded;
}

bool is_scratch(const Block& block) {
  return block.tensor == no_tensor && block.category == Category::Temporary;
}

Bytes rounded(Bytes size) { return {round_up(std::max<std::int64_t>(size.count, 1), 512)}; }

std::size_t highest_moment(const Side& side) {
  Bytes now, highest;
  std::size_t moment = 0;
  for (std::size_t i = 0; i < side.changes.size(); ++i) {
    const auto [block, appears] = side.changes[i];
    const Bytes taken = side.blocks[block].taken();
    now += appears ? taken : Bytes{} - taken;
    if (now > highest) highest = now, moment = i + 1;
  }
  return moment;
}

std::vector<std::uint32_t> blocks_at(const Side& side, std::size_t moment) {
  std::vector<bool> is_there(side.blocks.size());
  for (const std::uint32_t block : side.before) is_there[block] = true;
  for (std::size_t i = 0; i < moment; ++i)
    is_there[side.changes[i].block] = side.changes[i].appears;
  std::vector<std::uint32_t> blocks;
  for (const std::uint32_t block : side.before)
    if (is_there[block]) blocks.push_back(block);
  for (std::size_t i = 0; i < moment; ++i)
    if (side.changes[i].appears && is_there[side.changes[i].block])
      blocks.push_back(side.changes[i].block);
  return blocks;
}

Bytes bytes_of(const Side& side, const std::vector<std::uint32_t>& blocks) {
  Bytes sum;
  for (const std::uint32_t block : blocks) sum += side.blocks[block].taken();
  return sum;
}

std::size_t most_alike_moment(const Side& side, const Side& other,
                              const std::vector<std::uint32_t>& found) {
  const std::size_t highest = highest_moment(side);
  RunningDifference difference(side, other, found);
  Bytes least = difference.bytes(), with_most = difference.taken(), at_highest = least;
  std::size_t moment = 0;
  for (std::size_t i = 0; i < side.changes.size(); ++i) {
    difference.apply(side.changes[i]);
    const Bytes bytes = difference.bytes(), taken = difference.taken();
    if (i + 1 == highest) at_highest = bytes;
    // Of two that differ as little the higher one: that with an op's scratch.
    if (bytes < least || (bytes == least && taken > with_most))
      least = bytes, with_most = taken, moment = i + 1;
  }
  // A hundredth of what is there: moments next to each other differ in little.
  const Bytes clearly{bytes_of(other, found).count / 100};
  return at_highest - least > clearly ? moment : highest;
}

std::string name_of(const Side& side, const Block& block) {
  if (block.tensor == no_tensor)
    return block.category == Category::Workspace ? "(workspace of a library)" : "(scratch)";
  const std::string& name = (*side.trace)[block.tensor].name;
  if (block.role == Role::Value) return name;
  return fmt::format("{} ({})", name, roles[static_cast<std::size_t>(block.role)].name);
}

}  // namespace tidemark::beside
