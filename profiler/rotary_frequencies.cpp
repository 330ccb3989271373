// How fast each pair of a head turns, as modeling_rope_utils.py of Hugging Face transformers has
// it.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "profiler/meant_values.h"

namespace tidemark::profiler {
namespace {

/// theta^(−2i/d)
double plain(double theta, std::int64_t i, double width) {
  return std::pow(theta, -2 * static_cast<double>(i) / width);
}

// Beyond the tokens of the training before, the base grows with their number (dynamic NTK).
double stretched_theta(const Rotary& rotary, double width, std::int64_t tokens) {
  const auto original = static_cast<double>(rotary.original_positions);
  const double ratio = std::max(1.0, static_cast<double>(tokens) / original);
  if (width <= 2) return rotary.theta;
  return rotary.theta * std::pow(rotary.factor * ratio - (rotary.factor - 1), width / (width - 2));
}

/// The pair that turns `turns` times within the original positions (arXiv 2309.00071, section 3.2).
double pair_of(double turns, const Rotary& rotary, double width) {
  const auto original = static_cast<double>(rotary.original_positions);
  return width * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(rotary.theta));
}

double yarn(const Rotary& rotary, std::int64_t i, double width) {
  const double first = std::max(std::floor(pair_of(rotary.high, rotary, width)), 0.0);
  double last = std::min(std::ceil(pair_of(rotary.low, rotary, width)), width - 1);
  if (first == last) last += 0.001;
  const double stretch = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
  const double turn = plain(rotary.theta, i, width);
  return turn / rotary.factor * stretch + turn * (1 - stretch);
}

double llama3(const Rotary& rotary, std::int64_t i, double width) {
  const double turn = plain(rotary.theta, i, width);
  const double turns =
      static_cast<double>(rotary.original_positions) * turn / (2 * std::numbers::pi);
  if (turns < rotary.low) return turn / rotary.factor;
  if (turns > rotary.high) return turn;
  const double keep = (turns - rotary.low) / (rotary.high - rotary.low);
  return (1 - keep) * turn / rotary.factor + keep * turn;
}

double frequency(const Rotary& rotary, std::int64_t i, double width, std::int64_t tokens) {
  switch (rotary.scaling) {
    case RotaryScaling::None:
      return plain(rotary.theta, i, width);
    case RotaryScaling::Linear:
      return plain(rotary.theta, i, width) / rotary.factor;
    case RotaryScaling::Dynamic:
      return plain(stretched_theta(rotary, width, tokens), i, width);
    case RotaryScaling::Yarn:
      return yarn(rotary, i, width);
    case RotaryScaling::Llama3:
      return llama3(rotary, i, width);
  }
  return 0;
}

}  // namespace

std::vector<double> rotary_frequencies(const Rotary& rotary, std::int64_t width,
                                       std::int64_t tokens) {
  std::vector<double> turns;
  for (std::int64_t i = 0; i < width / 2; ++i)
    turns.push_back(frequency(rotary, i, static_cast<double>(width), tokens));
  return turns;
}

}  // namespace tidemark::profiler
