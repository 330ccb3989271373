// Codes a weight by blocks or rows, and the factors of the blocks once more.
#include "profiler/stored_parts.h"

#include <cmath>
#include <span>

#include "base/units.h"
#include "kernels/dynamic_map.h"
#include "kernels/stored_linear/stored_weight.h"
#include "traces/formula.h"

namespace tidemark::profiler {
namespace {

using Numbers = std::vector<double>;

double largest(std::span<const double> values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

/// The largest |x| of each block of so many.
Numbers largest_of_blocks(const Numbers& values, std::int64_t size) {
  Numbers factors;
  const auto step = static_cast<std::size_t>(size);
  for (std::size_t i = 0; i < values.size(); i += step)
    factors.push_back(largest(std::span(values).subspan(i, std::min(step, values.size() - i))));
  return factors;
}

/// Of each x / factor of its block, the nearest number's code.
template <typename Map>
Numbers coded_blocks(const Numbers& values, const Numbers& factors, std::int64_t size,
                     const Map& numbers) {
  Numbers codes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double factor = factors[i / static_cast<std::size_t>(size)];
    const auto x = static_cast<float>(factor > 0 ? values[i] / factor : 0);
    codes.push_back(static_cast<double>(nearest_code(numbers, x)));
  }
  return codes;
}

template <typename Map>
Numbers all_of(const Map& numbers) {
  return {std::begin(numbers), std::end(numbers)};
}

Numbers four_bit_part(const Numbers& weight, std::size_t part, bool nests) {
  const Numbers factors = largest_of_blocks(weight, elements_per_factor);
  const std::array numbers = std::to_array(nf4_numbers);
  if (part == 0) {
    const Numbers codes = coded_blocks(weight, factors, elements_per_factor, numbers);
    Numbers pairs;
    for (std::size_t i = 0; i < codes.size(); i += 2)
      pairs.push_back(16 * codes[i] + (i + 1 < codes.size() ? codes[i + 1] : 0));
    return pairs;
  }
  if (part == 1) {
    if (!nests) return factors;
    return coded_blocks(factors, largest_of_blocks(factors, factors_per_factor), factors_per_factor,
                        dynamic_map(true));
  }
  if (part == 2) return all_of(numbers);
  return part == 3 ? largest_of_blocks(factors, factors_per_factor) : all_of(dynamic_map(true));
}

Numbers int8_part(const Numbers& weight, std::size_t part, std::int64_t in) {
  const Numbers factors = largest_of_blocks(weight, in);
  if (part == 1) return factors;
  Numbers codes;
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const double factor = factors[i / static_cast<std::size_t>(in)];
    const double code = factor > 0 ? std::nearbyint(weight[i] / factor * int8_levels) : 0;
    codes.push_back(code < 0 ? code + 256 : code);
  }
  return codes;
}

bool stores(const OpaqueRow* row) {
  return row && (row->computes == Formula::Nf4Linear || row->computes == Formula::Int8Linear);
}

bool has_coded_factors(const Trace& trace, const Op& op) {
  return trace[trace.inputs(op)[2]].dtype == DType::UInt8;
}

}  // namespace

std::optional<StoredPart> stored_part_of(const Trace& trace, TensorId parameter) {
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    const OpaqueRow* const row = opaque_row(trace, op);
    if (!stores(row)) continue;
    const std::size_t parts = row->computes == Formula::Int8Linear ? 2
                              : has_coded_factors(trace, op)       ? 5
                                                                   : 3;
    for (std::size_t part = 0; part < parts; ++part)
      if (trace.inputs(op)[part + 1] == parameter) return StoredPart{static_cast<OpId>(i), part};
  }
  return std::nullopt;
}

Shape stored_shape(const Trace& trace, OpId op) {
  return {trace[trace.outputs(trace[op])[0]].shape.back(),
          trace[trace.inputs(trace[op])[0]].shape.back()};
}

std::vector<double> stored_values(const Trace& trace, const StoredPart& part,
                                  const std::vector<double>& weight) {
  const Op& op = trace[part.op];
  if (opaque_row(trace, op)->computes == Formula::Int8Linear)
    return int8_part(weight, part.part, stored_shape(trace, part.op)[1]);
  return four_bit_part(weight, part.part, has_coded_factors(trace, op));
}

}  // namespace tidemark::profiler
