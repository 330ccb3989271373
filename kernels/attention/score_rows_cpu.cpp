// A row's softmax in pieces: maximum and sum are carried on; loops in vector lanes.
#include <cmath>
#include <limits>

#include "kernels/attention/score_rows.h"
#include "kernels/cpu/elementary.h"
#include "kernels/cpu/sums.h"

namespace tidemark::cpu {
namespace {

constexpr std::int64_t lanes = 16;  // floats in the widest registers
constexpr float nothing = -std::numeric_limits<float>::infinity();

// NaNs may be passed over here: the sum of the exponentials shows them.
TIDEMARK_CLONES float maximum_of(const float* x, std::int64_t n) {
  float best[lanes];
  for (float& lane : best) lane = nothing;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      best[lane] = x[i + lane] > best[lane] ? x[i + lane] : best[lane];
  for (; i < n; ++i) best[0] = x[i] > best[0] ? x[i] : best[0];
  float largest = nothing;
  for (const float lane : best) largest = lane > largest ? lane : largest;
  return largest;
}

TIDEMARK_CLONES void exp_row(float* x, std::int64_t n, float offset) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = exp_of(x[i] - offset);
}

TIDEMARK_CLONES void scale_all(float* x, std::int64_t n, float factor) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

TIDEMARK_CLONES void multiply_shifted(const float* __restrict weights, float* __restrict dweights,
                                      std::int64_t n, float offset) {
  for (std::int64_t i = 0; i < n; ++i) dweights[i] = weights[i] * (dweights[i] - offset);
}

}  // namespace

float add_scores(RunningSoftmax& running, float* x, std::int64_t n) {
  const float largest = maximum_of(x, n);
  const float maximum = largest > running.maximum ? largest : running.maximum;
  // Where nothing is visible yet, −∞ − −∞ would be NaN; 0 leaves every weight 0.
  exp_row(x, n, maximum == nothing ? 0.0f : maximum);
  const float factor = maximum == nothing ? 1.0f : exp_of(running.maximum - maximum);
  running = {maximum, running.sum * factor + sum(x, n)};
  return factor;
}

float log_sum_exp(const RunningSoftmax& running) { return running.maximum + std::log(running.sum); }

void weights_from_scores(float* x, std::int64_t n, float lse) {
  exp_row(x, n, lse == nothing ? 0.0f : lse);
}

void errors_of_scores(const float* weights, float* dweights, std::int64_t n, float offset) {
  multiply_shifted(weights, dweights, n, offset);
}

void scale_row(float* x, std::int64_t n, float factor) { scale_all(x, n, factor); }

}  // namespace tidemark::cpu
