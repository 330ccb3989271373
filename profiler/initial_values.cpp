// Draws parameters and inputs from Philox by seed and key, as their role in the trace asks.
#include "profiler/initial_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/parallel.h"
#include "base/quoted.h"
#include "kernels/philox.h"
#include "profiler/meant_values.h"
#include "profiler/stored_parts.h"

namespace tidemark::profiler {
namespace {

class Dice {
 public:
  /// Keys of the step's random ops are below 2^53: the top bit keeps these numbers apart. The first
  /// number is the one of that place, a multiple of four.
  Dice(std::uint64_t seed, std::uint64_t key, std::uint64_t place = 0)
      : seed_(seed), key_(key | std::uint64_t{1} << 63), next_(place) {}

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
  std::uint64_t seed_, key_, next_;
  PhiloxBlock block_{};
};

/// So many elements, each of `throws` numbers: parts of them at the same time, on all cores.
template <typename Draw>
std::vector<double> drawn(std::int64_t count, std::uint64_t seed, std::uint64_t key,
                          std::uint64_t throws, Draw draw) {
  constexpr std::size_t part = std::size_t{1} << 16;
  std::vector<double> values(static_cast<std::size_t>(count));
  parallel_for((values.size() + part - 1) / part, [&](std::size_t p) {
    Dice dice(seed, key, p * part * throws);
    const std::size_t end = std::min(values.size(), (p + 1) * part);
    for (std::size_t i = p * part; i < end; ++i) values[i] = draw(dice);
  });
  return values;
}
constexpr std::uint64_t of_uniform = 1, of_normal = 2;  // numbers that one takes

bool is_table(const Trace& trace, TensorId parameter) {
  return std::ranges::any_of(trace.ops, [&](const Op& op) {
    return op.kind == OpKind::Embedding && trace.inputs(op)[1] == parameter;
  });
}

// A place is as good as a key where a file has none.
std::uint64_t key_of(const Trace& trace, TensorId external) {
  const Tensor& tensor = trace[external];
  return tensor.rng_key != 0 ? tensor.rng_key : index(external) + 1;
}

bool scales_a_norm(const Trace& trace, TensorId parameter) {
  return std::ranges::any_of(trace.ops, [&](const Op& op) {
    const bool is_norm = op.kind == OpKind::LayerNorm || op.kind == OpKind::RmsNorm;
    return is_norm && op.inputs > 1 && trace.inputs(op)[1] == parameter;
  });
}

// A linear's usual weight, drawn by its codes' key and stored.
std::vector<double> stored(const Trace& trace, const StoredPart& part, std::uint64_t seed) {
  Dice dice(seed, key_of(trace, trace.inputs(trace[part.op])[1]));
  const Shape shape = stored_shape(trace, part.op);
  const double bound = 1 / std::sqrt(static_cast<double>(shape[1]));
  std::vector<double> weight(static_cast<std::size_t>(numel(shape)));
  for (double& x : weight) x = bound * (2 * dice.uniform() - 1);
  return stored_values(trace, part, weight);
}

// Positions may reach beyond the table that a file gives them.
void require_range(const Trace& trace, TensorId input, const std::vector<double>& values) {
  const double largest = *std::ranges::max_element(values);
  const std::int64_t range = index_range(trace, input);
  if (largest >= static_cast<double>(range))
    throw InputError(fmt::format("{}: its fill reaches {}, but what reads it has {} rows",
                                 quoted(trace[input].name), largest, range));
}

}  // namespace

std::vector<double> initial_parameter(const Trace& trace, TensorId parameter, std::uint64_t seed,
                                      std::int64_t most) {
  const Tensor& tensor = trace[parameter];
  const std::int64_t count = std::min(numel(tensor.shape), most);
  if (!is_floating(tensor.dtype) || tensor.shape.rank() == 1)
    if (const auto part = stored_part_of(trace, parameter)) return stored(trace, *part, seed);
  const std::uint64_t key = key_of(trace, parameter);
  constexpr double small = 0.02;
  if (is_table(trace, parameter) || tensor.shape.rank() > 2)
    if (tensor.shape.rank() != 4)
      return drawn(count, seed, key, of_normal, [&](Dice& dice) { return small * dice.normal(); });
  if (tensor.shape.rank() >= 2) {
    const std::int64_t fan_in = numel(tensor.shape) / std::max<std::int64_t>(1, tensor.shape[0]);
    const double bound = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, fan_in)));
    return drawn(count, seed, key, of_uniform,
                 [&](Dice& dice) { return bound * (2 * dice.uniform() - 1); });
  }
  const double centre = scales_a_norm(trace, parameter) ? 1 : 0;
  return drawn(count, seed, key, of_normal,
               [&](Dice& dice) { return centre + small * dice.normal(); });
}

std::int64_t index_range(const Trace& trace, TensorId input) {
  for (const Op& op : trace.ops) {
    const auto inputs = trace.inputs(op);
    const auto at = std::ranges::find(inputs, input);
    if (at == inputs.end()) continue;
    if (op.kind == OpKind::Embedding) return trace[inputs[1]].shape[0];
    if (op.kind == OpKind::NllLoss) return trace[inputs[0]].shape.back();
    return index_range(trace, trace.outputs(op)[0]);
  }
  return 1;
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
  std::optional<std::vector<double>> meant;
  if (const InputFill* fill = fill_of(trace, tensor)) meant = meant_values(tensor, *fill);
  if (meant && !is_floating(tensor.dtype)) require_range(trace, input, *meant);
  if (meant) return *std::move(meant);
  const std::uint64_t key = key_of(trace, input);
  const std::int64_t count = numel(tensor.shape);
  if (is_floating(tensor.dtype))
    return drawn(count, seed, key, of_normal, [](Dice& dice) { return dice.normal(); });
  const std::int64_t range = index_range(trace, input);
  return drawn(count, seed, key, of_uniform, [&](Dice& dice) { return dice.below(range); });
}

}  // namespace tidemark::profiler
