// The optimizers beside AdamW and plain SGD, on the CPU: parameter, gradient and state in fp32
// scratch, and back; see optimizer.h.
#include <cstring>

#include "kernels/cpu/map.h"
#include "kernels/dynamic_map.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/optimizer/update_rules.h"

namespace tidemark::cpu {
namespace {

enum UpdateSlot : std::size_t { slot_parameter = 0, slot_gradient, slot_first, slot_second };

std::span<float> filled(const Array& array, std::size_t slot, Workspace& workspace) {
  const std::span<float> values =
      workspace.floats(static_cast<std::size_t>(numel(array.shape)), slot);
  const Array copy =
      array_at(reinterpret_cast<std::byte*>(values.data()), DType::Float32, dense(array.shape));
  assign(copy, array);
  return values;
}

void write_back(std::span<const float> values, const Array& array) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
  assign(array, array_at(const_cast<std::byte*>(bytes), DType::Float32, dense(array.shape)));
}

Array part_of(const Array& state, std::int64_t first, std::int64_t count) {
  return array_at(state.data + first * size_of(state.dtype), state.dtype, dense({count}));
}

/// Its numbers, or zeros where the optimizer has no second one.
std::span<float> moment(const Array& state, std::int64_t count, int number, std::size_t slot,
                        Workspace& workspace) {
  if ((number + 1) * count <= numel(state.shape))
    return filled(part_of(state, number * count, count), slot, workspace);
  const std::span<float> zeros = workspace.floats(static_cast<std::size_t>(count), slot);
  std::ranges::fill(zeros, 0.0f);
  return zeros;
}

void by_element(const UpdateRule& rule, const Array& state, std::span<float> p,
                std::span<const float> g, Workspace& workspace) {
  const auto count = static_cast<std::int64_t>(p.size());
  const std::span<float> first = moment(state, count, 0, slot_first, workspace);
  const std::span<float> second = moment(state, count, 1, slot_second, workspace);
  for (std::size_t i = 0; i < p.size(); ++i) rule(p[i], g[i], first[i], second[i]);
  write_back(first, part_of(state, 0, count));
  if (has_second_state(rule.optimizer)) write_back(second, part_of(state, count, count));
}

/// One number of state, in codes: decoded, and coded again.
class CodedMoment {
 public:
  CodedMoment(const StateInBlocks& state, int number, bool is_signed)
      : numbers_(dynamic_map(is_signed)),
        codes_(state.codes + number * state.count),
        factors_(state.factors + number * state.blocks) {}

  float decoded(std::int64_t i) const { return numbers_[codes_[i]] * factors_[i / state_block]; }

  // The largest of the block is the new factor. A code's sign is that of its number.
  void code(std::int64_t begin, std::span<const float> values) {
    float most = 0;
    for (const float x : values) most = std::max(most, std::abs(x));
    factors_[begin / state_block] = most;
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::size_t code = nearest_code(numbers_, most > 0 ? values[i] / most : 0);
      if (std::signbit(numbers_[code]) != std::signbit(values[i]))
        code += values[i] > 0 ? 1 : code > 0 ? std::size_t(-1) : 0;
      codes_[begin + static_cast<std::int64_t>(i)] = static_cast<std::uint8_t>(code);
    }
  }

 private:
  std::array<float, 256> numbers_;
  std::uint8_t* codes_;
  float* factors_;
};

void in_blocks(const UpdateRule& rule, const Array& state, std::span<float> p,
               std::span<const float> g) {
  const bool has_second = has_second_state(rule.optimizer);
  const auto count = static_cast<std::int64_t>(p.size());
  const StateInBlocks blocks(state, count, has_second ? 2 : 1);
  CodedMoment first(blocks, 0, true), second(blocks, has_second ? 1 : 0, false);
  std::array<float, state_block> m{}, v{};
  for (std::int64_t begin = 0; begin < count; begin += state_block) {
    const std::int64_t n = std::min(state_block, count - begin);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(begin + i), k = static_cast<std::size_t>(i);
      m[k] = first.decoded(begin + i);
      if (has_second) v[k] = second.decoded(begin + i);
      rule(p[at], g[at], m[k], v[k]);
    }
    first.code(begin, std::span(m).first(static_cast<std::size_t>(n)));
    if (has_second) second.code(begin, std::span(v).first(static_cast<std::size_t>(n)));
  }
}

double mean_square(std::span<const float> values) {
  double sum = 0;
  for (const float x : values) sum += double{x} * x;
  return sum / static_cast<double>(std::max<std::size_t>(values.size(), 1));
}

/// The step of Adafactor before it is bounded: g over the root of the estimate of g².
void factored_step(const FactoredRule& rule, const FactoredShape& shape, std::span<float> means,
                   std::span<float> g) {
  const auto at = [&](std::int64_t matrix, std::int64_t r, std::int64_t c) {
    return static_cast<std::size_t>((matrix * shape.rows + r) * shape.columns + c);
  };
  float* const rows = means.data();
  float* const columns = rows + shape.matrices * shape.rows;
  for (std::int64_t k = 0; k < shape.matrices; ++k) {
    float *const row = rows + k * shape.rows, *const column = columns + k * shape.columns;
    double mean_of_rows = 0;
    std::vector<double> by_column(static_cast<std::size_t>(shape.columns));
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      double sum = 0;
      for (std::int64_t c = 0; c < shape.columns; ++c) {
        const double square = double{g[at(k, r, c)]} * g[at(k, r, c)] + double{rule.added};
        sum += square, by_column[static_cast<std::size_t>(c)] += square;
      }
      row[r] +=
          rule.fresh * (static_cast<float>(sum / static_cast<double>(shape.columns)) - row[r]);
      mean_of_rows += double{row[r]} / static_cast<double>(shape.rows);
    }
    for (std::int64_t c = 0; c < shape.columns; ++c) {
      const double mean = by_column[static_cast<std::size_t>(c)] / static_cast<double>(shape.rows);
      column[c] += rule.fresh * (static_cast<float>(mean) - column[c]);
    }
    const float scale = std::max(static_cast<float>(mean_of_rows), rule.least);
    for (std::int64_t r = 0; r < shape.rows; ++r)
      for (std::int64_t c = 0; c < shape.columns; ++c) {
        const float estimate = row[r] / scale * column[c];
        g[at(k, r, c)] /= std::sqrt(std::max(estimate, rule.least * rule.least));
      }
  }
}

void adafactor(const FactoredRule& rule, const Array& parameter, const Array& state,
               std::span<float> p, std::span<float> g, Workspace& workspace) {
  float size = rule.rate;
  if (rule.is_torch)
    size *= std::max(rule.least_size, static_cast<float>(std::sqrt(mean_square(p))));
  const std::span<float> means = filled(state, slot_first, workspace);
  if (parameter.shape.rank() >= 2) {
    factored_step(rule, FactoredShape(parameter.shape), means, g);
  } else {
    for (std::size_t i = 0; i < g.size(); ++i) {
      means[i] += rule.fresh * (g[i] * g[i] + rule.added - means[i]);
      g[i] /= std::sqrt(std::max(means[i], rule.least * rule.least));
    }
  }
  write_back(means, state);
  size /= std::max(1.0f, static_cast<float>(std::sqrt(mean_square(g))));
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = p[i] * (1 - rule.decay) - size * g[i];
}

/// AdamW on the copy of the parameter that the state begins with.
void on_master(const UpdateRule& rule, const Array& state, std::span<float> p,
               std::span<const float> g, bool is_first, Workspace& workspace) {
  const auto count = static_cast<std::int64_t>(p.size());
  const Array master = part_of(state, 0, count);
  if (!is_first) std::ranges::copy(filled(master, slot_first, workspace), p.begin());
  const std::span<float> m = filled(part_of(state, count, count), slot_first, workspace);
  const std::span<float> v = filled(part_of(state, 2 * count, count), slot_second, workspace);
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] *= 1 - rule.decay;
    m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * g[i];
    v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * (g[i] * g[i]);
    p[i] -= rule.step * m[i] / (std::sqrt(v[i]) * rule.root + rule.epsilon);
  }
  write_back(p, master);
  write_back(m, part_of(state, count, count)), write_back(v, part_of(state, 2 * count, count));
}

}  // namespace

void update_otherwise(const Call& call, const Array& gradient, std::span<const Array> outputs,
                      Workspace& workspace) {
  const Array &parameter = outputs[0], &state = outputs[1];
  const std::span<float> p = filled(parameter, slot_parameter, workspace);
  const std::span<float> g = filled(gradient, slot_gradient, workspace);
  const UpdateRule rule(call, workspace.state);
  const bool is_factored =
      call.optimizer == Optimizer::Adafactor || call.optimizer == Optimizer::AdafactorTransformers;
  if (call.settings.masters)
    on_master(rule, state, p, g, workspace.state.number == 0, workspace);
  else if (is_factored)
    adafactor({call, workspace.state, parameter.dtype}, parameter, state, p, g, workspace);
  else if (state.dtype == DType::UInt8)
    in_blocks(rule, state, p, g);
  else
    by_element(rule, state, p, g, workspace);
  write_back(p, parameter);
  for (const Array& temporary : outputs.subspan(2))
    std::memset(temporary.data, 0,
                static_cast<std::size_t>(numel(temporary.shape)) *
                    static_cast<std::size_t>(size_of(temporary.dtype)));
}

}  // namespace tidemark::cpu
