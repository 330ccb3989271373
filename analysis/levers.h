// Options of the step outside of what its blocks save that can lower a peak.
#pragma once

#include "analysis/comparison.h"

namespace tidemark {

/// Whose memory a lever is about.
enum class Relief : std::uint8_t { OptimizerStep, Loss, Activations, Fragmentation };

struct Lever {
  std::string option;  ///< as it is typed: "--optimizer-form fused"
  Relief relief{};
  bool is_usual = false;  ///< one that a conclusion names
  Scenario changed;       ///< the scenario with it
};

/// Those that apply to the scenario and are not set. None where the step is a file's. Whether one
/// lowers the peak is another question: changed scenarios answer it when they are evaluated.
std::vector<Lever> levers_of(const Scenario& scenario);

}  // namespace tidemark
