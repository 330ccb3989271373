// What a profile holds, before it is made a timeline.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/json_reader.h"

namespace tidemark::importers {

/// Something that took time: an operator, an annotation or a kernel. Times are from the first on.
struct KinetoSpan {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t name = 0;  ///< into names
  std::int64_t lane = 0;   ///< a thread, or a stream
  std::int64_t device = 0;
  std::int64_t correlation = -1;  ///< of a kernel: its launch
};

struct KinetoAllocation {
  std::int64_t time_ns = 0;
  std::int64_t address = 0, bytes = 0;  ///< negative: freed
  std::int64_t total = 0;               ///< allocated afterwards, as the profiler counts
  std::int64_t order = 0;               ///< of equal times
  std::int64_t thread = 0;
  std::pair<std::int64_t, std::int64_t> device;  ///< type (0: the CPU), number
};

struct KinetoLaunch {
  std::int64_t time_ns = 0, thread = 0;
};

struct KinetoEvents {
  std::vector<std::string> names;
  std::vector<KinetoSpan> operators;  ///< of the CPU, annotations among them
  std::vector<KinetoSpan> kernels;    ///< copies and fills of memory among them
  std::vector<KinetoAllocation> allocations;
  std::unordered_map<std::int64_t, KinetoLaunch> launches;  ///< by correlation
  std::int64_t duration_ns = 0;
};

KinetoEvents read_kineto_events(JsonView root);

}  // namespace tidemark::importers
