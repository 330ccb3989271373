// Steps of Megatron-LM's functional tests hybrid_mr_mcore_te_… on H100 (d98e8a64dd, 2026-08-22,
// golden_values_dev_dgx_h100.json): what the last rank's allocator had after the last step, and at
// most. Nothing of how state-space layers are simulated was taken from them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/comparison.h"
#include "simulator/parallel/cluster.h"
#include "traces/models/config_reader.h"

namespace tidemark::published_hybrids_test {
namespace {

struct PublishedStep {
  const char* mesh;
  const char* schedule;
  std::int64_t words;  ///< GPT-2's, filled up to 128 for each tensor-parallel rank
  std::int64_t at_rest, peak;
};

constexpr auto config = R"({{"model_type": "megatron-hybrid", "hidden_size": 1024,
    "num_attention_heads": 16, "num_query_groups": 8, "max_position_embeddings": 1024,
    "position_embedding_type": "learned_absolute", "vocab_size": {},
    "hybrid_layer_pattern": "M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-"}})";

Report predicted(const PublishedStep& published) {
  Scenario scenario{.model = {},
                    .step = {},
                    .device = device_of(find_cluster("dgx-h100")),
                    .strategies = {parse_strategy("vanilla")}};
  scenario.model.config =
      read_model_config(fmt::format(config, published.words), "config.json").config;
  StepOptions& step = scenario.step;
  step.batch = 4;
  step.sequence = 1024;
  step.precision = Precision::Bf16;
  step.master_weights = true;
  step.framework = "megatron-deterministic";
  step.attention = Attention::Math;
  step.mesh = parse_mesh(published.mesh);
  step.accumulate = {32 / (step.batch * step.mesh[Axis::Data])};
  step.shard = parse_sharding("megatron:overlap,no-fusion");
  if (const std::int64_t stages = step.mesh[Axis::Pipeline]; stages > 1) {
    step.schedule = parse_schedule(published.schedule);
    step.rank = RankClass{stages - 1};
  }
  return compare(scenario).rows.at(0);
}

TEST(PublishedHybrids, AreFoundWithinAQuarterOfAPercent) {
  for (const PublishedStep& published : {
           PublishedStep{"dp=8", "", 50'304, 3'117'479'936, 10'145'497'088},
           PublishedStep{"dp=4,tp=2", "", 50'432, 1'917'382'656, 5'907'976'192},
           PublishedStep{"pp=4,dp=2", "1f1b", 50'304, 1'784'293'376, 4'483'712'000},
           PublishedStep{"pp=2,dp=4", "interleaved:v=2", 50'304, 2'178'641'920, 7'744'709'120},
       }) {
    const Report report = predicted(published);
    const auto expect_near = [&](Bytes found, std::int64_t bytes) {
      const auto wanted = static_cast<double>(bytes);
      EXPECT_NEAR(static_cast<double>(found.count), wanted, wanted / 400) << published.mesh;
    };
    expect_near(report.allocated_at_rest, published.at_rest);
    expect_near(report.allocated_peak, published.peak);
  }
}

}  // namespace
}  // namespace tidemark::published_hybrids_test
