// The layout of a recorded run (docs/recording.md): what the recorder writes and the reader reads,
// as plain rows. A file is `run_magic`, then chunks: a head, then so many bytes of rows of one
// kind.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tidemark::importers {

inline constexpr std::string_view run_magic = "TIDEMARK-RUN-01\n";

/// A chunk's kind as it stands in the file: four letters, the first in the lowest byte.
constexpr std::uint32_t chunk_kind(const char (&letters)[5]) {
  std::uint32_t kind = 0;
  for (int i = 3; i >= 0; --i) kind = kind << 8 | static_cast<unsigned char>(letters[i]);
  return kind;
}

struct ChunkHead {
  std::uint32_t kind = 0;
  std::uint32_t bytes = 0;  ///< that follow
};

/// No chunk is longer: what is cut off by the end of a process is at most that.
inline constexpr std::uint32_t largest_chunk = 1 << 20;

inline constexpr std::uint32_t chunk_process = chunk_kind("PROC");  ///< JSON, one object
inline constexpr std::uint32_t chunk_note = chunk_kind("NOTE");     ///< text for people, one line
inline constexpr std::uint32_t chunk_names = chunk_kind("NAME");  ///< length (32 bits), bytes; …
inline constexpr std::uint32_t chunk_kernels = chunk_kind("KERN");
inline constexpr std::uint32_t chunk_transfers = chunk_kind("COPY");
inline constexpr std::uint32_t chunk_memory = chunk_kind("MEMO");
inline constexpr std::uint32_t chunk_pools = chunk_kind("POOL");
inline constexpr std::uint32_t chunk_ranges = chunk_kind("RANG");
inline constexpr std::uint32_t chunk_launches = chunk_kind("LNCH");
inline constexpr std::uint32_t chunk_marks = chunk_kind("MARK");
inline constexpr std::uint32_t chunk_snapshot = chunk_kind("SNAP");  ///< of PyTorch, piece by piece
inline constexpr std::uint32_t chunk_end = chunk_kind("DONE");

// Times are nanoseconds since 1970 (CLOCK_REALTIME). Names are numbered as they come, from 0.

struct KernelRow {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t local_memory = 0;  ///< bytes of the device that spilled registers take
  std::uint32_t name = 0, device = 0, stream = 0, correlation = 0;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t shared_memory = 0;  ///< bytes per block
  std::uint32_t registers = 0;      ///< per thread
};
static_assert(sizeof(KernelRow) == 72);

struct TransferRow {
  std::uint64_t begin = 0, end = 0, bytes = 0;
  std::uint32_t device = 0, stream = 0, correlation = 0;
  std::uint8_t kind = 0;                ///< as CUPTI numbers copies; `memset_transfer`: a fill
  std::uint8_t source = 0, target = 0;  ///< kinds of memory, as CUPTI numbers them
  std::uint8_t is_async = 0;
};
static_assert(sizeof(TransferRow) == 40);
inline constexpr std::uint8_t memset_transfer = 255;

struct MemoryRow {
  std::uint64_t time = 0, address = 0, bytes = 0;
  std::uint32_t device = 0, stream = 0, correlation = 0;
  std::uint8_t operation = 0;  ///< 1 allocated, 2 released
  std::uint8_t memory = 0;     ///< kind, as CUPTI numbers it: 3 is the device's
  std::uint8_t is_async = 0;   ///< from a pool of the driver
  std::uint8_t unused = 0;
};
static_assert(sizeof(MemoryRow) == 40);

/// A pool of the driver (cudaMallocAsync) was made, trimmed or destroyed.
struct PoolRow {
  std::uint64_t time = 0, address = 0, size = 0, used = 0, release_threshold = 0;
  std::uint32_t device = 0;
  std::uint8_t operation = 0;  ///< 1 made, 2 destroyed, 3 trimmed
  std::uint8_t type = 0;       ///< 1 local, 2 imported
  std::array<std::uint8_t, 2> unused{};
};
static_assert(sizeof(PoolRow) == 48);

/// A range that the program named (NVTX), on a thread of the host.
struct RangeRow {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t name = 0, thread = 0;
};
static_assert(sizeof(RangeRow) == 24);

/// The call of the host that a kernel or copy came from; recorded once there are ranges.
struct LaunchRow {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t thread = 0, correlation = 0;
};
static_assert(sizeof(LaunchRow) == 24);

/// An optimizer has done a step.
struct MarkRow {
  std::uint64_t time = 0;
};

/// The last chunk of a process that came to its end, or was ended by a signal that lets it write.
struct EndRow {
  std::uint64_t time = 0;
  std::uint64_t dropped = 0;      ///< records of CUPTI for which no buffer was free
  std::uint64_t names_left = 0;   ///< ranges that are called "(others)": too many names
  std::uint64_t outstanding = 0;  ///< buffers that CUPTI never gave back
  std::uint32_t signal = 0;       ///< 0: it exited
  std::uint32_t error = 0;        ///< errno of the write that failed, after which nothing was kept
};
static_assert(sizeof(EndRow) == 40);

}  // namespace tidemark::importers
