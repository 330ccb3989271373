// Random searches for layouts of small models.
#pragma once

#include <random>

#include "analysis/layouts/layout_search.h"
#include "simulator/parallel/cluster.h"
#include "tests/support/small_models.h"

namespace tidemark {

inline constexpr std::array asked_strategies = {"vanilla",
                                                "checkpoint",
                                                "checkpoint:every=2",
                                                "checkpoint:selective",
                                                "lowmemorybp",
                                                "mesa",
                                                "offload",
                                                "overlap+checkpoint",
                                                "pareprop"};

inline constexpr std::array asked_shardings = {
    "ddp",
    "ddp:bucket-view",
    "fsdp2",
    "fsdp2:no-reshard",
    "megatron",
    "megatron:whole-states",
    "megatron:overlap",
    "megatron:narrow-gradients",
    "megatron:no-fusion",
    "fsdp1",
    "fsdp1:no-reshard",
    "zero1",
    "zero1:overlap,reduce-bucket=5000",
    "zero2",
    "zero2:reduce-bucket=5000",
    "zero3",
    "zero3:reduce-bucket=5000,persistence=100,prefetch=500"};

class RequestDice {
 public:
  explicit RequestDice(std::uint32_t seed) : random_(seed) {}

  template <typename Table>
  const auto& one_of(const Table& table) {
    return table[random_() % std::size(table)];
  }

  LayoutRequest request() {
    const std::array models = {small_llama(4),
                               small_gpt2(4),
                               small_llama(8),
                               small_bert(4),
                               small_llama(5),
                               small_vit(4),
                               small_mixture(MlpForm::GatedPacked, 4)};
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
    request.scenario.strategies = {parse_strategy(one_of(asked_strategies))};
    request.shardings = {parse_sharding(one_of(asked_shardings))};
    for (const char* schedule : {"gpipe", "zb-h1", "zb-h2", "zb-v"})
      request.schedules.push_back(parse_schedule(schedule));
    request.gpus = one_of(std::array{1, 2, 4, 6, 8, 16});
    if (request.gpus % 2 == 0) step.mesh[Axis::Context] = one_of(std::array{1, 1, 2});
    request.global_batch = request.gpus * one_of(std::array{1, 2, 3, 4});
    return request;
  }

 private:
  std::mt19937 random_;
};

}  // namespace tidemark
