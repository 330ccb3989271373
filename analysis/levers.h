// Options of the step outside of what its blocks save that can lower a peak.
#pragma once

#include "analysis/comparison.h"

namespace tidemark {

/// Whose memory a lever is about.
enum class Relief : std::uint8_t { OptimizerStep, Loss, Activations, Fragmentation };

/// The least share of its memory or time by which a lever must change a step to be worth naming:
/// less is below what the simulation of times and the allocator's rounding are good for.
inline constexpr double least_effect = 1e-3;

struct Lever {
  std::string option;        ///< as it is typed: "--optimizer-form fused"
  std::string_view does;     ///< what it does, in one line
  std::string_view caution;  ///< what it changes beside memory and time, or ""
  Relief relief{};
  bool is_usual = false;              ///< one that a conclusion names
  void (*set)(Scenario& scenario){};  ///< pulls it, beside whatever else was changed
  Scenario changed;                   ///< the scenario with it
};

/// Those that apply to the scenario and are not set. None where the step is a file's. Whether one
/// lowers the peak is another question: changed scenarios answer it when they are evaluated.
std::vector<Lever> levers_of(const Scenario& scenario);

}  // namespace tidemark
