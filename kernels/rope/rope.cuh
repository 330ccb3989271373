// Rotary embedding: a thread turns the first elements of pairs together with the second ones.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

template <typename T>
struct RopeArguments {
  Reader<T> x, cosine, sine;
  Writer<T> y;
  Walk<4> walk;                  ///< over the first ones of pairs: x, cosine, sine, y
  std::int64_t partner[4] = {};  ///< from an element to that which it turns with
};

template <bool is_backward, typename T, int V>
__global__ void rope_kernel(RopeArguments<T> a) {
  for (std::int64_t i = thread_of_grid(); i < a.walk.vectors; i += threads_of_grid()) {
    const auto at = a.walk.template place<V>(i);
    const auto read = [&](const Reader<T>& from, int k, bool second, float(&out)[V]) {
      load<V>(from, at.offset[k] + (second ? a.partner[k] : 0), a.walk.inner_stride[k], at.valid,
              out);
    };
    float x1[V], x2[V], c1[V], c2[V], s1[V], s2[V], y1[V], y2[V];
    read(a.x, 0, false, x1), read(a.x, 0, true, x2);
    read(a.cosine, 1, false, c1), read(a.cosine, 1, true, c2);
    read(a.sine, 2, false, s1), read(a.sine, 2, true, s2);
    for (int e = 0; e < V; ++e) {
      y1[e] = is_backward ? x1[e] * c1[e] + x2[e] * s2[e] : x1[e] * c1[e] - x2[e] * s1[e];
      y2[e] = is_backward ? x2[e] * c2[e] - x1[e] * s1[e] : x2[e] * c2[e] + x1[e] * s2[e];
    }
    store<V>(a.y, at.offset[3], a.walk.inner_stride[3], at.valid, y1);
    store<V>(a.y, at.offset[3] + a.partner[3], a.walk.inner_stride[3], at.valid, y2);
  }
}

}  // namespace tidemark::cuda
