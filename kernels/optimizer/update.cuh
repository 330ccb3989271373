// The optimizers beside AdamW and plain SGD: elements by pointwise kernels, states in eight bits a
// block each, Adafactor's means by reductions.
#pragma once

#include "kernels/cuda/gradients.cuh"
#include "kernels/optimizer/update_rules.h"

namespace tidemark::cuda {

/// {p, g, first, second} → {p, first, second}
struct RuleStep {
  static constexpr int inputs = 4, outputs = 3;
  UpdateRule rule;
  __device__ void operator()(const float (&in)[4], float (&out)[3]) const {
    out[0] = in[0], out[1] = in[2], out[2] = in[3];
    rule(out[0], in[1], out[1], out[2]);
  }
};

/// {p, g, master, m, v} → {p, master, m, v}
struct MasterStep {
  static constexpr int inputs = 5, outputs = 4;
  UpdateRule rule;
  bool is_first;  ///< there is no master yet
  __device__ void operator()(const float (&in)[5], float (&out)[4]) const {
    const float g = in[1], before = is_first ? in[0] : in[2];
    const float m = rule.beta1 * in[3] + (1 - rule.beta1) * g;
    const float v = rule.beta2 * in[4] + (1 - rule.beta2) * (g * g);
    const float p =
        before * (1 - rule.decay) - rule.step * m / (sqrtf(v) * rule.root + rule.epsilon);
    out[0] = p, out[1] = p, out[2] = m, out[3] = v;
  }
};

/// The codes' numbers; arguments of a kernel have room for both.
struct CodeNumbers {
  float of_first[256], of_second[256];
};

/// As nearest_code() of dynamic_map.h, and the sign of a code is that of its number.
__device__ inline std::uint8_t signed_code(const float (&numbers)[256], float share, float value) {
  int low = 0, high = 256;  // the first that is not below
  while (low < high) {
    const int middle = (low + high) / 2;
    if (numbers[middle] < share)
      low = middle + 1;
    else
      high = middle;
  }
  int code = low;
  if (low == 256)
    code = 255;
  else if (low > 0)
    code = share - numbers[low - 1] <= numbers[low] - share ? low - 1 : low;
  if ((numbers[code] < 0) != (__float_as_uint(value) >> 31 != 0))
    code += value > 0 ? 1 : code > 0 ? -1 : 0;
  return static_cast<std::uint8_t>(code);
}

/// The largest of the block's values; all threads get it. Takes a word per warp.
__device__ inline float block_max(float value, float* of_warp) {
  for (int bits = 1; bits < static_cast<int>(warp_size); bits *= 2) {
    const float other = __shfl_xor_sync(whole_warp, value, bits);
    value = other > value ? other : value;
  }
  __syncthreads();  // what was there before has been read
  if (threadIdx.x % warp_size == 0) of_warp[threadIdx.x / warp_size] = value;
  __syncthreads();
  for (unsigned w = 0; w < state_block / warp_size; ++w)
    value = of_warp[w] > value ? of_warp[w] : value;
  return value;
}

/// A block of threads per block of the state, a thread per element.
__global__ void update_blocks_kernel(UpdateRule rule, StateInBlocks state, bool has_second,
                                     CodeNumbers numbers, float* p, const float* g) {
  __shared__ float of_warp[state_block / warp_size];
  for (std::int64_t block = blockIdx.x; block < state.blocks; block += gridDim.x) {
    const std::int64_t i = block * state_block + threadIdx.x;
    const bool is_there = i < state.count;
    float m = 0, v = 0;
    if (is_there) {
      m = numbers.of_first[state.codes[i]] * state.factors[block];
      if (has_second)
        v = numbers.of_second[state.codes[state.count + i]] * state.factors[state.blocks + block];
      rule(p[i], g[i], m, v);
    }
    const float most_m = block_max(fabsf(m), of_warp), most_v = block_max(fabsf(v), of_warp);
    if (is_there) {
      state.codes[i] = signed_code(numbers.of_first, most_m > 0 ? m / most_m : 0, m);
      if (has_second)
        state.codes[state.count + i] =
            signed_code(numbers.of_second, most_v > 0 ? v / most_v : 0, v);
    }
    __syncthreads();  // everyone has read the factors
    if (threadIdx.x != 0) continue;
    state.factors[block] = most_m;
    if (has_second) state.factors[state.blocks + block] = most_v;
  }
}

/// x²·scale + what is added to each square.
struct SquareFunction {
  static constexpr int inputs = 1;
  float scale, added;
  __device__ float operator()(const float (&x)[1]) const { return (x[0] * x[0] + added) * scale; }
};

struct ShareFunction {
  static constexpr int inputs = 1;
  float scale;
  __device__ float operator()(const float (&x)[1]) const { return x[0] * scale; }
};

/// {mean, mean of this step} → the new mean
struct FreshMean {
  static constexpr int inputs = 2;
  float fresh;
  __device__ float operator()(const float (&x)[2]) const { return x[0] + fresh * (x[1] - x[0]); }
};

/// {mean of the row, of the column, of all rows, g} → the step before it is bounded.
struct FactoredStep {
  static constexpr int inputs = 4;
  FactoredRule rule;
  bool is_matrix;  ///< else the row's is that of the element
  __device__ float operator()(const float (&x)[4]) const {
    const float all = x[2] > rule.least ? x[2] : rule.least;
    const float estimate = is_matrix ? x[0] / all * x[1] : x[0];
    const float least = rule.least * rule.least;
    return x[3] / sqrtf(estimate > least ? estimate : least);
  }
};

struct SquaredStep {
  static constexpr int inputs = 4;
  FactoredStep step;
  float scale;
  __device__ float operator()(const float (&x)[4]) const {
    const float y = step(x);
    return y * y * scale;
  }
};

/// {row, column, rows, g, p, mean square of the steps, of p} → p
struct BoundedStep {
  static constexpr int inputs = 7;
  FactoredStep step;
  __device__ float operator()(const float (&x)[7]) const {
    const float of_step[4] = {x[0], x[1], x[2], x[3]};
    const FactoredRule& rule = step.rule;
    float size = rule.rate;
    const float own = sqrtf(x[6]), bound = sqrtf(x[5]);
    if (rule.is_torch) size *= own > rule.least_size ? own : rule.least_size;
    if (bound > 1) size /= bound;
    return x[4] * (1 - rule.decay) - size * step(of_step);
  }
};

}  // namespace tidemark::cuda
