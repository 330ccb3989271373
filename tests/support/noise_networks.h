// Small networks whose gradients say what codes and approximate operators make of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/plan.h"
#include "traces/models/config_reader.h"

namespace tidemark {

struct NoiseNetwork {
  std::string name;
  Model model;
  std::shared_ptr<const Trace> trace;
};

/// Of five families, with scores that lie in memory, and no dropout.
std::vector<NoiseNetwork> noise_networks();
/// The same with norms that share their output (MS-norm), and with dropout, where they apply: other
/// ops read what is saved.
std::vector<NoiseNetwork> noise_network_variants();

/// ‖g − exact‖² / ‖exact‖² of real steps on the CPU in which these storages are kept in codes of so
/// many bits: the mean over `draws` draws of the noise for each of `seeds` parameters and inputs.
double measured_noise(const Trace& trace, const std::vector<TensorId>& coded, int bits,
                      std::uint64_t seeds = 2, std::uint64_t draws = 2);
/// … in which the strategy stands for vanilla.
double measured_noise(std::shared_ptr<const Trace> trace, const std::string& strategy);

}  // namespace tidemark
