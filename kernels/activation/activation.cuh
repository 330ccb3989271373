// Activations and their derivatives in fp32, and the kernels that keep two bits per element.
#pragma once

#include "kernels/cuda/gradients.cuh"

namespace tidemark::cuda {

inline constexpr float bell_height = 0.39894228f;  // 1/√(2π)
inline constexpr float tanh_scale = 0.79788456f;   // √(2/π)
inline constexpr float tanh_cubic = 0.044715f;     // Hendrycks and Gimpel, arXiv 1606.08415
inline constexpr float tanh_slope = 3 * tanh_cubic;

/// e^(−x²/2), by −log2(e)/2.
__device__ inline float bell_of(float x) { return approximate_power_of_two(-0.72134752f * x * x); }

/// The normal distribution's Φ. Beyond |x| lies e^(−x²/2) · Q(t), t = 1/(1 + 0.28·|x|), as in
/// Abramowitz and Stegun 7.1.26: no branch and no choice among polynomials, of which erff() has
/// nine per element. Q: least squares on [0, 13.5] with weight e^(−x²/2) · max(1, |x|), more of it
/// where the error was largest, sixty times; what is left, times max(1, |x|), is at most 1.2e-8.
__device__ inline float normal_cdf(float x, float bell) {
  const float t = approximate_reciprocal(1.0f + 0.28f * fabsf(x));
  float q = -0.10632674f;
  q = q * t + 0.39205988f;
  q = q * t - 0.24065828f;
  q = q * t + 0.27196366f;
  q = q * t + 0.06623285f;
  q = q * t + 0.11672862f;
  const float beyond = q * t * bell;
  return x < 0.0f ? beyond : 1.0f - beyond;
}
__device__ inline float normal_cdf(float x) { return normal_cdf(x, bell_of(x)); }
__device__ inline float logistic(float x) {
  return approximate_reciprocal(1.0f + approximate_power(-x));
}
__device__ inline float tanh_of_gelu(float x) {
  return tanhf(tanh_scale * (x + tanh_cubic * x * x * x));
}
__device__ inline float gelu_of(float x) { return x * normal_cdf(x); }
__device__ inline float silu_of(float x) { return x * logistic(x); }

struct GeluErf {
  static constexpr int inputs = 1;
  __device__ float operator()(const float (&x)[1]) const { return gelu_of(x[0]); }
};
struct GeluTanh {
  static constexpr int inputs = 1;
  __device__ float operator()(const float (&x)[1]) const {
    // x · σ(2u): x/2 · (1 + tanh u) without its cancellation.
    return x[0] * logistic(2.0f * tanh_scale * (x[0] + tanh_cubic * x[0] * x[0] * x[0]));
  }
};
struct Silu {
  static constexpr int inputs = 1;
  __device__ float operator()(const float (&x)[1]) const { return silu_of(x[0]); }
};
struct Tanh {
  static constexpr int inputs = 1;
  __device__ float operator()(const float (&x)[1]) const { return tanhf(x[0]); }
};
struct Sigmoid {
  static constexpr int inputs = 1;
  __device__ float operator()(const float (&x)[1]) const { return logistic(x[0]); }
};
struct Relu {
  static constexpr int inputs = 1;
  __device__ float operator()(const float (&x)[1]) const { return x[0] <= 0.0f ? 0.0f : x[0]; }
};

// Gradients: of {dy, x}, those of Tanh, Sigmoid and Relu of {dy, y}.
struct GeluErfGradient {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&in)[2]) const {
    const float x = in[1], bell = bell_of(x);
    return in[0] * (normal_cdf(x, bell) + x * bell_height * bell);
  }
};
// σ(2u) + x · 2σ(2u)·σ(−2u) · du/dx: nothing cancels where tanh is nearly 1.
struct GeluTanhGradient {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&in)[2]) const {
    const float x = in[1], two_u = 2.0f * tanh_scale * (x + tanh_cubic * x * x * x);
    const float tail = approximate_power(-fabsf(two_u));
    const float larger = approximate_reciprocal(1.0f + tail);
    const float sigma = two_u < 0.0f ? tail * larger : larger;
    const float slope = tanh_scale * (1.0f + tanh_slope * x * x);
    return in[0] * (sigma + x * 2.0f * tail * larger * larger * slope);
  }
};
struct SiluGradient {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&in)[2]) const {
    const float s = logistic(in[1]);
    return in[0] * s * (1.0f + in[1] * (1.0f - s));
  }
};
struct TanhGradient {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&in)[2]) const { return in[0] * (1.0f - in[1] * in[1]); }
};

struct SigmoidGradient {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&in)[2]) const { return in[0] * in[1] * (1.0f - in[1]); }
};
struct ReluGradient {
  static constexpr int inputs = 2;
  __device__ float operator()(const float (&in)[2]) const { return in[1] <= 0.0f ? 0.0f : in[0]; }
};

/// x → y, tanh(u), x/2, 1 + tanh(u)
struct GeluComposed {
  static constexpr int inputs = 1, outputs = 4;
  __device__ void operator()(const float (&x)[1], float (&y)[4]) const {
    y[1] = tanh_of_gelu(x[0]);
    y[2] = 0.5f * x[0];
    y[3] = 1.0f + y[1];
    y[0] = y[2] * y[3];
  }
};
/// of {dy, x, tanh(u), x/2, 1 + tanh(u)}
struct GeluComposedGradient {
  static constexpr int inputs = 5;
  __device__ float operator()(const float (&in)[5]) const {
    const float slope = tanh_scale * (1.0f + tanh_slope * in[1] * in[1]);
    return in[0] * (0.5f * in[4] + in[3] * (1.0f - in[2] * in[2]) * slope);
  }
};

/// The step function that stands for the derivative: the slope changes at each step.
/// Constants: arXiv 2406.16282, as its published kernels have them.
struct ReGelu2 {
  static constexpr float step0 = -3.1858810036855245f, step1 = -0.001178821281161997f,
                         step2 = 3.190832613414926f;
  static constexpr float change0 = -0.04922261145617846f, change1 = 1.0979632065417297f,
                         change2 = -0.048740595085551286f;
  __device__ static float forward(float x) { return gelu_of(x); }
};
struct ReSilu2 {
  static constexpr float step0 = -6.3050461001646445f, step1 = -0.0008684942046214787f,
                         step2 = 6.325815242089708f;
  static constexpr float change0 = -0.04060357190528599f, change1 = 1.080925428529668f,
                         change2 = -0.040321856624382146f;
  __device__ static float forward(float x) { return silu_of(x); }
};

/// How many steps lie below x; of NaN none.
template <typename Steps>
__device__ inline unsigned code_of(float x) {
  return static_cast<unsigned>(x > Steps::step0) + static_cast<unsigned>(x > Steps::step1) +
         static_cast<unsigned>(x > Steps::step2);
}
/// By the two bits from `bit` on.
template <typename Steps>
__device__ inline float slope_of(unsigned codes, int bit) {
  constexpr float one = Steps::change0, two = one + Steps::change1, three = two + Steps::change2;
  const bool is_odd = (codes >> bit & 1u) != 0, is_upper = (codes >> bit & 2u) != 0;
  const float lower = is_odd ? one : 0.0f, upper = is_odd ? three : two;
  return is_upper ? upper : lower;
}

/// Units of U elements, numbered row-major: whole bytes of codes belong to one thread. Where the
/// arrays are dense a unit is one vector; else its elements are looked up one by one.
template <bool is_dense, int U>
__device__ inline Place<2> part_of_unit(const Walk<2>& walk, std::int64_t unit, int e) {
  if constexpr (is_dense)
    return walk.template place<U>(unit);
  else
    return walk.template place<1>(unit * U + e);
}

enum class Direction : std::uint8_t { Forward, Backward };

template <int U>
__device__ inline unsigned load_codes(const std::uint8_t* codes, std::int64_t unit, int valid) {
  if (U == 8 && valid == U) return reinterpret_cast<const std::uint16_t*>(codes)[unit];
  unsigned packed = 0;
  for (int byte = 0; 4 * byte < valid; ++byte)
    packed |= static_cast<unsigned>(codes[unit * (U / 4) + byte]) << (8 * byte);
  return packed;
}
template <int U>
__device__ inline void store_codes(std::uint8_t* codes, std::int64_t unit, int valid,
                                   unsigned packed) {
  if (U == 8 && valid == U)
    reinterpret_cast<std::uint16_t*>(codes)[unit] = static_cast<std::uint16_t>(packed);
  else
    for (int byte = 0; 4 * byte < valid; ++byte)
      codes[unit * (U / 4) + byte] = static_cast<std::uint8_t>(packed >> (8 * byte));
}

/// x → y and codes, or dy and codes → dx, where both lie in one piece of whole vectors: the loads
/// of two vectors are under way before the first is used.
template <typename Steps, Direction direction, typename T>
__global__ void dense_coded_kernel(const T* from, T* to, std::uint8_t* codes,
                                   std::int64_t vectors) {
  constexpr int V = vector_size<T>, each = 2;
  using Codes = std::conditional_t<V == 8, std::uint16_t, std::uint8_t>;
  auto* const of_vector = reinterpret_cast<Codes*>(codes);
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x * each;
  std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x * each + threadIdx.x;
  for (; first < vectors; first += step) {
    Pack<T, V> in[each] = {};
    unsigned packed_codes[each] = {};
    TIDEMARK_UNROLL
    for (int u = 0; u < each; ++u) {
      const std::int64_t i = first + u * std::int64_t{blockDim.x};
      if (i >= vectors) continue;
      in[u] = reinterpret_cast<const Pack<T, V>*>(from)[i];
      if constexpr (direction == Direction::Backward) packed_codes[u] = of_vector[i];
    }
    TIDEMARK_UNROLL
    for (int u = 0; u < each; ++u) {
      const std::int64_t i = first + u * std::int64_t{blockDim.x};
      if (i >= vectors) continue;
      float out[V];
      TIDEMARK_UNROLL
      for (int e = 0; e < V; ++e) {
        const float x = value_in(in[u], e);
        if constexpr (direction == Direction::Forward) {
          out[e] = Steps::forward(x);
          packed_codes[u] |= code_of<Steps>(x) << (2 * e);
        } else {
          out[e] = x * slope_of<Steps>(packed_codes[u], 2 * e);
        }
      }
      reinterpret_cast<Pack<T, V>*>(to)[i] = packed<T>(out);
      if constexpr (direction == Direction::Forward)
        of_vector[i] = static_cast<Codes>(packed_codes[u]);
    }
  }
}

/// The same of arrays that lie anyhow.
template <typename Steps, Direction direction, typename T, int U, bool is_dense>
__global__ void coded_kernel(Reader<T> from, Writer<T> to, std::uint8_t* codes, Walk<2> walk,
                             std::int64_t count) {
  constexpr int parts = is_dense ? 1 : U, V = U / parts;
  const std::int64_t units = (count + U - 1) / U;
  for (std::int64_t unit = thread_of_grid(); unit < units; unit += threads_of_grid()) {
    const int valid = count - unit * U < U ? static_cast<int>(count - unit * U) : U;
    unsigned packed = 0;
    if constexpr (direction == Direction::Backward) packed = load_codes<U>(codes, unit, valid);
    for (int part = 0; part < parts; ++part) {
      if (part >= valid) break;
      const Place<2> at = part_of_unit<is_dense, U>(walk, unit, part);
      float in[V], out[V];
      load<V>(from, at.offset[0], walk.inner_stride[0], at.valid, in);
      for (int e = 0; e < V; ++e) {
        const int bit = 2 * (part + e);
        if constexpr (direction == Direction::Forward) {
          out[e] = Steps::forward(in[e]);
          if (e < at.valid) packed |= code_of<Steps>(in[e]) << bit;
        } else {
          out[e] = in[e] * slope_of<Steps>(packed, bit);
        }
      }
      store<V>(to, at.offset[1], walk.inner_stride[1], at.valid, out);
    }
    if constexpr (direction == Direction::Forward) store_codes<U>(codes, unit, valid, packed);
  }
}

}  // namespace tidemark::cuda
