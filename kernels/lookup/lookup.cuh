// A thread per element that is looked up; back, one per element that may have been: it goes through
// the places of its line, so that each sum has an order, at the price of as many looks as a line
// has places.
#pragma once

#include "kernels/cuda/indices.cuh"

namespace tidemark::cuda {

/// Walk: y, the places, the line of x.
template <typename T>
struct GatherArguments {
  Reader<T> x;
  Writer<T> y;
  const std::int64_t* places = nullptr;
  Walk<3> walk;
  std::int64_t n = 1, stride = 0;  ///< of x along the axis
};

template <typename T>
__global__ void gather_kernel(GatherArguments<T> a) {
  for (std::int64_t i = thread_of_grid(); i < a.walk.vectors; i += threads_of_grid()) {
    const auto at = a.walk.template place<1>(i);
    const std::int64_t place = checked_place(a.places[at.offset[1]], a.n);
    store_one(a.y, at.offset[0], load_one(a.x, at.offset[2] + place * a.stride));
  }
}

/// Walk: dx, the lines of the places and of dy, the place in dx's line.
template <typename T>
struct AddBackArguments {
  Reader<T> dy;
  Writer<T> dx;
  const std::int64_t* places = nullptr;
  Walk<4> walk;
  std::int64_t taken = 0, place_stride = 0, dy_stride = 0;
};

template <typename T>
__global__ void add_back_kernel(AddBackArguments<T> a) {
  for (std::int64_t i = thread_of_grid(); i < a.walk.vectors; i += threads_of_grid()) {
    const auto at = a.walk.template place<1>(i);
    float sum = 0;
    for (std::int64_t t = 0; t < a.taken; ++t)
      if (a.places[at.offset[1] + t * a.place_stride] == at.offset[3])
        sum += load_one(a.dy, at.offset[2] + t * a.dy_stride);
    store_one(a.dx, at.offset[0], sum);
  }
}

}  // namespace tidemark::cuda
