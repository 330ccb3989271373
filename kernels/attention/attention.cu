// Launches the forward of attention.
#include "kernels/attention/attention_launch.cuh"

namespace tidemark::cuda {

void attend_tiles(Launch& launch, const AttentionCall& attention) {
  const AttentionShape& s = attention.o.shape;
  attention.dispatch([&]<typename T, int D>() {
    using Tile = AttentionTile<T, D>;
    start_staged_tiles<T, D>(launch, "attention", attend<T, D>,
                             tile_count(s.tokens, Tile::rows) * s.heads * s.batches,
                             ForwardTiles<T, D>::own_bytes, attention.o);
  });
}

void flash_attention_forward(const Call& call, Launch& launch) {
  AttentionCall attention(call, launch);
  attention.o.y = head_operand(call.outputs[0]);
  const Array lse = call.outputs.size() > 1 ? call.outputs[1] : Array{};
  const bool is_direct = lse && lse.dtype == DType::Float32 && is_dense(lse.layout());
  if (lse) attention.o.lse = is_direct ? elements<float>(lse) : attention.per_query(4);
  attend_tiles(launch, attention);
  if (lse && !is_direct)
    convert(
        launch,
        array_at(reinterpret_cast<std::byte*>(attention.o.lse), DType::Float32, dense(lse.shape)),
        lse);
}

}  // namespace tidemark::cuda
