// What was measured is shared out among the storages and ops of a trace, and nothing is lost.
#include "simulator/noise/gradient_noise.h"

#include <gmock/gmock.h>

#include <cmath>

#include "simulator/strategies/strategy.h"
#include "tests/support/small_models.h"

namespace tidemark::gradient_noise_test {
namespace {

Trace trace_of(const Model& model, const std::string& strategy = "vanilla") {
  const StepOptions step{.batch = 2, .attention = Attention::Math};
  const PlannedStep planned =
      plan_step(std::make_shared<Trace>(build_trace(model, step)), parse_strategy(strategy));
  EXPECT_EQ(planned.refusal, "");
  return *planned.trace;
}

// Of all storages in blocks that these alone read, with codes of one level above 0.
double total(const Trace& trace, std::string_view readers) {
  const Needs needs = derive_needs(trace);
  const GradientNoise noise(trace, needs);
  const std::vector<std::string> found = readers_in_codes(trace, needs);
  double sum = 0;
  for (std::size_t t = 0; t < found.size(); ++t)
    if (found[t] == readers && trace[needs.producer[t]].block >= 0)
      sum += noise.of_codes(static_cast<TensorId>(t), 8) * 255 * 255;
  return sum;
}

// Means over the networks of small_networks.json: (1.3), (0.278 + 0.105 + 5.7) / 3.
TEST(GradientNoise, IsSharedOutWhateverTheDepth) {
  for (const std::int64_t depth : {2, 5}) {
    EXPECT_NEAR(total(trace_of(small_llama(depth)), "mul.x0"), 1.3, 1e-9);
    EXPECT_NEAR(total(trace_of(small_vit(depth)), "gelu.x0"), 5.641 / 3, 1e-9);
  }
}

TEST(GradientNoise, FallsWithTheSquareOfTheLevels) {
  const Trace trace = trace_of(small_vit());
  const Needs needs = derive_needs(trace);
  const GradientNoise noise(trace, needs);
  const std::vector<std::string> readers = readers_in_codes(trace, needs);
  const auto storage =
      static_cast<TensorId>(std::ranges::find(readers, "gelu.x0") - readers.begin());
  EXPECT_DOUBLE_EQ(noise.of_codes(storage, 4), 17 * 17 * noise.of_codes(storage, 8));
  EXPECT_DOUBLE_EQ(noise.of_codes(storage, 2), 25 * noise.of_codes(storage, 4));
}

TEST(GradientNoise, IsUnknownWhereNobodyMeasuredTheReaders) {
  const Trace trace = trace_of(small_vit());
  const Needs needs = derive_needs(trace);
  const GradientNoise noise(trace, needs);
  const std::vector<std::string> readers = readers_in_codes(trace, needs);
  for (std::size_t t = 0; t < readers.size(); ++t)
    EXPECT_EQ(std::isinf(noise.of_codes(static_cast<TensorId>(t), 8)), readers[t].empty())
        << trace.tensors[t].name;
}

// 0.671, 0.105, 0.02 and 0.00747 of all blocks together; of half of them half.
TEST(GradientNoise, OfOperatorsIsThatOfTheBlocksThatHaveThem) {
  const auto sum = [](const std::string& strategy) {
    const Trace trace = trace_of(small_vit(4), strategy);
    const GradientNoise noise(trace, derive_needs(trace));
    double result = 0;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) result += noise.of_op(static_cast<OpId>(i));
    return result;
  };
  const double all = (0.671 + 0.105 + 0.02 + 0.00747) / 4;
  EXPECT_EQ(sum("vanilla"), 0);
  EXPECT_EQ(sum("ms-bp"), 0);
  EXPECT_NEAR(sum("approx-bp"), all, 1e-9);
  EXPECT_NEAR(sum("approx-bp:blocks=0-1"), all / 2, 1e-9);
}

// Every tensor that Mesa codes, in every family: most readers were measured.
TEST(GradientNoise, IsKnownForAllThatMesaCodesInCommonFamilies) {
  for (const Model& model : {small_vit(), small_swin(), small_bert(), small_gpt2(), small_llama()})
    for (const char* strategy : {"vanilla", "ms-bp", "lowmemorybp"}) {
      const Trace trace = trace_of(model, strategy);
      const Needs needs = derive_needs(trace);
      const GradientNoise noise(trace, needs);
      const std::vector<std::string> readers = readers_in_codes(trace, needs);
      for (std::size_t t = 0; t < readers.size(); ++t) {
        const double found = noise.of_codes(static_cast<TensorId>(t), 8);
        EXPECT_EQ(std::isfinite(found), !readers[t].empty())
            << model.name << " " << strategy << " " << trace.tensors[t].name << " " << readers[t];
      }
    }
}

}  // namespace
}  // namespace tidemark::gradient_noise_test
