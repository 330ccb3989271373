// Holds kernels to their arrays: while a call runs, AddressSanitizer forbids the rest of the arena.
// Without that, a kernel that writes beside its tensor hits a neighbour, and nobody notices.
//
// A kernel is a plain function, so what the fence knows is global; it serves one stream at a time.
#pragma once

#include <sanitizer/asan_interface.h>

#include <algorithm>

#include "kernels/cpu/workspace.h"
#include "tests/support/sanitized.h"

namespace tidemark::fence {

struct Range {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  std::size_t size() const { return static_cast<std::size_t>(end - begin); }
};

/// From the first to behind the last element, whatever the strides.
inline Range extent(const Array& array) {
  if (!array || numel(array.shape) == 0) return {array.data, array.data};
  std::int64_t first = 0, last = 0;
  for (std::size_t i = 0; i < array.shape.rank(); ++i) {
    const std::int64_t reach = (array.shape[i] - 1) * array.strides[i];
    (reach < 0 ? first : last) += reach;
  }
  return {array.data + first * size_of(array.dtype),
          array.data + (last + 1) * size_of(array.dtype)};
}

/// Of those that are written with the array's values: by number, a byte each.
inline Range extent_of_codes(const Array& array) {
  const Range values = extent(array);
  const auto code_at = [&](const std::byte* value) {
    const std::int64_t element = (value - array.groups.first) / size_of(array.dtype);
    return reinterpret_cast<const std::byte*>(array.groups.codes) + element;
  };
  return {code_at(values.begin), code_at(values.end)};
}

template <typename Visit>
void for_each_extent(const Call& call, Visit visit) {
  for (const auto* arrays : {&call.inputs, &call.outputs, &call.d_outputs, &call.d_inputs})
    for (const Array& array : *arrays) {
      if (!array) continue;
      visit(extent(array));
      if (array.groups.codes != nullptr) visit(extent_of_codes(array));
    }
}

inline Range arena;  ///< what all arrays that were seen span

/// Before a replay's first step.
inline void forget() { arena = {}; }

/// In place of cpu::run in one step, which then computes nothing: learns where the arena is.
inline void learn(const Call& call) {
  for_each_extent(call, [](Range range) {
    arena.begin = arena.begin == nullptr ? range.begin : std::min(arena.begin, range.begin);
    arena.end = std::max(arena.end, range.end);
  });
}

/// The kernel, fenced in.
inline void run(const Call& call, cpu::Workspace& workspace, cpu::Kernel kernel = cpu::run) {
  struct Closed {
    Closed() { ASAN_POISON_MEMORY_REGION(arena.begin, arena.size()); }
    ~Closed() { ASAN_UNPOISON_MEMORY_REGION(arena.begin, arena.size()); }
  };
  const Closed closed;
  for_each_extent(call, [](Range range) {
    ASAN_UNPOISON_MEMORY_REGION(range.begin, range.size());
    static_cast<void>(range);  // without the sanitizer these macros are nothing
  });
  kernel(call, workspace);
}

/// For CpuBackendOptions::run: learns in step 0, runs from step 1 on.
inline void run_from_step_one(const Call& call, cpu::Workspace& workspace) {
  if (workspace.state.number == 0) return learn(call);
  fence::run(call, workspace);
}

}  // namespace tidemark::fence
