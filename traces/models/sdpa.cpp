// aten/src/ATen/native/transformers/cuda/sdp_utils.cpp of PyTorch 2.6: flash, memory-efficient,
// math.
#include "traces/models/sdpa.h"

namespace tidemark {
namespace {

bool flash_takes(const AttentionCall& call, std::int64_t capability) {
  constexpr std::int64_t widest = 256;
  const bool same_width = call.value_width == 0 || call.value_width == call.head_width;
  return capability >= 80 && size_of(call.dtype) == 2 && !call.masked && !call.broadcasts &&
         same_width && call.head_width <= widest;
}

// Rows of a head must be aligned for the matrix units: 16 bytes where they are used, and four
// elements on any recent device.
std::int64_t alignment(const AttentionCall& call, std::int64_t capability) {
  const bool is_half = size_of(call.dtype) == 2;
  const bool uses_units = capability >= 80 || (capability >= 70 && is_half);
  if (uses_units) return is_half ? 8 : 4;
  return 1;
}

bool memory_efficient_takes(const AttentionCall& call, std::int64_t capability) {
  return capability >= 50 && (call.dtype != DType::BFloat16 || capability >= 80) && !call.grouped &&
         !call.broadcasts && call.head_width % alignment(call, capability) == 0 &&
         call.value_width % alignment(call, capability) == 0;
}

}  // namespace

AttentionKernel sdpa_kernel(const AttentionCall& call, std::int64_t capability) {
  if (flash_takes(call, capability)) return AttentionKernel::Flash;
  if (memory_efficient_takes(call, capability)) return AttentionKernel::MemoryEfficient;
  return AttentionKernel::Composed;
}

}  // namespace tidemark
