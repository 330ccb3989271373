// Relative distance of all gradients together, and per parameter with a floor from the root mean
// square of all.
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

struct Total {
  double squares = 0, elements = 0;
};

Total total_of(const NamedValues& gradients) {
  Total total;
  for (const auto& [name, gradient] : gradients) {
    total.squares += squares(gradient);
    total.elements += static_cast<double>(gradient.size());
  }
  return total;
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
  const Total total = total_of(reference);
  const double usual = total.elements > 0 ? total.squares / total.elements : 0;
  double error_squares = 0;
  for (const auto& [name, expected] : reference) {
    const auto gradient = found.find(name);
    const double error = gradient == found.end() ? std::numeric_limits<double>::infinity()
                                                 : distance(gradient->second, expected);
    if (error == 0) continue;
    error_squares += error * error;
    const double floor = smallest_scale * std::sqrt(usual * static_cast<double>(expected.size()));
    const double relative = error / std::max(std::sqrt(squares(expected)), floor);
    if (relative > result.largest) result.largest = relative, result.parameter = name;
  }
  result.overall = error_squares > 0 ? std::sqrt(error_squares / total.squares) : 0;
  if (found.size() != reference.size())
    result.overall = result.largest = std::numeric_limits<double>::infinity();
  return result;
}

}  // namespace tidemark::profiler
