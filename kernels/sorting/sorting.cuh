// A thread per element; sorting by counting what stands before each, which has an order of its own.
#pragma once

#include "kernels/cuda/indices.cuh"

namespace tidemark::cuda {

/// Walk: the mask, element by element of [rows, n].
__global__ void hidden_groups_kernel(std::uint8_t* mask, Walk<1> walk, std::int64_t n,
                                     std::int64_t of_group, std::int64_t picks) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    bool is_hidden = true;
    for (std::int64_t slot = 0; slot < picks; ++slot)
      if ((i / n * picks + slot) % n / of_group == i % n / of_group) is_hidden = false;
    mask[walk.place<1>(i).offset[0]] = is_hidden ? 1 : 0;
  }
}

/// Walk: what is written, what is read, the mask.
template <typename T>
__global__ void masked_fill_kernel(Reader<T> x, const std::uint8_t* mask, Writer<T> y, Walk<3> walk,
                                   float value) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<1>(i);
    const float kept = load_one(x, at.offset[1]);
    store_one(y, at.offset[0], mask[at.offset[2]] != 0 ? value : kept);
  }
}

__device__ inline float sorted_value(const std::int64_t* x, std::int64_t at) {
  return static_cast<float>(x[at]);  // places, below 2^24
}
__device__ inline float sorted_value(const Reader<AnyFloat>& x, std::int64_t at) {
  return load_one(x, at);
}
__device__ inline void keep_value(std::int64_t* y, std::int64_t at, const std::int64_t* x,
                                  std::int64_t from) {
  if (y != nullptr) y[at] = x[from];
}
__device__ inline void keep_value(const Writer<AnyFloat>& y, std::int64_t at,
                                  const Reader<AnyFloat>& x, std::int64_t from) {
  store_one(y, at, load_one(x, from));
}

/// Rows of a sort: how far apart they are in what is read, the places and the values.
struct SortRows {
  std::int64_t rows, n, read, places, values;
};

/// Walk over one row: what is read, the places, the values.
template <typename Read, typename Write>
__global__ void argsort_kernel(Read x, std::int64_t* places, Write values, Walk<3> walk,
                               SortRows of) {
  for (std::int64_t i = thread_of_grid(); i < of.rows * of.n; i += threads_of_grid()) {
    const std::int64_t row = i / of.n, element = i % of.n, first = row * of.read;
    const std::int64_t own = first + walk.template place<1>(element).offset[0];
    const float value = sorted_value(x, own);
    std::int64_t before = 0;
    for (std::int64_t k = 0; k < of.n; ++k) {
      const float other = sorted_value(x, first + walk.template place<1>(k).offset[0]);
      before += other < value || (other == value && k < element) ? 1 : 0;
    }
    const auto at = walk.template place<1>(before);
    places[row * of.places + at.offset[1]] = element;
    keep_value(values, row * of.values + at.offset[2], x, own);
  }
}

/// Walk: y, x.
__global__ void floor_divide_kernel(const std::int64_t* x, std::int64_t* y, Walk<2> walk,
                                    std::int64_t divisor) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.place<1>(i);
    y[at.offset[0]] = x[at.offset[1]] / divisor;
  }
}

struct PutGeometry {
  std::int64_t rows, width, row_stride, column_stride;  ///< of what is written
};

/// Walk: x, the place of its row.
template <typename T>
__global__ void put_rows_kernel(Reader<T> x, const std::int64_t* places, Writer<T> y, Walk<2> walk,
                                PutGeometry of) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.template place<1>(i);
    const std::int64_t row = checked_place(places[at.offset[1]], of.rows);
    store_one(y, row * of.row_stride + i % of.width * of.column_stride, load_one(x, at.offset[0]));
  }
}

}  // namespace tidemark::cuda
