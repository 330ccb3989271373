#include "profiler/initial_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/philox.h"

namespace tidemark {
namespace {

// FNV-1a: the same on every machine.
std::uint64_t key_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

class Dice {
 public:
  Dice(std::uint64_t seed, std::string_view name) : seed_(seed), key_(key_of(name)) {}

  double uniform() {  // uniform_at(seed, 0, key, next), each block made once
    if (next_ % 4 == 0) block_ = philox(step_key(seed_, 0), next_ / 4, key_);
    return static_cast<double>(uniform_of(block_.word[next_++ % 4]));
  }
  double normal() {  // Box and Muller; the logarithm's argument is never 0
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  double below(std::int64_t limit) {
    return std::min(std::floor(uniform() * static_cast<double>(limit)),
                    static_cast<double>(limit - 1));
  }

 private:
  std::uint64_t seed_, key_, next_ = 0;
  PhiloxBlock block_{};
};

template <typename Make>
std::vector<double> filled(const Tensor& tensor, Make make) {
  std::vector<double> values(static_cast<std::size_t>(numel(tensor.shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = make(static_cast<std::int64_t>(i));
  return values;
}

bool is_table(const Trace& trace, TensorId parameter) {
  return std::ranges::any_of(trace.ops, [&](const Op& op) {
    return op.kind == OpKind::Embedding && trace.inputs(op)[1] == parameter;
  });
}

// How many different values an integer input may have: rows of the table that it indexes, or
// classes of the loss, through views and copies.
std::int64_t range_of(const Trace& trace, TensorId input) {
  for (const Op& op : trace.ops) {
    const auto inputs = trace.inputs(op);
    const auto at = std::ranges::find(inputs, input);
    if (at == inputs.end()) continue;
    if (op.kind == OpKind::Embedding) return trace[inputs[1]].shape[0];
    if (op.kind == OpKind::NllLoss) return trace[inputs[0]].shape.back();
    return range_of(trace, trace.outputs(op)[0]);
  }
  return 1;
}

std::int64_t root(std::int64_t n) {
  return static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(n))));
}

// Positions count from where the table's rows begin to be used: RoBERTa's first two are padding's.
std::vector<double> positions(const Trace& trace, TensorId input) {
  const Tensor& tensor = trace[input];
  const std::int64_t tokens = tensor.shape.back();
  const std::int64_t first =
      trace.model.find("roberta") != std::string::npos && range_of(trace, input) >= tokens + 2 ? 2
                                                                                               : 0;
  return filled(tensor, [&](std::int64_t i) { return static_cast<double>(first + i % tokens); });
}

// Place of (query, key) in the table of (2w − 1)² differences (microsoft/Swin-Transformer).
std::vector<double> relative_position_index(const Tensor& tensor) {
  const std::int64_t tokens = root(numel(tensor.shape)), window = root(tokens);
  return filled(tensor, [=](std::int64_t i) {
    const std::int64_t q = i / tokens, k = i % tokens;
    const std::int64_t dy = q / window - k / window + window - 1;
    const std::int64_t dx = q % window - k % window + window - 1;
    return static_cast<double>(dy * (2 * window - 1) + dx);
  });
}

// −100 between tokens that the cyclic shift brought together from different sides of the grid.
std::vector<double> window_mask(const Tensor& tensor) {
  const std::int64_t per_side = root(tensor.shape[0]), tokens = tensor.shape[3];
  const std::int64_t window = root(tokens), side = per_side * window, shift = window / 2;
  const auto region = [=](std::int64_t at, std::int64_t token) {
    const std::int64_t y = at / per_side * window + token / window;
    const std::int64_t x = at % per_side * window + token % window;
    const auto third = [=](std::int64_t v) {
      return v < side - window ? 0 : v < side - shift ? 1 : 2;
    };
    return third(y) * 3 + third(x);
  };
  return filled(tensor, [=](std::int64_t i) {
    const std::int64_t at = i / tokens / tokens, q = i / tokens % tokens, k = i % tokens;
    return region(at, q) == region(at, k) ? 0.0 : -100.0;
  });
}

// Distance of a query's and a key's row, in steps of the finer grid (facebookresearch/mvit).
std::vector<double> axis_distance(const Tensor& tensor) {
  const std::int64_t q_side = tensor.shape[0], k_side = tensor.shape[1];
  const std::int64_t q_step = std::max<std::int64_t>(k_side / q_side, 1);
  const std::int64_t k_step = std::max<std::int64_t>(q_side / k_side, 1);
  return filled(tensor, [=](std::int64_t i) {
    return static_cast<double>(i / k_side * q_step - i % k_side * k_step + (k_side - 1) * k_step);
  });
}

// A square mask hides the future; one of a single row hides padding, of which there is none.
std::vector<double> attention_mask(const Tensor& tensor) {
  const Shape& s = tensor.shape;
  const bool is_causal = s.rank() >= 2 && s.back() == s.back(1);
  const double hidden = static_cast<double>(std::numeric_limits<float>::lowest()) / 2;
  return filled(tensor, [&](std::int64_t i) {
    const std::int64_t q = i / s.back() % s.back(1), k = i % s.back();
    const double masked = tensor.dtype == DType::Float16 ? -65504 : hidden;
    return is_causal && k > q ? masked : 0.0;
  });
}

// Angle of the pair (i, i + d/2) at a token: token · θ^(−2i/d), θ = 10,000 (arXiv 2104.09864).
std::vector<double> rotary_table(const Tensor& tensor, double (*function)(double)) {
  constexpr double theta = 10000;
  const std::int64_t d = tensor.shape.back();
  return filled(tensor, [=](std::int64_t i) {
    const auto pair = static_cast<double>(i % d % (d / 2));
    return function(static_cast<double>(i / d) *
                    std::pow(theta, -2 * pair / static_cast<double>(d)));
  });
}

}  // namespace

std::vector<double> initial_parameter(const Trace& trace, TensorId parameter, std::uint64_t seed) {
  const Tensor& tensor = trace[parameter];
  Dice dice(seed, tensor.name);
  constexpr double small = 0.02;
  if (is_table(trace, parameter) || tensor.shape.rank() > 2)
    if (tensor.shape.rank() != 4)
      return filled(tensor, [&](std::int64_t) { return small * dice.normal(); });
  if (tensor.shape.rank() >= 2) {
    const std::int64_t fan_in = numel(tensor.shape) / std::max<std::int64_t>(1, tensor.shape[0]);
    const double bound = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, fan_in)));
    return filled(tensor, [&](std::int64_t) { return bound * (2 * dice.uniform() - 1); });
  }
  const double centre = tensor.name.ends_with("weight") ? 1 : 0;
  return filled(tensor, [&](std::int64_t) { return centre + small * dice.normal(); });
}

void add_initial_parameters(NamedValues& values, const Trace& trace, std::uint64_t seed) {
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    const Tensor& tensor = trace[id];
    if (tensor.category != Category::Parameter || tensor.storage != id) continue;
    if (!values.contains(tensor.name)) values[tensor.name] = initial_parameter(trace, id, seed);
  }
}

NamedValues initial_parameters(const Trace& trace, std::uint64_t seed) {
  NamedValues values;
  add_initial_parameters(values, trace, seed);
  return values;
}

std::vector<double> synthetic_input(const Trace& trace, TensorId input, std::uint64_t seed) {
  const Tensor& tensor = trace[input];
  const std::string_view name = tensor.name;
  if (name.ends_with("relative_position_index")) return relative_position_index(tensor);
  if (name.ends_with("window_mask")) return window_mask(tensor);
  if (name.ends_with(".distance")) return axis_distance(tensor);
  if (name == "position_ids") return positions(trace, input);
  if (name == "attention_mask") return attention_mask(tensor);
  if (name == "rope.cos") return rotary_table(tensor, [](double x) { return std::cos(x); });
  if (name == "rope.sin") return rotary_table(tensor, [](double x) { return std::sin(x); });
  Dice dice(seed, name);
  if (is_floating(tensor.dtype)) return filled(tensor, [&](std::int64_t) { return dice.normal(); });
  const std::int64_t range = range_of(trace, input);
  return filled(tensor, [&](std::int64_t) { return dice.below(range); });
}

}  // namespace tidemark
