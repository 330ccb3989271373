// Gelu, GeluComposed, Silu, Tanh, Sigmoid and Relu on the CPU. The loops stand alone so that they
// can be compiled for several instruction sets; map() feeds them with runs of fp32.
#include "kernels/activation/activation_loops.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/elementary.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/map.h"

namespace tidemark::cpu {
namespace {

constexpr float beta = 0.797884561f;  // √(2/π)
constexpr float kappa = 0.044715f;
constexpr float inverse_root_2_pi = 0.398942280f;

TIDEMARK_INLINE float inner(float x) { return beta * (x + kappa * x * x * x); }
TIDEMARK_INLINE float inner_slope(float x) { return beta * (1.0f + 3.0f * kappa * x * x); }

TIDEMARK_CLONES void gelu_loop(std::int64_t n, float* __restrict y, const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * normal(x[i]).cdf;
}

TIDEMARK_CLONES void gelu_gradient_loop(std::int64_t n, float* __restrict dx,
                                        const float* __restrict dy, const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Normal at = normal(x[i]);
    dx[i] = dy[i] * (at.cdf + x[i] * (at.bell * inverse_root_2_pi));
  }
}

TIDEMARK_CLONES void tanh_gelu_loop(std::int64_t n, float* __restrict y,
                                    const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * logistic(2.0f * inner(x[i]));
}

TIDEMARK_CLONES void tanh_gelu_gradient_loop(std::int64_t n, float* __restrict dx,
                                             const float* __restrict dy,
                                             const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float s = logistic(2.0f * inner(x[i]));
    dx[i] = dy[i] * (s + 2.0f * x[i] * (s * (1.0f - s)) * inner_slope(x[i]));
  }
}

TIDEMARK_CLONES void tanh_inner_loop(std::int64_t n, float* __restrict y,
                                     const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = tanh_of(inner(x[i]));
}

TIDEMARK_CLONES void composed_gradient_loop(std::int64_t n, float* __restrict dx,
                                            const float* __restrict dy, const float* __restrict x,
                                            const float* __restrict tanh_u,
                                            const float* __restrict half,
                                            const float* __restrict one_plus) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float d_u = half[i] * (1.0f - tanh_u[i] * tanh_u[i]);
    dx[i] = dy[i] * (0.5f * one_plus[i] + d_u * inner_slope(x[i]));
  }
}

TIDEMARK_CLONES void silu_loop(std::int64_t n, float* __restrict y, const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] / (1.0f + exp_of(-x[i]));
}

TIDEMARK_CLONES void silu_gradient_loop(std::int64_t n, float* __restrict dx,
                                        const float* __restrict dy, const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float s = logistic(x[i]);
    dx[i] = dy[i] * (s * (1.0f + x[i] * (1.0f - s)));
  }
}

TIDEMARK_CLONES void tanh_loop(std::int64_t n, float* __restrict y, const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = tanh_of(x[i]);
}

TIDEMARK_CLONES void tanh_gradient_loop(std::int64_t n, float* __restrict dx,
                                        const float* __restrict dy, const float* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (1.0f - y[i] * y[i]);
}

TIDEMARK_CLONES void sigmoid_loop(std::int64_t n, float* __restrict y, const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = logistic(x[i]);
}

TIDEMARK_CLONES void sigmoid_gradient_loop(std::int64_t n, float* __restrict dx,
                                           const float* __restrict dy, const float* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (y[i] * (1.0f - y[i]));
}

TIDEMARK_CLONES void relu_loop(std::int64_t n, float* __restrict y, const float* __restrict x) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] <= 0.0f ? 0.0f : x[i];
}

TIDEMARK_CLONES void relu_gradient_loop(std::int64_t n, float* __restrict dx,
                                        const float* __restrict dy, const float* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] <= 0.0f ? 0.0f : dy[i];
}

/// dx = loop(dy, saved); without dy it is 0.
template <typename Loop, typename... Saved>
void gradient(const Call& call, Loop loop, const Saved&... saved) {
  const Array& dx = call.d_inputs[0];
  if (!dx) return;
  const Array& dy = call.d_outputs[0];
  if (!dy) return set_all(dx, 0.0f);
  map(dx, loop, dy, saved...);
}

}  // namespace

UnaryLoop gelu_loop_of(const Settings& settings) {
  return settings.tanh_approx ? tanh_gelu_loop : gelu_loop;
}
UnaryLoop silu_loop_of() { return silu_loop; }

void gelu_forward(const Call& call, Workspace&) {
  map(call.outputs[0], gelu_loop_of(call.settings), call.inputs[0]);
}

void gelu_backward(const Call& call, Workspace&) {
  gradient(call, call.settings.tanh_approx ? tanh_gelu_gradient_loop : gelu_gradient_loop,
           call.inputs[0]);
}

// Each output is rounded where an eager framework rounds it: the products read what was stored.
void gelu_composed_forward(const Call& call, Workspace&) {
  const Array &x = call.inputs[0], &y = call.outputs[0], &tanh_u = call.outputs[1],
              &half = call.outputs[2], &one_plus = call.outputs[3];
  map(tanh_u, tanh_inner_loop, x);
  const auto halve = [](std::int64_t n, float* to, const float* from) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = 0.5f * from[i];
  };
  const auto increment = [](std::int64_t n, float* to, const float* from) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = 1.0f + from[i];
  };
  map(half, halve, x);
  map(one_plus, increment, tanh_u);
  map(y, multiply_loop, half, one_plus);
}

void gelu_composed_backward(const Call& call, Workspace&) {
  gradient(call, composed_gradient_loop, call.inputs[0], call.outputs[1], call.outputs[2],
           call.outputs[3]);
}

void silu_forward(const Call& call, Workspace&) { map(call.outputs[0], silu_loop, call.inputs[0]); }

void silu_backward(const Call& call, Workspace&) {
  gradient(call, silu_gradient_loop, call.inputs[0]);
}

void tanh_forward(const Call& call, Workspace&) { map(call.outputs[0], tanh_loop, call.inputs[0]); }

void tanh_backward(const Call& call, Workspace&) {
  gradient(call, tanh_gradient_loop, call.outputs[0]);
}

void sigmoid_forward(const Call& call, Workspace&) {
  map(call.outputs[0], sigmoid_loop, call.inputs[0]);
}

void sigmoid_backward(const Call& call, Workspace&) {
  gradient(call, sigmoid_gradient_loop, call.outputs[0]);
}

void relu_forward(const Call& call, Workspace&) { map(call.outputs[0], relu_loop, call.inputs[0]); }

void relu_backward(const Call& call, Workspace&) {
  gradient(call, relu_gradient_loop, call.outputs[0]);
}

}  // namespace tidemark::cpu
