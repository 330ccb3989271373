// A thread per pair.
#pragma once

#include "kernels/cuda/indices.cuh"

namespace tidemark::cuda {

/// From the first of a pair to the second: of what is read, and of what is written.
struct PairSteps {
  std::int64_t read, written;
};

/// Walk over pairs: what is read, what is written.
template <typename T>
__global__ void sort_pairs_kernel(Reader<T> x, Writer<T> y, Walk<2> walk, PairSteps steps) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<1>(i);
    store_one(y, at.offset[1], load_one(x, at.offset[0]));
    store_one(y, at.offset[1] + steps.written, load_one(x, at.offset[0] + steps.read));
  }
}

struct Waves {
  Reader<AnyFloat> table;
  std::int64_t tokens, pairs, row_stride, column_stride;
  float direction;  ///< 1, or −1 to turn back
};

template <typename T>
__global__ void turn_pairs_kernel(Reader<T> x, Writer<T> y, Walk<2> walk, PairSteps steps,
                                  Waves waves) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<1>(i);
    const std::int64_t wave = i / waves.pairs % waves.tokens * waves.row_stride +
                              2 * (i % waves.pairs) * waves.column_stride;
    const float cosine = load_one(waves.table, wave);
    const float sine = waves.direction * load_one(waves.table, wave + waves.column_stride);
    const float a = load_one(x, at.offset[0]), b = load_one(x, at.offset[0] + steps.read);
    store_one(y, at.offset[1], a * cosine - b * sine);
    store_one(y, at.offset[1] + steps.written, a * sine + b * cosine);
  }
}

}  // namespace tidemark::cuda
