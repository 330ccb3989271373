// Computes position differences, window masks, causal masks and rotary tables element by element.
#include "profiler/meant_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tidemark::profiler {
namespace {

using Values = std::vector<double>;

std::int64_t root(std::int64_t n) {
  return static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(n))));
}

// Small enough that no softmax sees it, and finite, so that a row of masked scores stays a number.
double hidden(DType dtype) {
  constexpr double largest_half = 65504;
  return dtype == DType::Float16 ? -largest_half
                                 : static_cast<double>(std::numeric_limits<float>::lowest()) / 2;
}

// Place of (query, key) in the table of (2w − 1)² differences (microsoft/Swin-Transformer).
Values window_differences(const Tensor& tensor) {
  const std::int64_t tokens = root(numel(tensor.shape)), window = root(tokens);
  return filled(tensor, [=](std::int64_t i) {
    const std::int64_t q = i / tokens, k = i % tokens;
    const std::int64_t dy = q / window - k / window + window - 1;
    const std::int64_t dx = q % window - k % window + window - 1;
    return static_cast<double>(dy * (2 * window - 1) + dx);
  });
}

// −100 between tokens that the cyclic shift brought together from different sides of the grid.
Values seam_mask(const Tensor& tensor, std::int64_t shift) {
  const std::int64_t per_side = root(tensor.shape[0]), tokens = tensor.shape[3];
  const std::int64_t window = root(tokens), side = per_side * window;
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
Values axis_differences(const Tensor& tensor) {
  const std::int64_t q_side = tensor.shape[0], k_side = tensor.shape[1];
  const std::int64_t q_step = std::max<std::int64_t>(k_side / q_side, 1);
  const std::int64_t k_step = std::max<std::int64_t>(q_side / k_side, 1);
  return filled(tensor, [=](std::int64_t i) {
    return static_cast<double>(i / k_side * q_step - i % k_side * k_step + (k_side - 1) * k_step);
  });
}

Values causal_mask(const Tensor& tensor, std::int64_t window) {
  const std::int64_t keys = tensor.shape.back(), tokens = tensor.shape.back(1);
  return filled(tensor, [=, masked = hidden(tensor.dtype)](std::int64_t i) {
    const std::int64_t q = i / keys % tokens + keys - tokens, k = i % keys;
    const bool is_seen = k <= q && (window == 0 || k > q - window);
    return is_seen ? 0.0 : masked;
  });
}

// _relative_position_bucket() of transformers' modeling_t5.py.
Values relative_buckets(const Tensor& tensor, const fill::RelativeBuckets& fill) {
  const bool is_line = fill::is_line_of_buckets(tensor.shape);
  const std::int64_t keys = is_line ? tensor.shape[1] : root(numel(tensor.shape));
  const std::int64_t first = is_line ? keys / 2 : 0;  // query
  const std::int64_t buckets = fill.looks_ahead ? fill.buckets / 2 : fill.buckets;
  const std::int64_t near = buckets / 2;
  const auto far = [=](std::int64_t distance) {
    const auto steps = [=](std::int64_t of) {
      return std::log(static_cast<double>(of) / static_cast<double>(near));
    };
    const double share = steps(distance) / steps(fill.farthest);
    const auto beyond = static_cast<std::int64_t>(share * static_cast<double>(buckets - near));
    return std::min(near + beyond, buckets - 1);
  };
  return filled(tensor, [=](std::int64_t i) {
    const std::int64_t ahead = i % keys - (i / keys + first);
    const bool is_behind = fill.looks_ahead && ahead > 0;
    const std::int64_t distance = is_behind ? ahead : std::max<std::int64_t>(-ahead, 0);
    const std::int64_t bucket = distance < near ? distance : far(distance);
    return static_cast<double>(bucket + (is_behind ? buckets : 0));
  });
}

// Of pairs the first is the cosine.
Values rotary_table(const Tensor& tensor, const fill::RotaryTable& table) {
  const std::int64_t width = tensor.shape.back(), tokens = tensor.shape.back(1);
  const bool are_pairs = table.wave == fill::Wave::Pairs;
  const bool once = table.columns == fill::WaveColumns::Once;
  const bool beside = are_pairs || table.columns == fill::WaveColumns::Neighbours;
  const std::int64_t pairs = once ? width : width / 2;
  const Values turns = rotary_frequencies(table.rotary, 2 * pairs, tokens);
  return filled(tensor, [&](std::int64_t i) {
    const std::int64_t pair = beside ? i % width / 2 : i % width % pairs;
    const double angle =
        static_cast<double>(i / width % tokens) * turns[static_cast<std::size_t>(pair)];
    const bool is_cosine = are_pairs ? i % 2 == 0 : table.wave == fill::Wave::Cosine;
    const double wave = is_cosine ? std::cos(angle) : std::sin(angle);
    return table.rotary.attention_factor * wave;
  });
}

struct Meant {
  const Tensor& tensor;

  std::optional<Values> operator()(const fill::Words&) const { return {}; }
  std::optional<Values> operator()(const fill::Pixels&) const { return {}; }
  std::optional<Values> operator()(const fill::ImageClasses&) const { return {}; }
  std::optional<Values> operator()(const fill::Positions& fill) const {
    const std::int64_t tokens = tensor.shape.back();
    return filled(tensor,
                  [&](std::int64_t i) { return static_cast<double>(fill.first + i % tokens); });
  }
  std::optional<Values> operator()(const fill::CausalMask& fill) const {
    return causal_mask(tensor, fill.window);
  }
  std::optional<Values> operator()(const fill::PaddingMask&) const {
    return filled(tensor, [](std::int64_t) { return 0.0; });
  }
  std::optional<Values> operator()(const fill::Constant& fill) const {
    return filled(tensor, [&](std::int64_t) { return fill.value; });
  }
  std::optional<Values> operator()(const fill::SeamMask& fill) const {
    return seam_mask(tensor, fill.shift);
  }
  std::optional<Values> operator()(const fill::WindowDifferences&) const {
    return window_differences(tensor);
  }
  std::optional<Values> operator()(const fill::AxisDifferences&) const {
    return axis_differences(tensor);
  }
  std::optional<Values> operator()(const fill::RelativeBuckets& fill) const {
    return relative_buckets(tensor, fill);
  }
  std::optional<Values> operator()(const fill::RotaryTable& fill) const {
    return rotary_table(tensor, fill);
  }
};

}  // namespace

std::optional<Values> meant_values(const Tensor& tensor, const InputFill& fill) {
  return std::visit(Meant{tensor}, fill);
}

}  // namespace tidemark::profiler
