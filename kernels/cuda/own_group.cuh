// Arrays of Mesa's groups that lie in one piece, by threads that each stay in one group: what there
// is to know of it, a thread looks up once. A thread's vectors lie a whole grid apart, and a grid's
// vectors are whole periods, after which the groups come again. On an H200 codes are made so at 80
// to 90 % of the card's own copy, and at 60 to 70 where each vector looks for its group.
#pragma once

#include "kernels/cuda/watch.cuh"

namespace tidemark::cuda {

/// No vector of V elements from the array's first one on has elements of two groups.
inline bool has_groups_of_vectors(const Array& array, int vector) {
  const Groups& groups = array.groups;
  const std::int64_t first = (array.data - groups.first) / size_of(array.dtype);
  return groups.bits == 8 && groups.stretch % vector == 0 && first % vector == 0;
}

/// An element and the one so many further on are of one group, all along the array.
inline bool comes_again_after(const Groups& groups, std::int64_t elements) {
  return elements % (groups.stretch * groups.count) == 0;
}

/// Blocks for so many vectors, about `wanted` of them: as many as make whole periods, or so many
/// that no thread has a second vector.
inline unsigned own_group_blocks(std::int64_t wanted, std::int64_t vectors, int vector,
                                 const Groups& groups, unsigned threads = usual_threads) {
  const std::int64_t enough = (vectors + threads - 1) / threads;
  const std::int64_t whole = blocks_of_a_period(groups, vector, threads);
  if (enough <= wanted || enough <= whole) return static_cast<unsigned>(enough);
  return static_cast<unsigned>(wanted <= whole ? whole : wanted / whole * whole);
}

/// Starts a kernel whose threads watch their own groups, as many blocks as run at once.
template <typename... Parameters, typename... Arguments>
void start_watching(const Launch& launch, const char* name, void (*kernel)(Parameters...),
                    std::int64_t vectors, int vector, const Groups& groups,
                    const Arguments&... arguments) {
  const std::int64_t at_once =
      std::int64_t{launch.processors} * resident_blocks(kernel, watching_threads, 0);
  start(launch, name, kernel,
        dim3(own_group_blocks(at_once, vectors, vector, groups, watching_threads)),
        dim3(watching_threads), 0, arguments...);
}

/// Calls take(i, u) for `each` of the thread's vectors, u from 0 on, then use(i, u) for the same
/// ones: the loads of all of them are under way before the first is used.
template <int each, typename Take, typename Use>
__device__ inline void for_own_vectors(std::int64_t vectors, const Take& take, const Use& use) {
  const std::int64_t step = threads_of_grid();
  for (std::int64_t first = thread_of_grid(); first < vectors; first += step * each) {
    TIDEMARK_UNROLL
    for (int u = 0; u < each; ++u)
      if (first + u * step < vectors) take(first + u * step, u);
    TIDEMARK_UNROLL
    for (int u = 0; u < each; ++u)
      if (first + u * step < vectors) use(first + u * step, u);
  }
}

}  // namespace tidemark::cuda
