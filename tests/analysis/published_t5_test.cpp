// Steps of Megatron-LM's functional tests of T5 on H100 (d98e8a64dd, 2026-08-22,
// golden_values_dev_dgx_h100.json): what the last rank's allocator had after the last step, and at
// most. Nothing of how T5 is simulated was taken from them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/comparison.h"
#include "simulator/parallel/cluster.h"
#include "traces/models/config_reader.h"

namespace tidemark::published_t5_test {
namespace {

constexpr auto small = R"({"model_type": "megatron-t5", "vocab_size": 29184})";
constexpr auto large = R"({"model_type": "megatron-t5", "vocab_size": 29184,
    "encoder_num_layers": 24, "hidden_size": 4096, "num_attention_heads": 64, "kv_channels": 64,
    "ffn_hidden_size": 10240})";

struct PublishedStep {
  const char* name;
  const char* config;
  const char* framework;
  Attention attention;
  const char* mesh;
  bool is_cut;  ///< --sp
  std::int64_t at_rest, peak;
};

// 512 tokens are read and 128 written, by four samples of each rank.
Report predicted(const PublishedStep& published) {
  Scenario scenario{.model = {},
                    .step = {},
                    .device = device_of(find_cluster("dgx-h100")),
                    .strategies = {parse_strategy("vanilla")}};
  scenario.model.config = read_model_config(published.config, "config.json").config;
  StepOptions& step = scenario.step;
  step.batch = 4;
  step.sequence = 512;
  step.target_sequence = 128;
  step.precision = Precision::Bf16;
  step.master_weights = true;
  step.framework = published.framework;
  step.attention = published.attention;
  step.mesh = parse_mesh(published.mesh);
  step.sequence_parallel = published.is_cut;
  const std::int64_t samples = published.config == large ? 8 : 32;
  step.accumulate = {samples / (step.batch * step.mesh[Axis::Data])};
  step.shard = parse_sharding("megatron:whole-states");
  return compare(scenario).rows.at(0);
}

TEST(PublishedT5, IsFoundWithinHalfAPercent) {
  using enum Attention;
  constexpr auto engine = "megatron-deterministic", own = "megatron-local";
  for (const PublishedStep& published : {
           PublishedStep{"t5_11b_mcore_tp4_pp1", large, engine, Sdpa, "dp=2,tp=4", false,
                         40'735'711'232, 44'989'894'656},
           PublishedStep{"t5_mcore_te_tp1_pp1_vp1_resume_torch", small, engine, Math, "dp=8", false,
                         4'169'918'976, 6'207'810'560},
           PublishedStep{"t5_mcore_te_tp2_pp1_vp1_sequence_parallel", small, engine, Math,
                         "dp=4,tp=2", true, 2'195'274'752, 3'234'076'160},
           PublishedStep{"t5_mcore_tp2_pp1_vp1", small, own, Math, "dp=4,tp=2", false,
                         2'171'288'064, 3'332'788'736},
       }) {
    const Report report = predicted(published);
    const auto expect_near = [&](Bytes found, std::int64_t bytes) {
      const auto wanted = static_cast<double>(bytes);
      EXPECT_NEAR(static_cast<double>(found.count), wanted, wanted / 200) << published.name;
    };
    expect_near(report.allocated_at_rest, published.at_rest);
    expect_near(report.allocated_peak, published.peak);
  }
}

}  // namespace
}  // namespace tidemark::published_t5_test
