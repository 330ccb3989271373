// Turns both halves of a row together, or its even and odd elements; axes along which the tables
// repeat have stride 0.
#include "kernels/rope/rope.cuh"
#include "kernels/rope/rope.h"

namespace tidemark::cuda {
namespace {

std::int64_t last_stride(const Array& x) { return x.strides[x.shape.rank() - 1]; }

/// The axes of the first elements of x's pairs. Tables repeat over leading axes: they are followed
/// from the last axis outwards, until all their rows have been met.
Axes<4> first_elements(const Array& x, const Array& cosine, const Array& sine, const Array& y,
                       bool neighbours) {
  const std::size_t last = x.shape.rank() - 1;
  std::array<std::array<std::int64_t, Axes<4>::most>, 2> table_strides;
  const auto follow = [&](const Array& table, std::array<std::int64_t, Axes<4>::most>& strides) {
    strides.fill(0);
    std::size_t axis = table.shape.rank() - 1;
    for (std::size_t i = last; i-- > 0 && axis-- > 0;) {
      // An axis that does not match would need its rows counted across axes of x.
      CHECK(table.shape[axis] == x.shape[i] || numel(table.shape) == table.shape.back() ||
            table.shape[axis] == 1);
      strides[i] = table.shape[axis] == 1 ? 0 : table.strides[axis];
    }
  };
  follow(cosine, table_strides[0]);
  follow(sine, table_strides[1]);
  Axes<4> axes;
  for (std::size_t i = 0; i < last; ++i)
    axes.add(x.shape[i], {x.strides[i], table_strides[0][i], table_strides[1][i], y.strides[i]});
  const auto step = [&](const Array& array) {
    const bool is_whole = array.shape.back() == x.shape.back();
    return (neighbours && is_whole ? 2 : 1) * last_stride(array);
  };
  axes.add(x.shape[last] / 2, {step(x), step(cosine), step(sine), step(y)});
  return axes;
}

template <bool is_backward>
void turn(const Call& call, Launch& launch, const char* name, const Array& x, const Array& y) {
  const Array &cosine = call.inputs[1], &sine = call.inputs[2];
  if (!y || numel(y.shape) == 0) return;
  const bool neighbours = call.settings.neighbours;
  const Axes<4> axes = merged(first_elements(x, cosine, sine, y, neighbours), 3);
  const std::array<const Array*, 4> arrays = {&x, &cosine, &sine, &y};
  const std::int64_t half = x.shape.back() / 2;
  with_dtype_of(arrays, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int V = vector_size<T>;
    RopeArguments<T> a{reader<T>(x), reader<T>(cosine), reader<T>(sine), writer<T>(y), {}, {}};
    bool vectors = is_vectorizable<4>(axes, arrays, V);
    for (std::size_t k = 0; k < 4; ++k) {
      const Array& array = *arrays[k];
      const bool is_whole = array.shape.back() == 2 * half;
      a.partner[k] = is_whole ? (neighbours ? 1 : half) * last_stride(array) : 0;
      vectors = vectors && a.partner[k] % V == 0;
    }
    a.walk = Walk<4>(axes, vectors ? V : 1);
    const auto kernel = vectors ? rope_kernel<is_backward, T, V> : rope_kernel<is_backward, T, 1>;
    start(launch, name, kernel, dim3(blocks_for(launch, a.walk.vectors)), dim3(usual_threads), 0,
          a);
  });
}

}  // namespace

void rope_forward(const Call& call, Launch& launch) {
  turn<false>(call, launch, "rope", call.inputs[0], call.outputs[0]);
}

void rope_backward(const Call& call, Launch& launch) {
  if (!call.d_outputs[0]) return fill_with(launch, call.d_inputs[0], 0);
  turn<true>(call, launch, "rope backward", call.d_outputs[0], call.d_inputs[0]);
}

}  // namespace tidemark::cuda
