// What a replay starts from: parameters as PyTorch initializes them, and synthetic inputs of the
// right kind. Values follow from the seed and the tensor's key, so that a parameter is the same
// under every strategy, whatever it is called.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "profiler/merged_affine.h"

namespace tidemark::profiler {

/// Weights uniform in ±1/√(inputs), embedding tables normal with 0.02, norms 1 and 0, each
/// slightly disturbed so that no gradient vanishes by symmetry. Row-major; of floats the first
/// `most` at most.
std::vector<double> initial_parameter(const Trace& trace, TensorId parameter, std::uint64_t seed,
                                      std::int64_t most = std::numeric_limits<std::int64_t>::max());

/// Of all parameters, by name.
NamedValues initial_parameters(const Trace& trace, std::uint64_t seed = 1);

/// Adds those whose names are not among the values yet.
void add_initial_parameters(NamedValues& values, const Trace& trace, std::uint64_t seed);

/// How many different values an integer input may have: rows of the table that it indexes, or
/// classes of the loss, through views and copies.
std::int64_t index_range(const Trace& trace, TensorId input);

/// What the trace says that the input means: positions, masks, rotary tables, window indices. Else
/// images normal; token ids and targets uniform over what reads them. Row-major.
std::vector<double> synthetic_input(const Trace& trace, TensorId input, std::uint64_t seed);

}  // namespace tidemark::profiler
