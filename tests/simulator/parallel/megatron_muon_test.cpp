// Muon in Megatron-LM (--optimizer muon): which parameters it has, and what stays between steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/simulator/parallel/ranks.h"
#include "traces/optimizer_of.h"

namespace tidemark::megatron_muon_test {
namespace {

using testing::HasSubstr;

StepOptions of_muon(std::int64_t ranks = 1) {
  StepOptions options = of_bf16(4, "megatron:whole-states");
  options.framework = "megatron";
  options.optimizer_form = {};
  options.optimizer = Optimizer::Muon;
  options.mesh.experts = ranks;
  return options;
}

Model with_learned_positions() {
  Model model = small_mixture(MlpForm::Plain);
  std::get<DecoderConfig>(model.config).learned_positions = true;
  return model;
}

TEST(MegatronMuon, HasAllMatricesButWordsAndHeads) {
  const Trace trace = build_rank_trace(with_learned_positions(), of_muon());
  const auto optimizer = [&](std::string_view name) {
    const auto found = std::ranges::find(trace.tensors, name, &Tensor::name);
    EXPECT_NE(found, trace.tensors.end()) << name;
    return optimizer_of(trace, TensorId(found - trace.tensors.begin())).value;
  };
  for (const char* matrix : {"position_embed.weight", "blocks.0.mlp.router.weight",
                             "blocks.1.mlp.experts.fc1.weight", "blocks.0.attn.o.weight"})
    EXPECT_EQ(optimizer(matrix), Optimizer::Muon) << matrix;
  for (const char* other : {"embed.weight", "lm_head.weight", "norm.weight"})
    EXPECT_EQ(optimizer(other), Optimizer::AdamW) << other;
}

// fp32 copies of all; beside them a momentum of each matrix, and two moments of each other
// parameter.
TEST(MegatronMuon, KeepsOneMomentumOfMatricesBesideFp32Copies) {
  for (const std::int64_t ranks : {1, 4}) {
    const Trace trace = build_rank_trace(with_learned_positions(), of_muon(ranks));
    std::int64_t expected = 0;
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
      if (trace.tensors[t].category != Category::Parameter) continue;
      const bool is_matrix = optimizer_of(trace, TensorId(t)).value == Optimizer::Muon;
      expected += (is_matrix ? 8 : 12) * numel(trace.tensors[t].shape);
    }
    EXPECT_EQ(resting(lower(planned(trace, "vanilla")), Category::OptimizerState), expected);
    expect_sound_ranks(with_learned_positions(), of_muon(ranks), "vanilla");
  }
}

TEST(MegatronMuon, IsRefusedWhereStatesAreCut) {
  StepOptions options = of_muon();
  options.shard = parse_sharding("megatron");
  EXPECT_THAT(sharing_defect(options), HasSubstr("take --shard megatron:whole-states"));
  options.shard = parse_sharding("fsdp2");
  EXPECT_THAT(sharing_defect(options), HasSubstr("needs whole matrices or blocks"));
  EXPECT_EQ(sharing_defect(of_muon()), "");
}

}  // namespace
}  // namespace tidemark::megatron_muon_test
