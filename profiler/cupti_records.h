// What CUPTI saw of a GPU, in plain words: none of its own types leave its files.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace tidemark::profiler {

/// How work is found again: CUPTI numbers every launch, and says which of the ids that were pushed
/// at that moment (steps of a schedule) it belongs to.
using CorrelationId = std::uint32_t;

/// Times of all records are nanoseconds of the host's real-time clock, as CUPTI gives them.
struct GpuKernel {
  std::string name;  ///< mangled
  Nanoseconds begin{}, end{};
  std::uint32_t stream = 0;
  CorrelationId correlation = 0;
  std::uint64_t blocks = 0;
  std::uint32_t threads = 0;  ///< per block
  Bytes shared_memory;        ///< per block
  int registers = 0;          ///< per thread
  Bytes local_memory;         ///< of the whole device: spilled registers
};

/// A copy or a memset.
struct GpuTransfer {
  enum class Kind : std::uint8_t { ToDevice, ToHost, WithinDevice, Other, Set };
  Kind kind = Kind::Other;
  Bytes size;
  Nanoseconds begin{}, end{};
  std::uint32_t stream = 0;
  CorrelationId correlation = 0;
  bool is_pinned = false;  ///< the host's side of a copy is: only then it runs beside kernels
};

struct GpuAllocation {
  bool is_release = false;
  bool is_device = false;  ///< else of the host
  std::uint64_t address = 0;
  Bytes size;
  Nanoseconds time{};
};

/// The host waited, or a stream for an event.
struct GpuWait {
  bool is_of_host = false;
  Nanoseconds begin{}, end{};
};

/// CUPTI's own doing, by its kind, such as flushing buffers.
struct GpuOverhead {
  std::uint32_t kind = 0;
  Nanoseconds begin{}, end{};
};

struct CuptiRecording {
  std::vector<GpuKernel> kernels;
  std::vector<GpuTransfer> transfers;
  std::vector<GpuAllocation> allocations;
  std::vector<GpuWait> waits;
  std::vector<GpuOverhead> overheads;
  /// By correlation: the step that had been pushed.
  std::vector<std::pair<CorrelationId, std::uint64_t>> steps;

  // What the numbers above do not have.
  std::size_t dropped = 0;        ///< records, by CUPTI's own count: its buffers were full
  std::size_t without_times = 0;  ///< kernels and transfers that it could not time
  std::size_t unknown = 0;        ///< records of kinds that were not asked for

  // What the observation itself takes.
  std::uint32_t version = 0;        ///< of CUPTI: 130001 = 13.0 update 1
  Bytes host_buffers;               ///< that records passed through
  Bytes device_buffer;              ///< CUPTI's own, of which it takes three or more per context
  bool buffers_are_pinned = false;  ///< these lie in pinned host memory, not on the device
};

/// "1234 kernels, 56 transfers; CUPTI 13.0.1 itself takes …": one line, with all that is missing.
std::string summary(const CuptiRecording& recording);

}  // namespace tidemark::profiler
