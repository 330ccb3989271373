// Which of several algorithms for the same product is taken, given their times. Needs no header of
// the toolkit, so that it is tested without.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace tidemark::cuda {

/// cuBLASLt orders its algorithms by what it expects of them; behind the eighth hardly one wins.
inline constexpr int most_gemm_candidates = 8;
/// A later one must be faster than the library's first by more than trial runs differ from each
/// other, or two of equal speed would change places from process to process, and with them the last
/// bits of results.
inline constexpr float gemm_gain = 0.03f;

/// The fastest one's number: the first one's unless another gains. Times that are no numbers belong
/// to algorithms that did not run; none at all = times.size().
inline std::size_t chosen_gemm(std::span<const float> times) {
  std::size_t best = times.size();
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!std::isfinite(times[i])) continue;
    const bool is_first = best == times.size();
    // Against the library's order, whose head may not have run.
    if (is_first || times[i] < times[best] * (1 - gemm_gain)) best = i;
  }
  return best;
}

}  // namespace tidemark::cuda
