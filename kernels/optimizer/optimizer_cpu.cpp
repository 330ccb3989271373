// AdamW and SGD on the CPU; see optimizer.h.
#include <cmath>
#include <span>

#include "base/error.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/map.h"
#include "kernels/optimizer/optimizer.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tidemark::cpu {
namespace {

/// The factors of one AdamW step, computed once in fp64.
struct AdamFactors {
  explicit AdamFactors(const StepState& state) {
    const auto t = static_cast<double>(state.number + 1);
    decay = static_cast<float>(1 - state.learning_rate * state.weight_decay);
    beta1 = static_cast<float>(state.beta1), beta2 = static_cast<float>(state.beta2);
    fresh1 = static_cast<float>(1 - state.beta1), fresh2 = static_cast<float>(1 - state.beta2);
    step = static_cast<float>(state.learning_rate / (1 - std::pow(state.beta1, t)));
    root = static_cast<float>(1 / std::sqrt(1 - std::pow(state.beta2, t)));
    epsilon = static_cast<float>(state.epsilon);
  }
  float decay, beta1, beta2, fresh1, fresh2, step, root, epsilon;
};

TIDEMARK_CLONES void moments_loop(std::int64_t n, float* __restrict m, float* __restrict v,
                                  const float* __restrict g, const AdamFactors& factors) {
  const AdamFactors f = factors;
  for (std::int64_t i = 0; i < n; ++i) {
    m[i] = f.beta1 * m[i] + f.fresh1 * g[i];
    v[i] = f.beta2 * v[i] + f.fresh2 * (g[i] * g[i]);
  }
}

// std::sqrt may set errno, so no compiler makes vectors of it.
void roots(std::int64_t n, float* y, const float* x) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  for (; i + 4 <= n; i += 4) _mm_storeu_ps(y + i, _mm_sqrt_ps(_mm_loadu_ps(x + i)));
#endif
  for (; i < n; ++i) y[i] = std::sqrt(x[i]);
}

TIDEMARK_CLONES void adamw_loop(std::int64_t n, float* __restrict p, const float* __restrict m,
                                const float* __restrict root_v, const AdamFactors& factors) {
  const AdamFactors f = factors;
  for (std::int64_t i = 0; i < n; ++i)
    p[i] = f.decay * p[i] - f.step * m[i] / (root_v[i] * f.root + f.epsilon);
}

TIDEMARK_CLONES void sgd_loop(std::int64_t n, float* __restrict p, const float* __restrict g,
                              float rate, float decay) {
  for (std::int64_t i = 0; i < n; ++i) p[i] -= rate * (g[i] + decay * p[i]);
}

/// For a run that is read, changed and written: its own memory or scratch, filled.
float* open(const Run& run, std::int64_t n, float* scratch) {
  if (!run.is_plain()) gather(run, n, scratch);
  return place(run, scratch);
}

void adamw(const Array& gradient, std::span<const Array> outputs, const StepState& step) {
  const Array &parameter = outputs[0], &state = outputs[1];
  const std::int64_t count = numel(parameter.shape);
  CHECK(numel(state.shape) == 2 * count && is_dense(state.layout()));
  const AdamFactors factors(step);
  alignas(64) float scratch[4][longest_run];
  Run m{state.data, state.dtype, 1}, v = m.from(count);
  std::vector<Run> temporaries;
  for (std::size_t i = 2; i < outputs.size(); ++i)
    temporaries.push_back({outputs[i].data, outputs[i].dtype, 1});
  for_runs(
      parameter.shape, std::array{&parameter, &gradient},
      [&](const auto& runs, std::int64_t n) {
        float *const p = open(runs[0], n, scratch[0]), *const first = open(m, n, scratch[1]),
                     *const second = open(v, n, scratch[2]);
        moments_loop(n, first, second, read(runs[1], n, scratch[3]), factors);
        roots(n, scratch[3], second);
        adamw_loop(n, p, first, scratch[3], factors);
        write(runs[0], n, p), write(m, n, first), write(v, n, second);
        m = m.from(n), v = v.from(n);
        for (Run& temporary : temporaries) {
          scatter(scratch[3], n, temporary);
          temporary = temporary.from(n);
        }
      },
      true);
}

void sgd(const Array& gradient, const Array& parameter, const StepState& state) {
  alignas(64) float scratch[2][longest_run];
  for_runs(std::array{&parameter, &gradient}, [&](const auto& runs, std::int64_t n) {
    float* const p = open(runs[0], n, scratch[0]);
    sgd_loop(n, p, read(runs[1], n, scratch[1]), static_cast<float>(state.learning_rate),
             static_cast<float>(state.weight_decay));
    write(runs[0], n, p);
  });
}

}  // namespace

void update(const Call& call, Workspace& workspace) {
  const StepState& state = workspace.state;
  if (!state.updates) return;
  const std::size_t each = outputs_per_parameter(call);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const auto outputs = std::span(call.outputs).subspan(i * each, each);
    if (call.optimizer == Optimizer::AdamW && !call.settings.masters)
      adamw(call.inputs[i], outputs, state);
    else if (call.optimizer == Optimizer::Sgd)
      sgd(call.inputs[i], outputs[0], state);
    else
      update_otherwise(call, call.inputs[i], outputs, workspace);
  }
}

}  // namespace tidemark::cpu
