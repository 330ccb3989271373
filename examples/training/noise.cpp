// Mean and sample deviation over seeds, and distances from vanilla in its standard deviations.
#include "examples/training/noise.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace tidemark::training {

double measured(const TrainedRun& run, Measure measure) {
  if (measure == Measure::HeldOutLoss) return run.held_out_loss;
  if (measure == Measure::Accuracy) return run.accuracy.value_or(0);
  const auto last = std::max<std::ptrdiff_t>(1, std::ssize(run.losses) / 10);
  return std::accumulate(run.losses.end() - last, run.losses.end(), 0.0) /
         static_cast<double>(last);
}

Spread spread(const Trained& trained, Measure measure) {
  const auto count = static_cast<double>(trained.runs.size());
  Spread result;
  for (const TrainedRun& run : trained.runs) result.mean += measured(run, measure) / count;
  if (trained.runs.size() < 2) return result;
  double squares = 0;
  for (const TrainedRun& run : trained.runs)
    squares += std::pow(measured(run, measure) - result.mean, 2);
  result.deviation = std::sqrt(squares / (count - 1));
  return result;
}

bool is_identical(const Trained& a, const Trained& b) {
  const std::size_t seeds = std::min(a.runs.size(), b.runs.size());
  return seeds > 0 &&
         std::ranges::equal(std::span(a.runs).first(seeds), std::span(b.runs).first(seeds), {},
                            &TrainedRun::losses, &TrainedRun::losses);
}

double in_deviations(const Trained& trained, const Trained& vanilla, Measure measure) {
  const Spread noise = spread(vanilla, measure);
  const double difference = spread(trained, measure).mean - noise.mean;
  return difference == 0 ? 0 : difference / noise.deviation;
}

bool is_within_noise(const Trained& trained, const Trained& vanilla, Measure measure) {
  return std::abs(in_deviations(trained, vanilla, measure)) <= noise_limit;
}

}  // namespace tidemark::training
