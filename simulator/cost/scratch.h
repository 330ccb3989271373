// Memory that PyTorch's kernels take beside what they read and write, while they run. It counts in
// what the allocator reports, and in nothing else: replays have kernels of our own.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "simulator/cost/device.h"
#include "simulator/schedule.h"
#include "traces/framework.h"
#include "traces/trace.h"

namespace tidemark {

/// The requests of one run, all of them there at once when it needs most.
class Scratch {
 public:
  void add(std::int64_t bytes) {
    if (bytes > 0) requests_[count_++] = Bytes{bytes};
  }
  std::span<const Bytes> requests() const { return {requests_.data(), count_}; }

 private:
  std::array<Bytes, 8> requests_{};
  std::size_t count_ = 0;
};

/// What PyTorch hands to cuBLAS for each handle and stream that computes, or for each call.
Bytes blas_workspace(const Framework& framework, const Device& device);
/// What Transformer Engine keeps for its matrix products, if the framework has it.
Bytes engine_workspace(const Device& device);
/// It keeps so many: one, and those of the streams of a grouped product.
int engine_workspaces(const Trace& trace);
/// What the framework keeps for the step's largest attention scores.
Bytes score_buffer(const Trace& trace);

/// By the sources of PyTorch 2.6; nothing where the framework's rules know of none.
Scratch scratch_of(const Trace& trace, const Schedule& schedule, const Run& run,
                   const Device& device);

/// What a sum of each column of [rows, columns] stages between thread blocks, in bytes.
std::int64_t column_sum_staging(std::int64_t rows, std::int64_t columns, const Device& device);

}  // namespace tidemark
