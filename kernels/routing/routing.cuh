// A thread per pick, per number of a one-hot row, per element of what is added; one block finds the
// visits of an expert, because their order is that of the tokens.
#pragma once

#include "kernels/cuda/indices.cuh"

namespace tidemark::cuda {

/// Walk: places, values.
template <typename T>
struct EvenTopKArguments {
  Reader<T> x;
  Writer<T> values;
  std::int64_t* places = nullptr;
  Walk<2> walk;
  std::int64_t k = 1, n = 1, row_stride = 0, column_stride = 0;
};

template <typename T>
__global__ void even_top_k_kernel(EvenTopKArguments<T> a) {
  for (std::int64_t i = thread_of_grid(); i < a.walk.vectors; i += threads_of_grid()) {
    const auto at = a.walk.template place<1>(i);
    const std::int64_t place = i % a.n;
    a.places[at.offset[0]] = place;
    store_one(a.values, at.offset[1],
              load_one(a.x, i / a.k * a.row_stride + place * a.column_stride));
  }
}

/// Walk: y, the places.
__global__ void one_hot_kernel(const std::int64_t* places, std::int64_t* y, Walk<2> walk,
                               std::int64_t n) {
  for (std::int64_t i = thread_of_grid(); i < walk.vectors; i += threads_of_grid()) {
    const auto at = walk.place<1>(i);
    y[at.offset[0]] = places[at.offset[1]] == i % n ? 1 : 0;
  }
}

struct FindVisitsArguments {
  const std::int64_t* chosen = nullptr;  ///< of the expert
  Walk<1> walk;                          ///< over [tokens, slots]
  std::int64_t slots = 1;
  std::int64_t* found = nullptr;
  std::int64_t room = 0, row_stride = 2, column_stride = 1;
};

/// One block, round after round of as many visits as it has threads: each counts those before it.
__global__ void find_visits_kernel(FindVisitsArguments a) {
  __shared__ unsigned of_warp[usual_threads / warp_size];
  std::int64_t before = 0;
  for (std::int64_t begin = 0; begin < a.walk.vectors; begin += usual_threads) {
    const std::int64_t i = begin + threadIdx.x;
    const bool is_one = i < a.walk.vectors && a.chosen[a.walk.place<1>(i).offset[0]] == 1;
    unsigned rank = is_one ? 1 : 0;
    const unsigned lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
    for (unsigned step = 1; step < warp_size; step *= 2) {
      const unsigned other = __shfl_up_sync(whole_warp, rank, step);
      if (lane >= step) rank += other;
    }
    if (lane == warp_size - 1) of_warp[warp] = rank;
    __syncthreads();
    std::int64_t place = before + rank - 1;
    for (unsigned w = 0; w < usual_threads / warp_size; ++w) {
      if (w < warp) place += of_warp[w];
      before += of_warp[w];
    }
    __syncthreads();  // the counts have been read
    if (!is_one) continue;
    if (place >= a.room) __trap();
    a.found[place * a.row_stride] = i / a.slots;
    a.found[place * a.row_stride + a.column_stride] = i % a.slots;
  }
  if (threadIdx.x == 0 && before != a.room) __trap();
}

struct PairStrides {
  std::int64_t visit, column;                             ///< of the places
  std::int64_t rows, columns, row_stride, column_stride;  ///< of what they name

  __device__ std::int64_t offset(const std::int64_t* places, std::int64_t i) const {
    return checked_place(places[i * visit], rows) * row_stride +
           checked_place(places[i * visit + column], columns) * column_stride;
  }
};

template <typename T>
__global__ void index_pairs_kernel(Reader<T> x, const std::int64_t* places, Writer<T> y,
                                   std::int64_t visits, std::int64_t y_stride, PairStrides of) {
  for (std::int64_t i = thread_of_grid(); i < visits; i += threads_of_grid())
    store_one(y, i * y_stride, load_one(x, of.offset(places, i)));
}

template <typename T>
__global__ void index_pairs_backward_kernel(Reader<T> dy, const std::int64_t* places, Writer<T> dx,
                                            std::int64_t visits, std::int64_t dy_stride,
                                            PairStrides of) {
  for (std::int64_t i = thread_of_grid(); i < visits; i += threads_of_grid())
    store_one(dx, of.offset(places, i), load_one(dy, i * dy_stride));
}

/// Walk: y, the place of its row.
template <typename T>
struct IndexAddArguments {
  Reader<T> y, before;
  Writer<T> sum;
  const std::int64_t* places = nullptr;
  Walk<2> walk;
  std::int64_t rows = 1, width = 1, row_stride = 0, column_stride = 0;
};

template <typename T>
__global__ void index_add_kernel(IndexAddArguments<T> a) {
  for (std::int64_t i = thread_of_grid(); i < a.walk.vectors; i += threads_of_grid()) {
    const auto at = a.walk.template place<1>(i);
    const std::int64_t row = checked_place(a.places[at.offset[1]], a.rows);
    const std::int64_t to = row * a.row_stride + i % a.width * a.column_stride;
    store_one(a.sum, to, load_one(a.before, to) + load_one(a.y, at.offset[0]));
  }
}

}  // namespace tidemark::cuda
