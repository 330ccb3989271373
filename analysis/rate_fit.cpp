// Gauss-Newton on the logarithms of factors and of times: a few steps, for times are nearly sums of
// what is done at each rate.
#include "analysis/rate_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace tidemark {
namespace {

constexpr std::size_t rate_count = 4;
using Factors = std::array<double, rate_count>;  ///< logarithms
constexpr std::array<std::string_view, rate_count> rate_names = {
    "matrix products", "memory", "fused attention", "the host's launches"};

// Steps of a run differ by a few hundredths, rates from machine to machine by a few tenths, and how
// fast hosts launch by factors: so much does a step weigh against the device's own rates.
constexpr double error_of_steps = 0.03;
constexpr Factors error_of_rates = {0.3, 0.3, 0.3, 1};
// A host that is ahead has no slope: the search begins with one that is not, too.
constexpr std::array<Factors, 2> starts = {Factors{}, Factors{0, 0, 0, -2}};
constexpr double difference = 0.05;  // of a factor, for derivatives
constexpr double longest_move = 0.7, small_move = 1e-3;
constexpr int most_moves = 8;

// The limits are those of device files.
double scaled(double value, double log_factor, double most) {
  return std::clamp(value * std::exp(log_factor), 0.01, most);
}

Device with(Device device, const Factors& factors) {
  for (double& efficiency : device.gemm_efficiency)
    if (efficiency > 0) efficiency = scaled(efficiency, factors[0], 1.5);
  device.memory_efficiency = scaled(device.memory_efficiency, factors[1], 1);
  if (device.attention_efficiency)
    *device.attention_efficiency = scaled(*device.attention_efficiency, factors[2], 1.5);
  device.host_launch = Nanoseconds{
      std::llround(static_cast<double>(device.host_launch.count()) * std::exp(-factors[3]))};
  return device;
}

struct Problem {
  const Device& device;
  const std::vector<Nanoseconds>& measured;
  const StepPredictor& predict;
  std::size_t without;  // this step; measured.size(): none

  std::vector<double> errors(const Factors& factors) const {
    const Device changed = with(device, factors);
    std::vector<double> errors;
    for (std::size_t i = 0; i < measured.size(); ++i) {
      if (i == without) continue;
      const double ratio = static_cast<double>(predict(changed, i).count()) /
                           static_cast<double>(measured[i].count());
      errors.push_back(std::log(ratio) / error_of_steps);
    }
    return errors;
  }
};

using Equation = std::array<double, rate_count + 1>;

// Of a positive definite matrix beside its right-hand side: no pivots are needed.
Factors solved(std::array<Equation, rate_count> rows) {
  for (std::size_t p = 0; p < rate_count; ++p)
    for (std::size_t r = 0; r < rate_count; ++r) {
      if (r == p) continue;
      const double share = rows[r][p] / rows[p][p];
      for (std::size_t c = p; c <= rate_count; ++c) rows[r][c] -= share * rows[p][c];
    }
  Factors solution{};
  for (std::size_t p = 0; p < rate_count; ++p) solution[p] = rows[p][rate_count] / rows[p][p];
  return solution;
}

// Least squares of errors and of the factors themselves, with both as straight lines here.
Factors next_move(const Problem& problem, const Factors& factors) {
  const std::vector<double> here = problem.errors(factors);
  std::array<std::vector<double>, rate_count> slopes;
  for (std::size_t p = 0; p < rate_count; ++p) {
    Factors beside = factors;
    beside[p] += difference;
    slopes[p] = problem.errors(beside);
    for (std::size_t i = 0; i < here.size(); ++i)
      slopes[p][i] = (slopes[p][i] - here[i]) / difference;
  }
  std::array<Equation, rate_count> rows{};
  for (std::size_t p = 0; p < rate_count; ++p) {
    const double own = 1 / (error_of_rates[p] * error_of_rates[p]);
    rows[p][p] = own;
    rows[p][rate_count] = -own * factors[p];
    for (std::size_t i = 0; i < here.size(); ++i) {
      for (std::size_t q = 0; q < rate_count; ++q) rows[p][q] += slopes[p][i] * slopes[q][i];
      rows[p][rate_count] -= slopes[p][i] * here[i];
    }
  }
  return solved(rows);
}

double squares(const Problem& problem, const Factors& factors) {
  double sum = 0;
  for (const double error : problem.errors(factors)) sum += error * error;
  for (std::size_t p = 0; p < rate_count; ++p)
    sum += factors[p] * factors[p] / (error_of_rates[p] * error_of_rates[p]);
  return sum;
}

Factors fitted_from(const Problem& problem, Factors factors) {
  for (int i = 0; i < most_moves; ++i) {
    double longest = 0;
    const Factors move = next_move(problem, factors);
    for (std::size_t p = 0; p < rate_count; ++p) {
      factors[p] += std::clamp(move[p], -longest_move, longest_move);
      longest = std::max(longest, std::abs(move[p]));
    }
    if (longest < small_move) break;
  }
  return factors;
}

Factors fitted(const Problem& problem) {
  Factors best{};
  double least = squares(problem, best);
  for (const Factors& start : starts) {
    const Factors found = fitted_from(problem, start);
    if (const double sum = squares(problem, found); sum < least) least = sum, best = found;
  }
  return best;
}

constexpr std::string_view fit_mark = " (fitted to ", source_mark = " before: ";

// Of what was fitted already: the source before.
std::string_view origin_of(std::string_view source) {
  const std::size_t mark = source.find(source_mark);
  return mark == std::string_view::npos ? source : source.substr(mark + source_mark.size());
}

// The title is what reports show; the name still says which clusters have the device.
void note_fit(Device& device, const Device& before, std::size_t count) {
  const std::string steps = fmt::format("{} timed step{}", count, count == 1 ? "" : "s");
  device.title =
      fmt::format("{}{}{})", before.title.substr(0, before.title.find(fit_mark)), fit_mark, steps);
  const std::vector<Figure> own = figures(before);
  for (const Figure& figure : figures(device)) {
    const auto old = std::ranges::find(own, figure.key, &Figure::key);
    if (old->number == figure.number) continue;
    device.sources[figure.key] = {FigureKind::Derived,
                                  fmt::format("fitted to {}; {}{}{}", steps, old->text, source_mark,
                                              origin_of(old->source.text))};
  }
}

}  // namespace

RateFit fit_rates(const Device& device, const std::vector<Nanoseconds>& measured,
                  const StepPredictor& predict) {
  CHECK(device.curves.empty() && !measured.empty());
  const Factors factors = fitted({device, measured, predict, measured.size()});
  RateFit fit{with(device, factors), {}, {}};
  for (std::size_t p = 0; p < rate_count; ++p)
    fit.rates.push_back({rate_names[p], std::exp(factors[p])});
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const Device others = with(device, fitted({device, measured, predict, i}));
    fit.steps.push_back({predict(device, i), predict(fit.device, i), predict(others, i)});
  }
  note_fit(fit.device, device, measured.size());
  return fit;
}

}  // namespace tidemark
