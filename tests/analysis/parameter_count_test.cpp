// Parameters as people count them, however a step stores or deals them out.
#include "analysis/parameter_count.h"

#include <gtest/gtest.h>

#include "analysis/comparison.h"

namespace tidemark::parameter_count_test {
namespace {

constexpr std::int64_t llama_7b = 6'738'415'616;  // of meta-llama/Llama-2-7b-hf

TEST(ParameterCount, CountsATiedTableOnce) {
  EXPECT_EQ(count_parameters(build_trace(find_model("gpt2"), {})).all, 124'439'808);
}

TEST(ParameterCount, PackedWeightsAreCountedAsWhatTheyWere) {
  const Model model = find_model("llama-7b");
  StepOptions step{.batch = 1, .precision = Precision::Bf16, .tuning = parse_tuning("lora:r=8")};
  const ParameterCount whole = count_parameters(model, step);
  EXPECT_EQ(whole.all - whole.trainable, llama_7b);
  for (const BaseWeights base :
       {BaseWeights::Nf4, BaseWeights::Nf4Double, BaseWeights::Int8, BaseWeights::Fp8}) {
    step.base = base;
    EXPECT_EQ(count_parameters(model, step), whole);
    EXPECT_LT(count_parameters(build_trace(model, step)).all, whole.all + llama_7b / 1000);
  }
}

TEST(ParameterCount, RanksCountTheWholeModel) {
  Scenario scenario{.model = find_model("gpt2"),
                    .step = {.batch = 1},
                    .device = find_device("a100-80gb"),
                    .strategies = {parse_strategy("vanilla")}};
  scenario.step.mesh[Axis::Tensor] = 4;
  EXPECT_EQ(compare(scenario).parameters, 124'439'808);
  scenario.step.mesh = {};
  scenario.step.base = BaseWeights::Nf4;
  scenario.step.tuning = parse_tuning("lora:r=8");
  const Comparison packed = compare(scenario);
  EXPECT_EQ(packed.parameters - packed.trainable, 124'439'808);
}

TEST(ParameterCount, RanksThatShareExpertsCountThemAll) {
  Scenario scenario{.model = find_model("mixtral-8x7b"),
                    .step = {.batch = 1, .framework = "megatron"},
                    .device = find_device("h100"),
                    .strategies = {parse_strategy("vanilla")}};
  const std::int64_t whole = count_parameters(scenario.model, scenario.step).all;
  EXPECT_EQ(whole, 46'702'792'704);  // of mistralai/Mixtral-8x7B-v0.1
  scenario.step.mesh[Axis::Data] = 8;
  scenario.step.mesh.experts = 8;
  scenario.step.shard = parse_sharding("megatron");
  EXPECT_EQ(compare(scenario).parameters, whole);
}

}  // namespace
}  // namespace tidemark::parameter_count_test
