// What forward and backward launch with: operands of a call as the kernels want them.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/attention/attention.cuh"
#include "kernels/attention/attention.h"
#include "kernels/cuda/multiply.h"

namespace tidemark::cuda {

inline std::int64_t query_count(const AttentionShape& s) {
  return std::int64_t{s.batches} * s.heads * s.tokens;
}

inline HeadOperand head_operand(const Array& x) {
  HeadOperand head{x.data, x.dtype, x.strides[0], x.strides[1], x.strides[2], x.strides[3]};
  const std::int64_t vector = 16 / size_of(x.dtype);
  bool aligned = reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && head.channel == 1 &&
                 x.shape[3] % vector == 0;
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (x.shape[axis] > 1 && x.strides[axis] % vector != 0) aligned = false;
  head.has_vectors = aligned;
  return head;
}

/// Aligned at its end to [b, h, t, s]; fp32.
inline BiasOperand bias_operand(const Array& bias) {
  BiasOperand operand;
  operand.data = elements<const float>(bias);
  const std::size_t rank = bias.shape.rank();
  const auto extent = [&](std::size_t axis) {  // of four
    return axis + rank < 4 ? 1 : bias.shape[axis + rank - 4];
  };
  const auto stride = [&](std::size_t axis) {
    return extent(axis) == 1 ? 0 : bias.strides[axis + rank - 4];
  };
  operand.batches = extent(0), operand.heads = extent(1);
  operand.batch = stride(0), operand.head = stride(1);
  operand.row = stride(2), operand.column = stride(3);
  return operand;
}

// Slots 0 to 3 hold copies of q, k, v and dy.
enum AttentionSlot : std::size_t { slot_lse = 4, slot_dots, slot_dbias, slot_bias };

/// The call's operands; where dtypes are mixed, those that are read are copied to fp32.
class AttentionCall {
 public:
  AttentionCall(const Call& call, Launch& launch) : launch_(launch) {
    operands_[0] = call.inputs[0], operands_[1] = call.inputs[1], operands_[2] = call.inputs[2];
    if (call.pass == Pass::Backward) operands_[3] = call.d_outputs[0];
    bool is_mixed = false;
    const auto look = [&](const Array& x) { is_mixed |= x && x.dtype != operands_[0].dtype; };
    for (const Array& x : operands_) look(x);
    look(call.outputs[0]);
    for (std::size_t i = 0; i < 3 && i < call.d_inputs.size(); ++i) look(call.d_inputs[i]);
    for (std::size_t i = 0; is_mixed && i < operands_.size(); ++i)
      if (operands_[i]) operands_[i] = in_fp32(operands_[i], i);
    fill_shape(call);
    if (call.inputs.size() > 3) o.bias = bias_operand(in_fp32(call.inputs[3], slot_bias));
    o.q = head_operand(operands_[0]), o.k = head_operand(operands_[1]);
    o.v = head_operand(operands_[2]);
    if (operands_[3]) o.dy = head_operand(operands_[3]);
  }

  /// Scratch of one number per query of each head.
  float* per_query(std::size_t slot) {
    const std::int64_t rows = query_count(o.shape);
    return reinterpret_cast<float*>(
        scratch(launch_, rows * static_cast<std::int64_t>(sizeof(float)), slot));
  }

  /// Calls f.operator()<T, D>() with the dtype and the padded width of the heads.
  template <typename F>
  void dispatch(F&& f) const {
    switch (operands_[0].dtype) {
      case DType::Float32:
        return by_width<float>(f);
      case DType::BFloat16:
        return by_width<BFloat16>(f);
      case DType::Float16:
        return by_width<Float16>(f);
      case DType::Float64:
      case DType::Int64:
      case DType::UInt8:
      case DType::Bool:
      case DType::Float8:
      case DType::Float4x2:
        break;
    }
    CHECK(!"attention in a dtype that has none");
  }

  AttentionOperands o;

 private:
  void fill_shape(const Call& call) {
    const Array &q = operands_[0], &k = operands_[1], &v = operands_[2];
    AttentionShape& s = o.shape;
    const auto number = [](std::int64_t n) { return static_cast<int>(n); };
    s.batches = number(q.shape[0]), s.heads = number(q.shape[1]);
    s.key_heads = number(k.shape[1]);
    s.tokens = number(q.shape[2]), s.keys = number(k.shape[2]);
    s.d = number(q.shape[3]), s.e = number(v.shape[3]);
    s.scale = static_cast<float>(call.settings.factor / std::sqrt(static_cast<double>(s.d)));
    s.causal = call.settings.causal,
    s.window = number(std::min<std::int64_t>(call.settings.window, AttentionShape::most));
  }
  Array in_fp32(const Array& x, std::size_t slot) {
    if (x.dtype == DType::Float32) return x;
    std::byte* data = scratch(launch_, numel(x.shape) * size_of(DType::Float32), slot);
    const Array copy = array_at(data, DType::Float32, dense(x.shape));
    convert(launch_, x, copy);
    return copy;
  }
  template <typename T, typename F>
  void by_width(F& f) const {
    const int width = std::max(o.shape.d, o.shape.e);
    if (width <= 32) return f.template operator()<T, 32>();
    if (width <= 64) return f.template operator()<T, 64>();
    if (width <= 128) return f.template operator()<T, 128>();
    if (width <= 256) return f.template operator()<T, 256>();
    // No fmt here: nvcc 13 does not compile fmt 9.
    throw InputError("fused attention on a GPU knows heads of up to 256 channels, not " +
                     std::to_string(width) + "; use --attention math");
  }

  Launch& launch_;
  std::array<Array, 4> operands_;  ///< q, k, v, dy
};

/// One block per tile; more than 48 KiB of shared memory must be asked for.
template <typename... Parameters, typename... Arguments>
void start_tiles(const Launch& launch, const char* name, void (*kernel)(Parameters...),
                 std::int64_t blocks, int threads, std::size_t bytes,
                 const Arguments&... arguments) {
#if defined(__CUDACC__)
  if (bytes > shared_limit)  // refused, and the launch tells it
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(bytes));
#endif
  start(launch, name, kernel, dim3(static_cast<unsigned>(blocks)),
        dim3(static_cast<unsigned>(threads)), bytes, arguments...);
}

/// Of what passes by: two where they fit beside `own_bytes` and products are fast enough to wait
/// for memory, which those by plain loops are not.
template <typename T, int D>
int stages_beside(const Launch& launch, std::size_t own_bytes) {
  const auto both = static_cast<std::int64_t>(own_bytes) + 2 * AttentionTile<T, D>::stage_bytes;
  return sizeof(T) == 2 && both <= launch.shared_memory ? 2 : 1;
}

/// A kernel whose last parameter is the number of stages.
template <typename T, int D, typename Kernel, typename... Arguments>
void start_staged_tiles(const Launch& launch, const char* name, Kernel kernel, std::int64_t blocks,
                        std::size_t own_bytes, const Arguments&... arguments) {
  using Tile = AttentionTile<T, D>;
  const int stages = stages_beside<T, D>(launch, own_bytes);
  start_tiles(launch, name, kernel, blocks, Tile::threads,
              own_bytes + static_cast<std::size_t>(stages) * Tile::stage_bytes, arguments...,
              stages);
}

inline std::int64_t tile_count(std::int64_t tokens, int rows) { return (tokens + rows - 1) / rows; }

/// y and lse, as far as `o` has them.
void attend_tiles(Launch& launch, const AttentionCall& attention);

}  // namespace tidemark::cuda
