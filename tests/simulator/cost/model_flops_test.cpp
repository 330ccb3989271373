// Model FLOPs against the closed formula of arXiv 2204.02311, appendix B.
#include "simulator/cost/model_flops.h"

#include <gtest/gtest.h>

#include "analysis/report.h"
#include "traces/presets.h"

namespace tidemark::model_flops_test {
namespace {

// 6 FLOP per weight of a matrix product and token, 12·L·d·T per token for attention; GPT-2 has 12
// layers of 12·768² weights and the head 50257·768.
TEST(ModelFlops, AreThoseOfTheFormula) {
  constexpr double layers = 12, width = 768, tokens = 1024, vocabulary = 50257, batch = 2;
  const double weights = layers * 12 * width * width + vocabulary * width;
  const double expected = batch * tokens * (6 * weights + 12 * layers * width * tokens);
  for (const Attention attention : {Attention::Flash, Attention::Math}) {
    const Trace trace =
        build_trace(find_model("gpt2"), {.batch = 2, .sequence = 1024, .attention = attention});
    EXPECT_DOUBLE_EQ(model_flops(trace), expected);
  }
}

// Frozen weights need no gradient, but the gradient passes through.
TEST(ModelFlops, AFrozenWeightSavesAThird) {
  const double full = model_flops(build_trace(find_model("gpt2"), {}));
  StepOptions adapters;
  adapters.tuning = parse_tuning("lora:r=1,targets=q,v");
  const double frozen = model_flops(build_trace(find_model("gpt2"), adapters));
  EXPECT_NEAR(frozen / full, 2.0 / 3, 0.05);
}

// Products of codes are held against the peak of their own units, all others against bf16's.
TEST(ModelFlops, UtilizationIsThatOfTheUnitsThatProductsRunOn) {
  const auto trace = std::make_shared<const Trace>(build_trace(
      find_model("phi-2"),
      {.batch = 2, .precision = Precision::Bf16, .linears = parse_coded_linears("fp8")}));
  const ModelFlops flops = flops_by_unit(*trace);
  EXPECT_GT(flops.fp8, 2 * flops.own);
  EXPECT_EQ(flops.fp4, 0);
  EXPECT_DOUBLE_EQ(flops.all(), model_flops(*trace));
  const Device device = find_device("h100");
  const Report report =
      evaluate(trace, parse_strategy("vanilla"), device, {.capacity = device.capacity}).report;
  const double seconds = static_cast<double>(report.step.count()) / 1e9;
  EXPECT_DOUBLE_EQ(report.mfu,
                   flops.own / (seconds * 989.4e12) + flops.fp8 / (seconds * 1978.9e12));
  EXPECT_LT(report.mfu, 1);
}

// The same network in more time: recomputation and a slower step lower the utilization.
TEST(ModelFlops, UtilizationCountsNoRecomputation) {
  const auto trace = std::make_shared<const Trace>(
      build_trace(find_model("vit-b-16"), {.batch = 64, .precision = Precision::AmpFp16}));
  const Device device = find_device("a100-80gb");
  const auto report = [&](const char* strategy) {
    return evaluate(trace, parse_strategy(strategy), device, {.capacity = device.capacity}).report;
  };
  const Report vanilla = report("vanilla"), checkpoint = report("checkpoint");
  const double seconds = static_cast<double>(vanilla.step.count()) / 1e9;
  EXPECT_DOUBLE_EQ(vanilla.mfu, model_flops(*trace) / (seconds * 312e12));
  EXPECT_DOUBLE_EQ(vanilla.mfu * static_cast<double>(vanilla.step.count()),
                   checkpoint.mfu * static_cast<double>(checkpoint.step.count()));
  EXPECT_GT(vanilla.mfu, 0.1);
  EXPECT_LT(vanilla.mfu, 1);
}

TEST(Throughput, IsInWhatASampleConsistsOf) {
  const Device device = find_device("a100-80gb");
  const auto report = [&](const char* model, const StepOptions& step) {
    return evaluate(std::make_shared<const Trace>(build_trace(find_model(model), step)),
                    parse_strategy("vanilla"), device, {.capacity = device.capacity})
        .report;
  };
  const Report text = report("gpt2", {.batch = 4, .sequence = 128});
  EXPECT_EQ(text.throughput_unit, "tokens");
  EXPECT_DOUBLE_EQ(text.throughput, text.samples_per_second * 128);
  // Of what is written, not of the places of what is heard.
  const Report sound = report("whisper-small", {.batch = 2, .target_sequence = 50});
  EXPECT_EQ(sound.throughput_unit, "tokens");
  EXPECT_DOUBLE_EQ(sound.throughput, sound.samples_per_second * 50);
  const Report image = report("swin-t", {.batch = 4});
  EXPECT_EQ(image.throughput_unit, "images");
  EXPECT_DOUBLE_EQ(image.throughput, image.samples_per_second);
}

}  // namespace
}  // namespace tidemark::model_flops_test
