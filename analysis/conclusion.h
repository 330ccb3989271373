// What follows from a comparison: facts, and the sentences that say them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/report.h"

namespace tidemark {

/// Strategies that tie: equal to the tenth of a percent that tables show.
struct Standing {
  std::vector<std::string> strategies;  ///< of those that need least the fastest first
  Bytes allocated;                      ///< of the first
  std::optional<double> time_ratio;     ///< of the first, against vanilla
  bool one_time = true;                 ///< the others take as long

  bool operator==(const Standing&) const = default;
};

/// What keeps a row out.
struct Shortage {
  Bytes short_by;                       ///< 0: fragmentation alone
  std::optional<bool> fits_expandable;  ///< with expandable segments, if it is fragmentation

  bool operator==(const Shortage&) const = default;
};

/// An option that lowers a peak which no strategy lowers, and what would then be needed.
struct Remedy {
  std::string option;
  Bytes allocated;
  bool fits = false;

  bool operator==(const Remedy&) const = default;
};

struct Conclusion {
  std::string device;
  Bytes capacity;
  std::size_t compared = 0;          ///< strategies that apply
  std::optional<Standing> fastest;   ///< of those that fit
  std::optional<Standing> smallest;  ///< of those that fit; of all if none does
  Shortage nearest;                  ///< of the smallest, if nothing fits
  std::optional<Shortage> vanilla;   ///< if it does not fit and another does
  /// What makes the smallest's peak, where no strategy gets below it or nothing fits.
  PeakMaker maker = PeakMaker::Other;
  BytesByCategory at_peak{};
  std::vector<Remedy> remedies;

  bool operator==(const Conclusion&) const = default;
};

/// Without remedies, which need further predictions.
Conclusion conclude(std::span<const Report> rows, const Device& device, Bytes capacity);

/// One to three sentences.
std::string to_text(const Conclusion& conclusion);

}  // namespace tidemark
