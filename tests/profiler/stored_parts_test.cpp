// Codes and factors together are the weight that was stored, up to half a step of the codes.
#include "profiler/stored_parts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/stored_linear/stored_weight.h"
#include "profiler/initial_values.h"
#include "profiler/numbers.h"
#include "tests/support/small_families.h"

namespace tidemark::profiler::stored_parts_test {
namespace {

struct Stored {
  std::vector<std::vector<std::byte>> parts;
  std::vector<double> weight;
  Shape shape;
};

/// Of the first linear with such a base.
Stored stored_with(BaseWeights base) {
  StepOptions options = small_qlora(base);
  options.batch = 1, options.precision = Precision::Bf16;
  const Trace trace = build_trace(small_llama(1), options);
  Stored stored;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    const auto part = stored_part_of(trace, id);
    if (!part || part->part != stored.parts.size()) continue;
    stored.shape = stored_shape(trace, part->op);
    if (stored.weight.empty())
      for (int i = 0; i < static_cast<int>(numel(stored.shape)); ++i)
        stored.weight.push_back(std::sin(i * 0.7) / (1 + i % 13));
    stored.parts.push_back(bytes_of(stored_values(trace, *part, stored.weight), trace[id].dtype));
    EXPECT_EQ(std::ssize(stored.parts.back()), size(trace[id]).count) << trace[id].name;
  }
  return stored;
}

template <typename T>
const T* as(const std::vector<std::byte>& bytes) {
  return reinterpret_cast<const T*>(bytes.data());
}

TEST(StoredParts, FourBitsAreTheNearestNumberOfTheirBlock) {
  for (const bool nests : {false, true}) {
    const Stored stored = stored_with(nests ? BaseWeights::Nf4Double : BaseWeights::Nf4);
    ASSERT_EQ(stored.parts.size(), nests ? 5u : 3u);
    const auto& p = stored.parts;
    FourBitWeight weight{.codes = as<std::uint8_t>(p[0]), .map = as<float>(p[2])};
    if (nests) {
      weight.factor_codes = as<std::uint8_t>(p[1]);
      weight.outer_factors = as<float>(p[3]), weight.factor_map = as<float>(p[4]);
    } else {
      weight.factors = as<float>(p[1]);
    }
    // The widest gap of the numbers is that of 0.72 and 1; factors in a byte are off by 4 % at most
    // where they are near the largest of theirs.
    for (std::size_t i = 0; i < stored.weight.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const double factor = static_cast<double>(weight.factor(at / elements_per_factor));
      EXPECT_NEAR(static_cast<double>(weight(at)), stored.weight[i],
                  factor * (0.153 + (nests ? 0.05 : 0)))
          << i;
    }
  }
}

TEST(StoredParts, EightBitsAreWithinHalfAStepOfTheRow) {
  const Stored stored = stored_with(BaseWeights::Int8);
  ASSERT_EQ(stored.parts.size(), 2u);
  const auto* const codes = as<std::uint8_t>(stored.parts[0]);
  const auto* const factors = as<float>(stored.parts[1]);
  for (std::size_t i = 0; i < stored.weight.size(); ++i) {
    const double factor =
        static_cast<double>(factors[i / static_cast<std::size_t>(stored.shape[1])]);
    const double found = static_cast<double>(int8_code(codes[i])) * factor / 127;
    EXPECT_NEAR(found, stored.weight[i], factor / 127 * 0.501) << i;
  }
}

TEST(StoredParts, OtherParametersAreNone) {
  const Trace trace = build_trace(small_llama(1), {.batch = 1});
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    EXPECT_FALSE(stored_part_of(trace, static_cast<TensorId>(t)));
}

}  // namespace
}  // namespace tidemark::profiler::stored_parts_test
