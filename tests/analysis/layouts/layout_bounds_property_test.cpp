// No bound of a layout exceeds what its simulation gives, whatever the model, mesh and strategy.
#include <gtest/gtest.h>

#include <random>

#include "analysis/layouts/layout_search.h"
#include "base/error.h"
#include "simulator/parallel/cluster.h"
#include "tests/support/small_models.h"
#include "traces/step_fields.h"

namespace tidemark::layout_bounds_property_test {
namespace {

constexpr std::array bounded_strategies = {"vanilla",
                                           "checkpoint",
                                           "checkpoint:every=2",
                                           "checkpoint:selective",
                                           "lowmemorybp",
                                           "mesa",
                                           "offload",
                                           "overlap+checkpoint",
                                           "pareprop"};

constexpr std::array bounded_shardings = {"ddp",
                                          "ddp:bucket-view",
                                          "fsdp2",
                                          "fsdp2:no-reshard",
                                          "megatron",
                                          "megatron:whole-states",
                                          "megatron:overlap",
                                          "megatron:narrow-gradients",
                                          "fsdp1",
                                          "fsdp1:no-reshard",
                                          "zero1",
                                          "zero1:overlap,reduce-bucket=5000",
                                          "zero2",
                                          "zero2:reduce-bucket=5000",
                                          "zero3",
                                          "zero3:reduce-bucket=5000,persistence=100,prefetch=500"};

class BoundDice {
 public:
  explicit BoundDice(std::uint32_t seed) : random_(seed) {}

  template <typename Table>
  const auto& one_of(const Table& table) {
    return table[random_() % std::size(table)];
  }

  LayoutRequest request() {
    const std::array models = {small_llama(4), small_gpt2(4),
                               small_llama(8), small_bert(4),
                               small_vit(4),   small_mixture(MlpForm::GatedPacked, 4)};
    LayoutRequest request;
    request.scenario.model = one_of(models);
    StepOptions& step = request.scenario.step;
    step.precision = one_of(std::array{Precision::Fp32, Precision::AmpBf16, Precision::Bf16});
    step.master_weights = step.precision == Precision::Bf16 && random_() % 2 == 0;
    if (step.master_weights) step.optimizer_form = OptimizerForm::Fused;
    step.dropout = one_of(std::array{0.0, 0.1});
    step.framework =
        one_of(std::array<std::string, 3>{"transformers-4.57", "transformers-5", "megatron"});
    request.scenario.device = device_of(find_cluster("dgx-h100"));
    request.scenario.strategies = {parse_strategy(one_of(bounded_strategies))};
    request.shardings = {parse_sharding(one_of(bounded_shardings))};
    request.schedules.push_back(parse_schedule("gpipe"));
    request.gpus = one_of(std::array{1, 2, 4, 6, 8, 16});
    if (request.gpus % 2 == 0) step.mesh[Axis::Context] = one_of(std::array{1, 1, 2});
    request.global_batch = request.gpus * one_of(std::array{1, 2, 3, 4});
    return request;
  }

 private:
  std::mt19937 random_;
};

// Returns whether it could be simulated.
bool expect_bounded(const LayoutRequest& request, const MeshLayout& layout) {
  const LayoutParts parts = parts_of(request, layout);
  if (!parts.refusal.empty() || !parts.tensor_refusal.empty()) return false;
  if (!sharing_defect(step_in(request, layout)).empty()) return false;
  const bool is_piped = layout.mesh[Axis::Pipeline] > 1 && layout.micro_batches > 1;
  if (is_piped && !parts.pipeline_refusal.empty()) return false;
  const LayoutBounds bounds = bounds_of(request, layout, parts);
  try {
    const Report report = report_in(request, layout);
    if (!report.applies) return false;
    const std::string of = request.scenario.model.name + " " + key_of(request, layout) + " " +
                           in_words(request.scenario.step);
    EXPECT_LE(bounds.allocated, report.allocated_peak) << of;
    EXPECT_LE(bounds.step, report.step) << of;
    return true;
  } catch (const InputError&) {
    return false;
  }
}

TEST(LayoutBounds, NeverExceedTheSimulation) {
  constexpr std::uint32_t seed = 14;
  BoundDice dice(seed);
  int simulated = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", round " << round);
    const LayoutRequest request = dice.request();
    LayoutSpace space;
    try {
      space = enumerate_layouts(request);
    } catch (const InputError&) {
      continue;  // a framework without this family
    }
    for (int i = 0; i < 6 && !space.layouts.empty(); ++i)
      simulated += expect_bounded(request, dice.one_of(space.layouts)) ? 1 : 0;
  }
  EXPECT_GT(simulated, 100);
}

}  // namespace
}  // namespace tidemark::layout_bounds_property_test
