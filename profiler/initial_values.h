// What a replay starts from: parameters as PyTorch initializes them, and synthetic inputs of the
// right kind. Values follow from the seed and the tensor's name, so that a parameter is the same
// under every strategy.
#pragma once

#include <cstdint>
#include <vector>

#include "profiler/merged_affine.h"

namespace tidemark {

/// Weights uniform in ±1/√(inputs), embedding tables normal with 0.02, norms 1 and 0, each
/// slightly disturbed so that no gradient vanishes by symmetry. Row-major.
std::vector<double> initial_parameter(const Trace& trace, TensorId parameter, std::uint64_t seed);

/// Of all parameters, by name.
NamedValues initial_parameters(const Trace& trace, std::uint64_t seed = 1);

/// Adds those whose names are not among the values yet.
void add_initial_parameters(NamedValues& values, const Trace& trace, std::uint64_t seed);

/// Images normal; token ids and targets uniform over what reads them; positions, masks, rotary
/// tables and window indices as the models define them. Row-major.
std::vector<double> synthetic_input(const Trace& trace, TensorId input, std::uint64_t seed);

}  // namespace tidemark
