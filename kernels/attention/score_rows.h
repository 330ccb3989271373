// The loops over one row of a tile of scores.
#pragma once

#include <cstdint>

namespace tidemark::cpu {

/// Of a softmax over a row that comes in pieces.
struct RunningSoftmax {
  float maximum, sum;  ///< start with −∞ and 0; sum is relative to exp(maximum)
};

/// Adds a piece of the row: x becomes exp(x − the new maximum). Returns the factor for everything
/// that is relative to the old one.
float add_scores(RunningSoftmax& running, float* x, std::int64_t n);

/// maximum + log(sum)
float log_sum_exp(const RunningSoftmax& running);

/// x = exp(x − lse); all zero where lse is −∞.
void weights_from_scores(float* x, std::int64_t n, float lse);

/// dweights = weights · (dweights − offset): the gradient of the scores.
void errors_of_scores(const float* weights, float* dweights, std::int64_t n, float offset);

void scale_row(float* x, std::int64_t n, float factor);

}  // namespace tidemark::cpu
