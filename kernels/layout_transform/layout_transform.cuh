// Elements that only move, as raw bits: in vectors of 16 bytes where both sides have them side by
// side; through a tile of shared memory where one side's neighbours are far apart on the other.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

/// A grid that is rolled: place (y, x) of it is read from (y + shift, x + shift), cyclic.
struct Roll {
  std::int64_t side = 0, shift = 0;  ///< side 0 = there is none; shift in [0, side)
  std::int64_t stride = 0;           ///< from place to place on the rolled side
  bool is_written = false;           ///< the rolled side is the one that is written

  __device__ std::int64_t offset(std::int64_t place) const {
    const std::int64_t y = place / side + shift, x = place % side + shift;
    return ((y < side ? y : y - side) * side + (x < side ? x : x - side)) * stride;
  }
};

/// Walk: what is read, what is written, the place on the grid.
template <typename Raw, int V, bool has_roll>
__global__ void move_kernel(const Raw* from, Raw* to, Walk<3> walk, Roll roll) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<V>(i);
    std::int64_t read = at.offset[0], written = at.offset[1];
    if constexpr (has_roll) (roll.is_written ? written : read) += roll.offset(at.offset[2]);
    if constexpr (V > 1) {
      if (at.valid == V) {
        *reinterpret_cast<Pack<Raw, V>*>(to + written) =
            *reinterpret_cast<const Pack<Raw, V>*>(from + read);
        continue;
      }
    }
    for (int e = 0; e < at.valid; ++e)
      to[written + e * walk.inner_stride[1]] = from[read + e * walk.inner_stride[0]];
  }
}

inline constexpr unsigned tile_side = 32, tile_rows = 8;

/// Two axes that change places: `read_axis` lies side by side where it is read, `written_axis`
/// where it is written.
struct Tiles {
  std::int64_t read_extent, read_axis_written_stride;
  std::int64_t written_extent, written_axis_read_stride;
  Divisor along_read, along_written;  ///< tiles
  std::int64_t count;                 ///< of all tiles, outer axes included
};

template <typename Raw>
__global__ void transpose_kernel(const Raw* from, Raw* to, Walk<3> outer, Tiles tiles) {
  __shared__ Raw tile[tile_side][tile_side + 1];  // one more: columns lie in different banks
  for (std::int64_t i = blockIdx.x; i < tiles.count; i += gridDim.x) {
    std::int64_t read_tile = i;
    std::int64_t written_tile = tiles.along_read.divide(read_tile);
    const std::int64_t matrix = tiles.along_written.divide(written_tile);
    const auto at = outer.template place<1>(matrix);
    const std::int64_t r = read_tile * tile_side, w = written_tile * tile_side;
    for (unsigned k = threadIdx.y; k < tile_side; k += tile_rows)
      if (r + threadIdx.x < tiles.read_extent && w + k < tiles.written_extent)
        tile[k][threadIdx.x] =
            from[at.offset[0] + (w + k) * tiles.written_axis_read_stride + r + threadIdx.x];
    __syncthreads();
    for (unsigned k = threadIdx.y; k < tile_side; k += tile_rows)
      if (w + threadIdx.x < tiles.written_extent && r + k < tiles.read_extent)
        to[at.offset[1] + (r + k) * tiles.read_axis_written_stride + w + threadIdx.x] =
            tile[threadIdx.x][k];
    __syncthreads();  // before the next tile is written there
  }
}

}  // namespace tidemark::cuda
