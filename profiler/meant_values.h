// The numbers of inputs that follow from what they mean: positions, masks, rotary tables, places of
// windows.
#pragma once

#include <optional>
#include <vector>

#include "traces/fill.h"
#include "traces/tensor.h"

namespace tidemark::profiler {

/// One number per element, made from its row-major place.
template <typename Make>
std::vector<double> filled(const Tensor& tensor, Make make) {
  std::vector<double> values(static_cast<std::size_t>(numel(tensor.shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = make(static_cast<std::int64_t>(i));
  return values;
}

/// Nothing for data, which may be any. The tensor suits the fill, as check(trace) makes sure.
std::optional<std::vector<double>> meant_values(const Tensor& tensor, const InputFill& fill);

/// By pair of a head [d]: the angle that it turns by from a token to the next, of `tokens`.
std::vector<double> rotary_frequencies(const Rotary& rotary, std::int64_t width,
                                       std::int64_t tokens);

}  // namespace tidemark::profiler
