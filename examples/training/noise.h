// Whether a strategy trains as well as vanilla: differences in units of what the seed alone does.
#pragma once

#include "examples/training/trainer.h"

namespace tidemark::training {

/// Of one number over the seeds of a strategy.
struct Spread {
  double mean = 0, deviation = 0;  ///< of the sample; 0 for a single seed
};

enum class Measure : std::uint8_t { FinalLoss, HeldOutLoss, Accuracy };

/// Of FinalLoss: the mean over the last tenth of the steps, because one batch says little.
double measured(const TrainedRun& run, Measure measure);
Spread spread(const Trained& trained, Measure measure);

/// Every loss of every seed that both have is the same number, to the bit.
bool is_identical(const Trained& a, const Trained& b);

/// Vanilla's noise is the yardstick, so it trains on more seeds than the others.
inline constexpr std::int64_t vanilla_seeds_per_seed = 3;

/// A strategy is within noise if its mean is at most this many of vanilla's standard deviations
/// away. Where chance alone is at work, the difference of means over n and 3n seeds has a deviation
/// of √(1/n + 1/3n): the limit is 3 of those for n = 3.
inline constexpr double noise_limit = 2;

/// (mean − vanilla's mean) / vanilla's deviation; 0 if there is no difference.
double in_deviations(const Trained& trained, const Trained& vanilla, Measure measure);
bool is_within_noise(const Trained& trained, const Trained& vanilla, Measure measure);

}  // namespace tidemark::training
