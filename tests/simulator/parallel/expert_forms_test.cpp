// Experts that some of the tensor-parallel ranks cut, and ranks that gather all tokens instead of
// exchanging visits: shapes, exchanges and bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "simulator/parallel/contiguous.h"
#include "tests/simulator/parallel/ranks.h"
#include "traces/expert_ops.h"

namespace tidemark::expert_forms_test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t h = 32, f = 48, experts = 8, per_token = 2, depth = 2, tokens = 2 * 16;

StepOptions of_mesh(std::string_view mesh) {
  StepOptions options = of_bf16(1, "megatron");
  options.framework = "megatron";
  options.mesh = parse_mesh(mesh);
  options.sequence_parallel = options.mesh[Axis::Tensor] > 1;
  return options;
}

StepOptions gathering(std::string_view mesh) {
  StepOptions options = of_mesh(mesh);
  options.expert_form = ExpertForm::AllGather;
  return options;
}

Shape shape_of(const Trace& trace, std::string_view name) {
  const auto found = std::ranges::find(trace.tensors, name, &Tensor::name);
  return found == trace.tensors.end() ? Shape() : found->shape;
}

// Of four tensor-parallel ranks two each cut an expert: a rank's own tokens are a quarter, what it
// gathers with its neighbour is half of all visits, and what its experts make of these is the half
// of each weight. 4 · 4 / 2 ranks share the experts of a layer, four of them all eight.
TEST(ExpertForms, SomeRanksCutAnExpertAndGatherEachOthersVisits) {
  const StepOptions options = of_mesh("dp=4,tp=4,ep=4,etp=2");
  const Trace trace = build_rank_trace(small_mixture(), options);
  constexpr std::int64_t visits = tokens * per_token;
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.experts.fc1.weight"), Shape({experts / 4, h, f}));
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.experts.fc2.weight"), Shape({experts / 4, f / 2, h}));
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.permute"), Shape({visits / 4, h}));
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.permute.dispatch.gather"), Shape({visits / 2, h}));
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.experts.fc1"), Shape({visits / 2, f}));
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.experts.swiglu"), Shape({visits / 2, f / 2}));
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.unsort"), Shape({visits / 2, h}));
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.unsort.reduce_scatter"), Shape({visits / 4, h}));
  for (const ContiguousBucket& bucket : contiguous_layout(trace, *options.shard).buckets)
    EXPECT_THAT(bucket.replicas, testing::AnyOf(4 * 4 / 2 / 4, 4));
}

// Two neighbours have parts of an expert, every second of eight ranks has other experts, and every
// eighth the same parts.
TEST(ExpertForms, ThoseThatCutAnExpertLieInside) {
  const StepOptions options = of_mesh("dp=4,tp=4,ep=4,etp=2");
  Interconnect joined;
  joined.gpus_per_node = 8;
  const auto group = [&](Peers peers) {
    return group_of(options, {Pattern::AllGather, Axis::Tensor, {}, peers}, joined);
  };
  EXPECT_EQ(group(Peers::CuttingExpert).ranks, 2);
  EXPECT_EQ(group(Peers::CuttingExpert).per_node, 2);
  EXPECT_EQ(group(Peers::SharingExperts).ranks, 4);
  EXPECT_EQ(group(Peers::SharingExperts).per_node, 4);
  EXPECT_EQ(group(Peers::SameExperts).ranks, 2);
  EXPECT_EQ(group(Peers::SameExperts).per_node, 1);
}

// The whole range between cut by all and whole: what is exchanged among cutting ranks shrinks.
TEST(ExpertForms, FewerRanksOfAnExpertGatherLess) {
  const auto gathered = [](std::string_view mesh) {
    return exchanged(small_mixture(), of_mesh(mesh))[Pattern::AllGather].bytes;
  };
  constexpr std::int64_t row = 2 * h + 2;  // 16 bits, and a share
  constexpr std::int64_t visits = tokens * per_token;
  const std::int64_t whole = gathered("dp=4,tp=4,ep=4,etp=1");
  // Forward rows and shares; backward rows.
  EXPECT_EQ(gathered("dp=4,tp=4,ep=4,etp=2") - whole, depth * visits / 2 * (row + 2 * h));
  EXPECT_EQ(gathered("dp=4,tp=4,ep=4") - whole, depth * visits * (row + 2 * h));
}

TEST(ExpertForms, OfEveryCutIsSound) {
  for (const MlpForm form : {MlpForm::GatedPacked, MlpForm::Plain})
    for (const char* mesh : {"tp=4,ep=2,etp=2", "dp=2,tp=4,ep=4,etp=2", "dp=2,tp=4,ep=8,etp=1",
                             "cp=2,tp=4,ep=2,etp=2"})
      for (const char* strategy : {"vanilla", "checkpoint"}) {
        expect_sound_ranks(small_mixture(form), of_mesh(mesh), strategy);
        if (testing::Test::HasFatalFailure()) return;
      }
}

// core/transformer/moe/token_dispatcher.py: a buffer for all ranks' tokens stays, those of the
// rank's experts are looked up, and what these answer is of all tokens until it is reduced.
TEST(ExpertForms, GatheredTokensHaveABufferThatStays) {
  const Trace trace = build_rank_trace(small_mixture(), gathering("dp=4,ep=4"));
  EXPECT_EQ(shape_of(trace, "experts.gathered"), Shape({4 * tokens, h}));
  EXPECT_EQ(shape_of(trace, "blocks.1.mlp.rows.gather"), Shape({4 * tokens, h}));
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.router.pick.map.gather.own"),
            Shape({4 * tokens, experts / 4}));
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.permute"), Shape({tokens * per_token, h}));
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.unpermute"), Shape({4 * tokens, h}));
  EXPECT_EQ(shape_of(trace, "blocks.0.mlp.unpermute.scatter"), Shape({tokens, h}));
  const auto sorts = [&](const Op& op) { return expert_op(trace, op) == ExpertOp::Sort; };
  EXPECT_EQ(std::ranges::count_if(trace.ops, sorts), 0);
  EXPECT_EQ(resting(lower(planned(trace, "vanilla")), Category::Workspace), 2 * 4 * tokens * h);
}

TEST(ExpertForms, EachStageHasTheBuffer) {
  for (const std::int64_t stage : {0, 1}) {
    StepOptions options = gathering("pp=2,dp=4,ep=4");
    options.accumulate = {2};
    options.rank = RankClass{stage};
    const Trace trace = build_rank_trace(small_mixture(), options);
    EXPECT_EQ(shape_of(trace, "experts.gathered"), Shape({4 * tokens, h})) << stage;
  }
}

// Per layer: rows, shares and a byte for each token and expert there, rows back; gradients of rows
// and shares the other way round.
TEST(ExpertForms, GatherAllTokensAndScatterSums) {
  const Trace trace = build_rank_trace(small_mixture(), gathering("dp=4,ep=4"));
  const Schedule schedule = lower(planned(trace, "vanilla"));
  std::map<Pattern, Exchanged> among;
  for (const tidemark::Run& run : runs_of(schedule)) {
    const auto exchange = exchange_of(trace, schedule, run);
    if (!exchange || exchange->peers != Peers::SharingExperts) continue;
    ++among[exchange->pattern].count;
    among[exchange->pattern].bytes += exchange->size.count;
  }
  constexpr std::int64_t all = 4 * tokens, rows = 2 * all * h, shares = 2 * all * experts;
  constexpr std::int64_t maps = all * experts;
  EXPECT_FALSE(among.contains(Pattern::AllToAll));
  EXPECT_EQ(among[Pattern::AllGather].count, depth * 4);
  EXPECT_EQ(among[Pattern::AllGather].bytes, depth * (2 * rows + shares + maps));
  EXPECT_EQ(among[Pattern::ReduceScatter].count, depth * 3);
  EXPECT_EQ(among[Pattern::ReduceScatter].bytes, depth * (2 * rows + shares));
}

TEST(ExpertForms, GatheredTokensAreSound) {
  for (const MlpForm form : {MlpForm::GatedPacked, MlpForm::Plain})
    for (const char* mesh : {"1", "dp=4,ep=4", "dp=8,ep=8", "dp=2,cp=2,ep=4", "pp=2,dp=4,ep=4"})
      for (const char* strategy : {"vanilla", "checkpoint", "checkpoint:selective"}) {
        StepOptions options = gathering(mesh);
        options.accumulate = {2};
        expect_sound_ranks(small_mixture(form), options, strategy);
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(ExpertForms, RefuseInOneLineWhatIsNotKnown) {
  EXPECT_THAT(expert_form_defect(gathering("dp=2,tp=2,ep=2")), HasSubstr("take all-to-all"));
  StepOptions loaded = gathering("dp=2,ep=2");
  loaded.expert_load = ExpertLoad{1.5};
  EXPECT_THAT(expert_form_defect(loaded), HasSubstr("loads are of visits"));
  StepOptions loop = gathering("dp=2");
  loop.framework = default_framework;
  EXPECT_THAT(expert_form_defect(loop), HasSubstr("take --framework megatron"));
  EXPECT_EQ(expert_form_defect(gathering("dp=2,ep=2")), "");
  for (const char* mesh : {"dp=2,tp=2,ep=2", "tp=2"}) try {
      build_rank_trace(small_mixture(), gathering(mesh));
      ADD_FAILURE() << mesh;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("take --ep-form all-to-all")) << mesh;
    }
}

// --moe-router-dtype fp32: logits and shares, and the product with a share, which is rounded.
TEST(ExpertForms, WideRoutersMakeWideShares) {
  Model model = small_mixture(MlpForm::Plain);
  std::get<DecoderConfig>(model.config).experts.wide_router = true;
  const Trace trace = build_rank_trace(model, of_mesh("dp=4,ep=4"));
  const auto dtype = [&](const char* name) {
    return std::ranges::find(trace.tensors, std::string_view(name), &Tensor::name)->dtype;
  };
  for (const char* wide : {"blocks.0.mlp.router", "blocks.0.mlp.permute.shares.dispatch",
                           "blocks.0.mlp.experts.weighted"})
    EXPECT_EQ(dtype(wide), DType::Float32) << wide;
  EXPECT_EQ(dtype("blocks.0.mlp.experts.rounded"), DType::BFloat16);
  EXPECT_EQ(dtype("blocks.0.mlp.permute.dispatch"), DType::BFloat16);
}

}  // namespace
}  // namespace tidemark::expert_forms_test
