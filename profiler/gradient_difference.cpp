// Relative distance per parameter, with a floor from the root mean square of all gradients.
#include "profiler/gradient_difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tidemark::profiler {
namespace {

constexpr double smallest_scale = 1e-3;  // of the root mean square over all elements

double squares(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return sum;
}

double mean_square(const NamedValues& gradients) {
  double sum = 0, count = 0;
  for (const auto& [name, gradient] : gradients) {
    sum += squares(gradient);
    count += static_cast<double>(gradient.size());
  }
  return count > 0 ? sum / count : 0;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  const double root = std::sqrt(sum);
  return std::isfinite(root) ? root : std::numeric_limits<double>::infinity();
}

}  // namespace

GradientDifference gradient_difference(const NamedValues& found, const NamedValues& reference) {
  GradientDifference result;
  result.bit_identical = found == reference;
  const double usual = mean_square(reference);
  for (const auto& [name, expected] : reference) {
    const auto gradient = found.find(name);
    const double error = gradient == found.end() ? std::numeric_limits<double>::infinity()
                                                 : distance(gradient->second, expected);
    if (error == 0) continue;
    const double floor = smallest_scale * std::sqrt(usual * static_cast<double>(expected.size()));
    const double relative = error / std::max(std::sqrt(squares(expected)), floor);
    if (relative > result.largest) result.largest = relative, result.parameter = name;
  }
  if (found.size() != reference.size()) result.largest = std::numeric_limits<double>::infinity();
  return result;
}

}  // namespace tidemark::profiler
