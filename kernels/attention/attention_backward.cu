// Launches the backward of attention: the dots of y and its gradient, then a kernel per gradient.
#include "kernels/accumulate/accumulate.h"
#include "kernels/attention/attention_backward.cuh"
#include "kernels/attention/attention_launch.cuh"

namespace tidemark::cuda {
namespace {

/// With leading axes of one element.
Array with_four_axes(const Array& x) {
  const std::size_t missing = 4 - x.shape.rank();
  std::array<std::int64_t, 4> dims{1, 1, 1, 1};
  Array result = x;
  result.strides = {};
  for (std::size_t axis = missing; axis < 4; ++axis) {
    dims[axis] = x.shape[axis - missing];
    result.strides[axis] = x.strides[axis - missing];
  }
  result.shape = Shape(std::span<const std::int64_t>(dims));
  return result;
}

void find_lse(const Call& call, Launch& launch, AttentionCall& attention) {
  const Array lse = call.outputs.size() > 1 ? call.outputs[1] : Array{};
  if (lse && lse.dtype == DType::Float32 && is_dense(lse.layout())) {
    attention.o.lse = elements<float>(lse);
    return;
  }
  attention.o.lse = attention.per_query(slot_lse);
  if (!lse) return attend_tiles(launch, attention);  // again; o.y is not set, so none is written
  convert(
      launch, lse,
      array_at(reinterpret_cast<std::byte*>(attention.o.lse), DType::Float32, dense(lse.shape)));
}

void find_dots(Launch& launch, AttentionCall& attention) {
  const AttentionShape& s = attention.o.shape;
  attention.o.dots = attention.per_query(slot_dots);
  const std::int64_t rows = query_count(s);
  attention.dispatch([&]<typename T, int D>() {
    constexpr int vectors = D * static_cast<int>(sizeof(T)) / 16, warp = warp_size;
    constexpr int lanes = vectors < warp ? vectors : warp;
    const std::int64_t blocks = (rows * lanes + usual_threads - 1) / usual_threads;
    start(launch, "attention dots", dot_rows<T>, dim3(static_cast<unsigned>(blocks)),
          dim3(usual_threads), 0, attention.o, rows, lanes);
  });
}

void write_dq(Launch& launch, const AttentionCall& attention, const Array& dq) {
  const AttentionShape& s = attention.o.shape;
  attention.dispatch([&]<typename T, int D>() {
    using Tile = AttentionTile<T, D>;
    start_staged_tiles<T, D>(launch, "attention dq", attend_dq<T, D>,
                             tile_count(s.tokens, Tile::rows) * s.heads * s.batches,
                             BackwardTiles<T, D>::own_bytes, attention.o, head_operand(dq));
  });
}

template <typename T, int D, KeyGradients gradients>
void start_dkv(Launch& launch, const AttentionCall& attention, const HeadOperand& dk,
               const HeadOperand& dv) {
  using Tile = AttentionTile<T, D>;
  const AttentionShape& s = attention.o.shape;
  start_staged_tiles<T, D>(launch, "attention dk, dv", attend_dkv<T, D, gradients>,
                           tile_count(s.keys, Tile::rows) * s.key_heads * s.batches,
                           BackwardTiles<T, D>::own_bytes, attention.o, dk, dv);
}

void write_dkv(Launch& launch, const AttentionCall& attention, const Array& to_dk,
               const Array& to_dv) {
  const HeadOperand dk = to_dk ? head_operand(to_dk) : HeadOperand{};
  const HeadOperand dv = to_dv ? head_operand(to_dv) : HeadOperand{};
  attention.dispatch([&]<typename T, int D>() {
    if constexpr (both_gradients_fit<D>) {
      start_dkv<T, D, KeyGradients::Both>(launch, attention, dk, dv);
    } else {
      if (to_dk) start_dkv<T, D, KeyGradients::OfKeys>(launch, attention, dk, dv);
      if (to_dv) start_dkv<T, D, KeyGradients::OfValues>(launch, attention, dk, dv);
    }
  });
}

/// In how many sums the batches are added up: few blocks would leave most of the device idle where
/// thousands of windows share a small bias, as in Swin.
std::int64_t sums_of_batches(const Launch& launch, const AttentionOperands& o,
                             std::int64_t blocks_per_sum) {
  const std::int64_t own = o.bias.batches, shared_by = o.shape.batches / own;
  const std::int64_t wanted =
      (std::int64_t{launch.processors} * 4 + own * blocks_per_sum - 1) / (own * blocks_per_sum);
  constexpr std::int64_t least = 8;  // batches per sum: sums are written and read again
  return own * std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, shared_by / least));
}

/// By way of dense fp32 sums, each of the bias's size or, where it is repeated along tokens or
/// keys, of that many.
void write_dbias(Launch& launch, const AttentionCall& attention, const Array& dbias) {
  const AttentionShape& s = attention.o.shape;
  const BiasOperand& bias = attention.o.bias;
  attention.dispatch([&]<typename T, int D>() {
    using Tile = AttentionTile<T, D>;
    const std::int64_t tiles =
        tile_count(s.tokens, Tile::rows) * tile_count(s.keys, Tile::columns) * bias.heads;
    const std::int64_t sums = sums_of_batches(launch, attention.o, tiles);
    const Shape whole = {sums, bias.heads, s.tokens, s.keys};
    const Array sum = array_at(scratch(launch, numel(whole) * size_of(DType::Float32), slot_dbias),
                               DType::Float32, dense(whole));
    start_tiles(launch, "attention dbias", attend_dbias<T, D>, tiles * sums, Tile::threads,
                BackwardTiles<T, D>::own_bytes + Tile::stage_bytes, attention.o,
                static_cast<int>(sums), elements<float>(sum));
    Call call;
    call.pass = Pass::Accumulate;
    call.inputs = {sum}, call.outputs = {with_four_axes(dbias)};
    accumulate(call, launch);
  });
}

}  // namespace

void flash_attention_backward(const Call& call, Launch& launch) {
  if (!call.d_outputs[0]) {
    for (const Array& gradient : call.d_inputs)
      if (gradient) set_zero(launch, gradient);
    return;
  }
  const auto wanted = [&](std::size_t i) {
    return i < call.d_inputs.size() ? call.d_inputs[i] : Array{};
  };
  AttentionCall attention(call, launch);
  find_lse(call, launch, attention);
  attention.o.y = head_operand(call.outputs[0]);
  find_dots(launch, attention);
  if (wanted(0)) write_dq(launch, attention, wanted(0));
  if (wanted(1) || wanted(2)) write_dkv(launch, attention, wanted(1), wanted(2));
  if (wanted(3)) write_dbias(launch, attention, wanted(3));
}

}  // namespace tidemark::cuda
