// A memory snapshot of PyTorch's caching allocator (torch.cuda.memory._dump_snapshot), as far as it
// is about memory: what the allocator did, in order, and what it holds at the end.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/units.h"
#include "importers/pickle_input.h"
#include "simulator/allocator/allocator_settings.h"

namespace tidemark::importers {

enum class StackId : std::uint32_t {};
constexpr std::size_t index(StackId id) { return static_cast<std::size_t>(id); }
/// Of what was recorded without one.
inline constexpr StackId no_stack{0};

struct Frame {
  std::string function, file;
  std::int64_t line = 0;

  bool operator==(const Frame&) const = default;
};

enum class SnapshotAction : std::uint8_t {
  Alloc,
  FreeRequested,
  FreeCompleted,
  SegmentAlloc,
  SegmentFree,
  SegmentMap,
  SegmentUnmap,
  Snapshot,
  Oom,
  Unknown,  ///< of a newer PyTorch
};

inline constexpr std::array snapshot_actions = {
    Named{SnapshotAction::Alloc, std::string_view("alloc")},
    Named{SnapshotAction::FreeRequested, std::string_view("free_requested")},
    Named{SnapshotAction::FreeCompleted, std::string_view("free_completed")},
    Named{SnapshotAction::SegmentAlloc, std::string_view("segment_alloc")},
    Named{SnapshotAction::SegmentFree, std::string_view("segment_free")},
    Named{SnapshotAction::SegmentMap, std::string_view("segment_map")},
    Named{SnapshotAction::SegmentUnmap, std::string_view("segment_unmap")},
    Named{SnapshotAction::Snapshot, std::string_view("snapshot")},
    Named{SnapshotAction::Oom, std::string_view("oom")},
    Named{SnapshotAction::Unknown, std::string_view("unknown")}};
static_assert(is_in_order(snapshot_actions));

struct SnapshotEvent {
  std::int64_t address = 0;  ///< of an oom: what the device had free
  Bytes size;                ///< of an alloc: as requested
  std::int64_t stream = 0;
  std::int64_t time_us = 0;
  StackId stack = no_stack;
  SnapshotAction action = SnapshotAction::Unknown;
};

enum class BlockState : std::uint8_t { Allocated, PendingFree, Inactive };

inline constexpr std::array block_states = {
    Named{BlockState::Allocated, std::string_view("active_allocated")},
    Named{BlockState::PendingFree, std::string_view("active_pending_free")},
    Named{BlockState::Inactive, std::string_view("inactive")}};
static_assert(is_in_order(block_states));

struct SnapshotBlock {
  std::int64_t address = 0;
  Bytes size, requested;
  StackId stack = no_stack;
  BlockState state = BlockState::Inactive;
};

struct SnapshotSegment {
  std::int64_t address = 0;
  Bytes size;
  std::int64_t stream = 0;
  std::int64_t device = 0;
  bool is_expandable = false;
  std::vector<SnapshotBlock> blocks;  ///< by address
};

struct MemorySnapshot {
  std::vector<Frame> frames;
  std::vector<std::uint32_t> stack_frames;   ///< into frames: innermost first, stack after stack
  std::vector<std::uint64_t> stack_ends{0};  ///< in stack_frames, by stack; the first is empty
  std::vector<std::vector<SnapshotEvent>> events;  ///< by device
  std::vector<SnapshotSegment> segments;
  allocator::AllocatorSettings settings;
  std::string settings_text;       ///< PYTORCH_CUDA_ALLOC_CONF
  std::size_t unknown_events = 0;  ///< whose actions a newer PyTorch has brought

  std::span<const std::uint32_t> stack(StackId id) const {
    const std::uint64_t begin = id == no_stack ? 0 : stack_ends[index(id) - 1];
    return std::span(stack_frames).subspan(begin, stack_ends[index(id)] - begin);
  }
};

/// InputError says file, byte, what is wrong and what would be right.
MemorySnapshot read_memory_snapshot(const std::string& path);
MemorySnapshot read_memory_snapshot(PickleInput& input);

/// Is it a pickle? Said by its first bytes, whatever it is called.
bool is_memory_snapshot(const std::string& path);

}  // namespace tidemark::importers
