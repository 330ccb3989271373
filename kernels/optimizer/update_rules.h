// What the optimizers but AdamW and plain SGD do to one element: the same for CPU and CUDA.
#pragma once

#include <cmath>

#include "kernels/call.h"

namespace tidemark {

/// Betas of Lion, decay of RMSprop, and what roots are kept from zero by: the optimizers' own
/// defaults, in the files that traces/optimizer.h names.
inline constexpr float lion_beta1 = 0.9f, lion_beta2 = 0.99f;
inline constexpr float rmsprop_decay = 0.99f, rmsprop_epsilon = 1e-8f, adagrad_epsilon = 1e-10f;
inline constexpr float sgd_momentum = 0.9f;

/// bitsandbytes' AdamW decays the weight behind its step, PyTorch's before (csrc/kernels.cu,
/// torch/optim/adamw.py).
struct UpdateRule {
  Optimizer optimizer = Optimizer::AdamW;
  float rate = 0, decay = 0, l2 = 0;  ///< decay of the weight itself; as a term of the gradient
  float beta1 = 0, beta2 = 0, epsilon = 0, step = 0, root = 1;  ///< of AdamW

  UpdateRule(const Call& call, const StepState& state)
      : optimizer(call.optimizer),
        rate(static_cast<float>(state.learning_rate)),
        decay(static_cast<float>(state.learning_rate * state.weight_decay)),
        l2(call.settings.l2_decay ? static_cast<float>(state.weight_decay) : 0),
        beta1(static_cast<float>(state.beta1)),
        beta2(static_cast<float>(state.beta2)),
        epsilon(static_cast<float>(state.epsilon)) {
    const auto t = static_cast<double>(state.number + 1);
    step = static_cast<float>(state.learning_rate / (1 - std::pow(state.beta1, t)));
    root = static_cast<float>(1 / std::sqrt(1 - std::pow(state.beta2, t)));
  }

  TIDEMARK_ANYWHERE static float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f; }

  TIDEMARK_ANYWHERE void lion(float& p, float g, float& m) const {
    p = p * (1 - decay) - rate * sign(lion_beta1 * m + (1 - lion_beta1) * g);
    m = lion_beta2 * m + (1 - lion_beta2) * g;
  }
  TIDEMARK_ANYWHERE void adam(float& p, float g, float& m, float& v) const {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * (g * g);
    p = (p - step * m / (sqrtf(v) * root + epsilon)) * (1 - decay);
  }

  /// The parameter and up to two numbers of state.
  TIDEMARK_ANYWHERE void operator()(float& p, float g, float& first, float& second) const {
    g += l2 * p;
    switch (optimizer) {
      case Optimizer::SgdMomentum:
        first = sgd_momentum * first + g;
        p -= rate * first;
        return;
      case Optimizer::Adagrad:
        first += g * g;
        p -= rate * g / (sqrtf(first) + adagrad_epsilon);
        return;
      case Optimizer::RmsProp:
        first = rmsprop_decay * first + (1 - rmsprop_decay) * (g * g);
        p -= rate * g / (sqrtf(first) + rmsprop_epsilon);
        return;
      case Optimizer::Lion:
      case Optimizer::Lion32bit:
      case Optimizer::Lion8bit:
        return lion(p, g, first);
      case Optimizer::AdamW32bit:
      case Optimizer::AdamW8bit:
      case Optimizer::PagedAdamW32bit:
      case Optimizer::PagedAdamW8bit:
        return adam(p, g, first, second);
      case Optimizer::Sgd:
      case Optimizer::AdamW:
      case Optimizer::Adafactor:
      case Optimizer::AdafactorTransformers:
      case Optimizer::Muon:
        return;  // in other files
    }
  }
};

inline bool has_second_state(Optimizer optimizer) { return row_of(optimizer).states == 2; }

/// Elements per factor of states in eight bits.
inline constexpr std::int64_t state_block = 256;

/// A state in eight bits, in one piece: of each number of state the codes of all elements, then the
/// factors, four bytes each and first in memory.
struct StateInBlocks {
  float* factors = nullptr;  ///< of the first number, then of the second
  std::uint8_t* codes = nullptr;
  std::int64_t count = 0, blocks = 0;

  StateInBlocks(const Array& state, std::int64_t elements, int numbers)
      : factors(elements_of<float>(state)),
        count(elements),
        blocks((elements + state_block - 1) / state_block) {
    codes = elements_of<std::uint8_t>(state) + numbers * blocks * std::int64_t{sizeof(float)};
  }

 private:
  template <typename T>
  static T* elements_of(const Array& array) {
    return reinterpret_cast<T*>(array.data);
  }
};

/// Adafactor (arXiv 1804.04235, algorithms 4 and 5): torch/optim/_adafactor.py, and optimization.py
/// of transformers with a rate that is given.
struct FactoredRule {
  bool is_torch = true;
  float rate = 0, decay = 0;  ///< of the step; of the weight
  float fresh = 1;            ///< share of the new mean: t^−0.8
  float added = 0;            ///< to squares, before their mean
  float least = 0;            ///< mean of the rows' means, and root of the least estimate
  float least_size = 0;       ///< root mean square of a parameter whose step follows it

  FactoredRule(const Call& call, const StepState& state, DType parameter)
      : is_torch(call.optimizer == Optimizer::Adafactor) {
    const auto t = static_cast<double>(state.number + 1);
    const double most =
        is_torch ? std::min(state.learning_rate, 1 / std::sqrt(t)) : state.learning_rate;
    rate = static_cast<float>(most);
    decay = static_cast<float>(state.learning_rate * state.weight_decay);
    fresh = static_cast<float>(std::pow(t, -0.8));
    const float epsilon = parameter == DType::BFloat16  ? 0x1p-7f
                          : parameter == DType::Float16 ? 0x1p-10f
                                                        : 0x1p-23f;
    added = is_torch ? 0.0f : 1e-30f;
    least = is_torch ? epsilon : 0.0f;
    least_size = is_torch ? 1e-3f : 0.0f;
  }
};

/// A state as a tensor of factors for rows, then one for columns, of matrices [count, rows,
/// columns].
struct FactoredShape {
  std::int64_t matrices = 1, rows = 1, columns = 1;

  explicit FactoredShape(const Shape& shape)
      : matrices(numel(shape) / (shape.back(1) * shape.back())),
        rows(shape.back(1)),
        columns(shape.back()) {}
};

}  // namespace tidemark
