// What the model builders claim: published parameter counts, and the structure that memory depends
// on.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "tests/traces/model_traces.h"
#include "traces/layout_transform.h"
#include "traces/presets.h"

namespace tidemark::models_test {
namespace {

using namespace model_traces;
using testing::ElementsAre;

struct Published {
  const char* model;
  std::int64_t parameters;
};

std::int64_t parameters(const Trace& trace) {
  std::int64_t count = 0;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const Tensor& tensor = trace.tensors[t];
    const bool is_view = index(tensor.storage) != t;
    if (tensor.category == Category::Parameter && !is_view) count += numel(tensor.shape);
  }
  return count;
}

std::vector<std::string> trainable_names(const Trace& trace) {
  std::vector<std::string> names;
  for (const Tensor& tensor : trace.tensors)
    if (tensor.trainable) names.push_back(tensor.name);
  return names;
}

/// Lengths of the runs of blocks that may become reversible stacks.
std::vector<int> stack_lengths(const Trace& trace) {
  std::vector<int> lengths;
  for (const Block& block : trace.blocks) {
    if (block.stack < 0) continue;
    lengths.resize(
        std::max<std::size_t>(lengths.size(), static_cast<std::size_t>(block.stack) + 1));
    ++lengths[static_cast<std::size_t>(block.stack)];
  }
  return lengths;
}

class PublishedCount : public testing::TestWithParam<Published> {};

TEST_P(PublishedCount, IsReached) {
  const Model model = find_model(GetParam().model);
  EXPECT_EQ(parameters(build_trace(model, small_step(model))), GetParam().parameters);
}

// torchvision, timm (DeiT, MViTv2, rounded to 10 k there), microsoft/Swin-Transformer, and the
// checkpoints on the Hugging Face hub; ELECTRA's with the head of masked words, as transformers
// 4.57 builds them of their configs.
INSTANTIATE_TEST_SUITE_P(
    Models, PublishedCount,
    testing::Values(
        Published{"vit-b-16", 86567656}, Published{"vit-l-16", 304326632},
        Published{"vit-h-14", 632045800}, Published{"deit-ti", 5717416},
        Published{"deit-s", 22050664}, Published{"deit-b", 86567656}, Published{"swin-t", 28288354},
        Published{"swin-s", 49606258}, Published{"swin-b", 87768224},
        Published{"swin-l", 196532476}, Published{"mvitv2-t", 24173320},
        Published{"mvitv2-s", 34870216}, Published{"mvitv2-b", 51472744},
        Published{"mvitv2-l", 217992952}, Published{"bert-base", 109514298},
        Published{"bert-large", 335174458}, Published{"roberta-base", 124697433},
        Published{"roberta-large", 355412057}, Published{"gpt2", 124439808},
        Published{"gpt2-medium", 354823168}, Published{"gpt2-large", 774030080},
        Published{"gpt2-xl", 1557611200}, Published{"llama-7b", 6738415616},
        Published{"llama-13b", 13015864320}, Published{"llama-2-7b", 6738415616},
        Published{"llama-2-13b", 13015864320}, Published{"llama-2-70b", 68976648192},
        Published{"llama-3-8b", 8030261248}, Published{"llama-3-70b", 70553706496},
        Published{"llama-3.1-8b", 8030261248}, Published{"llama-3.2-1b", 1235814400},
        Published{"llama-3.2-3b", 3212749824}, Published{"qwen2.5-0.5b", 494032768},
        Published{"qwen2.5-7b", 7615616512}, Published{"qwen3-0.6b", 596049920},
        Published{"mistral-7b", 7241732096}, Published{"qwen2-7b", 7615616512},
        Published{"qwen3-8b", 8190735360}, Published{"gemma-2b", 2506172416},
        Published{"gemma-2-9b", 9241705984}, Published{"gemma-3-1b", 999885952},
        Published{"phi-3-mini", 3821079552}, Published{"phi-4", 14659507200},
        Published{"pythia-1.4b", 1414647808}, Published{"opt-1.3b", 1315758080},
        Published{"olmo-2-7b", 7298617344}, Published{"t5-base", 222903552},
        Published{"flan-t5-large", 783150080}, Published{"bart-base", 139420416},
        Published{"bart-large", 406291456}, Published{"falcon-7b", 6921720704},
        Published{"falcon-40b", 41303293952}, Published{"modernbert-base", 149655232},
        Published{"modernbert-large", 395881664}, Published{"deberta-v3-base", 184551780},
        Published{"deberta-v3-large", 435191908}, Published{"clip-vit-b-32-text", 63165952},
        Published{"clip-vit-b-32-vision", 87456000}, Published{"clip-vit-l-14-text", 123060480},
        Published{"clip-vit-l-14-vision", 303179776}, Published{"siglip-base-text", 110271744},
        Published{"siglip-base-vision", 92884224}, Published{"whisper-small", 241734912},
        Published{"whisper-large-v3", 1543490560}, Published{"mixtral-8x7b", 46702792704},
        Published{"qwen3-30b-a3b", 30532122624}, Published{"olmoe-1b-7b", 6919161856},
        Published{"deepseek-v2-lite", 15706484224}, Published{"deepseek-v2", 235741434880},
        Published{"beit-base", 86530984}, Published{"vit-mae-base", 111907840},
        Published{"vit-mae-large", 329541888}, Published{"pvt-tiny", 13229288},
        Published{"pvt-small", 24485864}, Published{"pvt-medium", 44208104},
        Published{"pvt-large", 61369320}, Published{"pvt-v2-b0", 3666760},
        Published{"pvt-v2-b1", 14009000}, Published{"pvt-v2-b2", 25362856},
        Published{"pvt-v2-b3", 45238696}, Published{"pvt-v2-b4", 62556072},
        Published{"pvt-v2-b5", 81956008}, Published{"phi-1.5", 1418270720},
        Published{"phi-2", 2779683840}, Published{"stablelm-3b", 2795443200},
        Published{"stablelm-2-1.6b", 1644515328}, Published{"stablelm-2-12b", 12143185920},
        Published{"starcoder2-3b", 3030371328}, Published{"starcoder2-7b", 7173923840},
        Published{"distilbert-base", 66985530}, Published{"electra-small", 13546682},
        Published{"electra-base", 109514298}, Published{"electra-large", 335174458},
        Published{"xlm-roberta-base", 278295186}, Published{"xlm-roberta-large", 560142482},
        Published{"camembert-base", 110655493}, Published{"dinov2-small", 22056576},
        Published{"dinov2-base", 86580480}, Published{"dinov2-large", 304368640},
        Published{"dinov2-giant", 1136480768}, Published{"qwen1.5-moe-a2.7b", 14315784192},
        Published{"qwen2-57b-a14b", 57408658944}, Published{"nemotron-3-nano", 31577937344}),
    [](const auto& test) {
      std::string name = test.param.model;
      std::ranges::replace_if(
          name, [](char c) { return c == '-' || c == '.'; }, '_');
      return name;
    });

// Without a head: ElectraModel.
TEST(Electra, HasTheParametersOfTheBareModel) {
  for (const Published& of :
       {Published{"electra-small", 13483008}, Published{"electra-base", 108891648},
        Published{"electra-large", 334092288}})
    EXPECT_EQ(parameters(trace_of(of.model, {.head = Head::None})), of.parameters) << of.model;
}

// transformers hands the cap of Gemma 2's scores to its own code only.
TEST(Gemma2, CapsScoresWhereItsOwnCodeMakesThem) {
  StepOptions step = small_step(find_model("gemma-2-9b"));
  step.precision = Precision::Bf16;
  EXPECT_NE(find_op(trace_of("gemma-2-9b", step), "blocks.0.attn.flash"), nullptr);
  EXPECT_NE(find_op(math_trace("gemma-2-9b"), "blocks.0.attn.cap.tanh"), nullptr);
}

// A q whose turned part is joined with the rest is one piece, and flash writes in its order.
TEST(Pythia, CopiesWhatFlashWroteForTheProjection) {
  StepOptions step = small_step(find_model("pythia-1.4b"));
  step.precision = Precision::Bf16;
  EXPECT_EQ(op_named(trace_of("pythia-1.4b", step), "blocks.0.attn.merge").kind, OpKind::Copy);
  step.precision = Precision::Fp32;
  EXPECT_EQ(op_named(trace_of("pythia-1.4b", step), "blocks.0.attn.merge").kind, OpKind::View);
}

// Phi-3's code joins a head that turns whole with an empty rest.
TEST(Phi3, CopiesWhatFlashWroteForTheProjection) {
  StepOptions step = small_step(find_model("phi-3-mini"));
  step.precision = Precision::Bf16;
  const Trace trace = trace_of("phi-3-mini", step);
  EXPECT_EQ(op_named(trace, "blocks.0.attn.q_rope.join").kind, OpKind::Concat);
  EXPECT_EQ(op_named(trace, "blocks.0.attn.merge").kind, OpKind::Copy);
  EXPECT_EQ(find_op(math_trace("phi-3-mini"), "blocks.0.attn.q.dense"), nullptr);
}

// 32 heads of q and 8 of k, 160 numbers wide: a weight and statistics for each, and no bias.
TEST(StableLm, NormsEachHeadByItself) {
  const Trace trace = math_trace("stablelm-2-12b");
  const auto count = [&](std::string_view which) {
    return std::ranges::count_if(trace.tensors, [&](const Tensor& tensor) {
      return tensor.category == Category::Parameter &&
             tensor.name.starts_with(fmt::format("blocks.0.attn.{}_norm.norms.", which));
    });
  };
  EXPECT_EQ(count("q"), 32);
  EXPECT_EQ(count("k"), 8);
  const Op& last = op_named(trace, "blocks.0.attn.q_norm.norms.31");
  EXPECT_EQ(last.inputs, 2);
  EXPECT_EQ(trace[trace.outputs(last)[0]].shape, (Shape{2, 1, 32, 160}));
  EXPECT_EQ(output_shape(trace, "blocks.0.attn.q_norm.join"), (Shape{2, 32, 32, 160}));
}

// 2 · 32 tokens go to two of eight experts each: sixteen rows for each.
TEST(Mixtral, GivesEachExpertItsShareOfTheTokens) {
  const Trace trace = math_trace("mixtral-8x7b");
  for (const char* expert : {"0", "7"})
    EXPECT_EQ(output_shape(trace, fmt::format("blocks.0.mlp.experts.{}.rows", expert)),
              (Shape{16, 4096}));
  EXPECT_EQ(output_shape(trace, "blocks.0.mlp.router.top"), (Shape{64, 2}));
  EXPECT_EQ(output_shape(trace, "blocks.0.mlp.router.chosen"), (Shape{64, 2, 8}));
}

TEST(Mixtral, LeavesOutExpertsThatNoTokenGoesTo) {
  const Trace trace = trace_of("mixtral-8x7b", {.sequence = 3});
  EXPECT_NE(find_op(trace, "blocks.0.mlp.experts.5.rows"), nullptr);
  EXPECT_EQ(find_op(trace, "blocks.0.mlp.experts.6.rows"), nullptr);
}

TEST(QwenMoe, HasAPlainMlpWhereTheConfigSaysSo) {
  Model model = find_model("qwen3-30b-a3b");
  auto& config = std::get<DecoderConfig>(model.config);
  config.depth = 4, config.experts.every = 2, config.dense_blocks = {3};
  const Trace trace = build_trace(model, small_step(model));
  for (const char* block : {"0", "2", "3"})
    EXPECT_NE(find_op(trace, fmt::format("blocks.{}.mlp.gate", block)), nullptr) << block;
  EXPECT_NE(find_op(trace, "blocks.1.mlp.router"), nullptr);
}

TEST(T5, WritesAsManyTokensAsItIsTold) {
  const Trace trace = trace_of("t5-base", {.batch = 2, .sequence = 32, .target_sequence = 8});
  EXPECT_EQ(output_shape(trace, "encoder.blocks.0.attn.scores"), (Shape{2, 12, 32, 32}));
  EXPECT_EQ(output_shape(trace, "decoder.blocks.0.attn.scores"), (Shape{2, 12, 8, 8}));
  EXPECT_EQ(output_shape(trace, "decoder.blocks.0.cross.scores"), (Shape{2, 12, 8, 32}));
  EXPECT_EQ(output_shape(trace, "lm_head"), (Shape{2, 8, 32128}));
}

// The buckets of distances and the decoder's mask are made in each step and forgotten with the
// stack; what is there before are lines of distances and of places. Ranks cut whole ones.
TEST(T5, MakesItsMasksAndBucketsInTheStep) {
  for (const char* framework : {"transformers-4.57", "transformers-5"}) {
    StepOptions step{.batch = 3, .sequence = 40, .target_sequence = 24};
    step.attention = Attention::Math;
    step.framework = framework;
    const Trace trace = trace_of("t5-base", step);
    for (const Tensor& tensor : trace.tensors) {
      const bool is_given = tensor.category == Category::Input;
      EXPECT_LE(is_given ? numel(tensor.shape) : 0, 3 * 40) << tensor.name << framework;
    }
    EXPECT_EQ(output_shape(trace, "encoder.buckets.pairs"), (Shape{40, 40}));
    EXPECT_EQ(output_shape(trace, "decoder.buckets.pairs"), (Shape{24, 24}));
    step.mesh = parse_mesh("tp=2");
    EXPECT_EQ(find_op(trace_of("t5-base", step), "encoder.buckets.pairs"), nullptr) << framework;
  }
}

Model small_dinov2() {
  return {"dinov2", "vit", "", "",
          VitConfig{.image = 56,
                    .patch = 14,
                    .width = 32,
                    .depth = 1,
                    .heads = 2,
                    .mlp = 64,
                    .packed_qkv = false,
                    .pools_patches = true,
                    .mask_token = true,
                    .stretches_positions = true}};
}

// Its class tokens lie apart, and a replay asks where each number is.
TEST(Dinov2, HasALossOfTheBareModelThatCanBeLaidOut) {
  const Trace trace = build_trace(small_dinov2(), {.batch = 2, .head = Head::None});
  EXPECT_THAT(check(trace), testing::IsEmpty());
  EXPECT_NO_THROW(value_layouts(trace));
}

TEST(Dinov2, StretchesItsTableToTheImage) {
  const Model model = small_dinov2();
  const auto table = [](const Trace& trace) {
    return std::ranges::find(trace.tensors, "pos_embed", &Tensor::name)->shape;
  };
  const Trace same = build_trace(model, {.batch = 2}), other = build_trace(model, {.image = 84});
  EXPECT_EQ(table(same), (Shape{1, 17, 32}));
  EXPECT_EQ(find_op(same, "pos_embed.stretch"), nullptr);
  EXPECT_EQ(table(other), (Shape{1, 17, 32}));
  EXPECT_EQ(output_shape(other, "pos_embed.join"), (Shape{1, 37, 32}));
  EXPECT_THAT(check(other), testing::IsEmpty());
}

TEST(Swin, ShiftsEverySecondBlockUntilTheWindowIsTheGrid) {
  // 2, 2, 6, 2 blocks on grids of 56, 28, 14, 7 tokens; the last is one window, which a view cuts.
  const Trace trace = math_trace("swin-t");
  std::vector<double> shifts;
  for (const Op& op : trace.ops)
    if (op.name.ends_with(".windows") && op.kind == OpKind::Copy)
      shifts.push_back(attribute(trace, op, AttributeKey::Shift));
  EXPECT_THAT(shifts, ElementsAre(0, 3, 0, 3, 0, 3, 0, 3, 0, 3));
}

TEST(Swin, MasksTheScoresOfShiftedWindowsPerImage) {
  const Trace trace = math_trace("swin-t");
  EXPECT_EQ(find_op(trace, "stages.0.blocks.0.attn.mask"), nullptr);
  // batch 2, 64 windows of 49 tokens, 3 heads
  EXPECT_EQ(output_shape(trace, "stages.0.blocks.1.attn.mask"), (Shape{2, 64, 3, 49, 49}));
}

TEST(Swin, MergesQuarterTheTokensAndDoubleTheWidth) {
  const Trace trace = math_trace("swin-t");
  EXPECT_EQ(output_shape(trace, "stages.0.merge.tokens"), (Shape{2, 784, 384}));
  EXPECT_EQ(output_shape(trace, "stages.0.merge.reduction"), (Shape{2, 784, 192}));
  EXPECT_EQ(output_shape(trace, "stages.3.blocks.1.add2"), (Shape{2, 49, 768}));
  EXPECT_THAT(stack_lengths(trace), ElementsAre(2, 2, 6, 2));
}

TEST(Swin, RefusesAnImageThatItsWindowsDoNotFit) {
  EXPECT_THROW(trace_of("swin-t", {.image = 200}), UsageError);
}

TEST(ImageModels, RefuseASizeThatIsNone) {
  for (const char* name : {"vit-b-16", "swin-t", "mvitv2-t"})
    for (const std::int64_t image : {std::int64_t{0}, std::int64_t{-224}, std::int64_t{1} << 40})
      EXPECT_THROW(trace_of(name, {.image = image}), UsageError) << name << " " << image;
}

TEST(ImageModels, HuggingFaceSwinRollsWindowsWithAKernelOfItsOwn) {
  const Model model = find_model(TIDEMARK_SOURCE_DIR "/examples/swin-t");
  const Trace trace = build_trace(model, {.batch = 2, .attention = Attention::Math});
  EXPECT_EQ(find_op(trace, "stages.0.blocks.0.roll"), nullptr);
  EXPECT_NE(find_op(trace, "stages.0.blocks.1.roll"), nullptr);
  EXPECT_NE(find_op(trace, "stages.0.blocks.1.attn.q"), nullptr);  // not packed
}

TEST(Mvit, StacksAreTheRunsOfBlocksThatKeepTheirShape) {
  const auto stacks = [](std::string_view name) { return stack_lengths(math_trace(name)); };
  EXPECT_THAT(stacks("rev-mvit-b-16"), ElementsAre(1, 1, 10, 1));
  EXPECT_THAT(stacks("mvitv2-t"), ElementsAre(1, 1, 4, 1));
  EXPECT_THAT(stacks("mvitv2-b"), ElementsAre(2, 2, 15, 2));
  // These widen in the block before the one that pools, so two in a row change shape.
  EXPECT_THAT(stacks("mvit-b-16"), ElementsAre(9, 1));
  EXPECT_THAT(stacks("mvitv2-l"), ElementsAre(1, 4, 34, 3));
}

TEST(Mvit, PoolsKeysToTheSameGridInEachStage) {
  const Trace trace = math_trace("mvitv2-t");  // 56 · 56 tokens, keys pooled by 4
  EXPECT_EQ(output_shape(trace, "blocks.0.attn.scores"), (Shape{2, 1, 3136, 196}));
  // The first block of stage 2 pools q from 56 to 28 and keys by 2 from 56.
  EXPECT_EQ(output_shape(trace, "blocks.1.attn.scores"), (Shape{2, 2, 784, 784}));
  EXPECT_EQ(output_shape(trace, "blocks.2.attn.scores"), (Shape{2, 2, 784, 196}));
  EXPECT_EQ(output_shape(trace, "blocks.9.attn.scores"), (Shape{2, 8, 49, 49}));
}

TEST(Mvit, ClassTokenIsNotPooled) {
  const Trace trace = math_trace("mvit-b-16");
  EXPECT_EQ(output_shape(trace, "blocks.0.attn.scores"), (Shape{2, 1, 3137, 197}));
  EXPECT_EQ(output_shape(trace, "blocks.1.pool_skip.skip"), (Shape{2, 785, 192}));
}

TEST(Tuning, LoraOnQueryAndValueTrainsExactlyTheirAdapters) {
  for (const char* name : {"llama-7b", "gpt2", "bert-base"}) {
    StepOptions step{.sequence = 32, .tuning = parse_tuning("lora:r=4,targets=q,v")};
    const Trace trace = trace_of(name, step);
    const auto names = trainable_names(trace);
    EXPECT_EQ(names.size(), 4 * trace.blocks.size()) << name;
    EXPECT_THAT(names, testing::Contains("blocks.1.attn.v.lora_b.weight")) << name;
    for (const std::string& trained : names)
      EXPECT_TRUE(trained.find(".attn.q.lora_") != std::string::npos ||
                  trained.find(".attn.v.lora_") != std::string::npos)
          << trained;
  }
}

// T5's MLPs are wi and wo, or gated wi_0, wi_1 and wo.
TEST(Tuning, LoraKnowsTheLinearsOfT5) {
  const auto count = [](const char* model, const char* tuning) {
    return trainable_names(
               trace_of(model, {.batch = 1, .sequence = 16, .tuning = parse_tuning(tuning)}))
        .size();
  };
  constexpr std::size_t blocks_of_base = 2 * 12, blocks_of_large = 2 * 24, pair = 2;
  EXPECT_EQ(count("t5-base", "lora:r=4,targets=wi,wo"), blocks_of_base * 2 * pair);
  EXPECT_EQ(count("flan-t5-large", "lora:r=4,targets=wi_0,wi_1,wo"), blocks_of_large * 3 * pair);
}

// DistilBertForQuestionAnswering has a dropout of its own.
TEST(DistilBert, DropsWhatItsAnswersAreMadeOf) {
  const auto drops = [](const char* model) {
    const StepOptions step{.sequence = 32, .head = Head::QuestionAnswering};
    return find_op(trace_of(model, step), "qa_drop") != nullptr;
  };
  EXPECT_TRUE(drops("distilbert-base"));
  EXPECT_FALSE(drops("bert-base"));
}

// peft's suffix "out_lin" is the attention's; what its head transforms with is vocab_transform.
TEST(Tuning, LoraOnDistilBertsAttentionsLeavesItsHeadAlone) {
  const auto names = [](const char* tuning) {
    return trainable_names(
        trace_of("distilbert-base", {.sequence = 32, .tuning = parse_tuning(tuning)}));
  };
  EXPECT_EQ(names("lora:r=4,targets=out_lin").size(), 2u * 6);
  EXPECT_EQ(names("lora:r=4,targets=vocab_transform").size(), 2u);
}

TEST(Tuning, LoraOnAnImageModelTrainsItsClassifierToo) {
  const Trace trace = trace_of("swin-t", {.tuning = parse_tuning("lora:r=4,targets=q,v")});
  const auto names = trainable_names(trace);
  EXPECT_EQ(names.size(), 4 * trace.blocks.size() + 2);
  EXPECT_THAT(names, testing::Contains("head.weight"));
}

// What each op of one kind drops, in the order of the ops.
std::vector<double> rates_of(const Trace& trace, OpKind kind) {
  std::vector<double> rates;
  for (const Op& op : trace.ops)
    if (op.kind == kind) rates.push_back(attribute(trace, op, AttributeKey::Probability));
  return rates;
}

// Swin-T drops paths at 0 to 0.2 over 12 blocks of two halves, and nothing else.
TEST(Models, DropoutAndStochasticDepthAreSetApart) {
  const auto drops = [](const StepOptions& step) {
    const Trace trace = trace_of("swin-t", step);
    return std::pair(rates_of(trace, OpKind::Dropout), rates_of(trace, OpKind::DropPath));
  };
  const auto [dropout, paths] = drops({});
  EXPECT_TRUE(dropout.empty());
  ASSERT_EQ(paths.size(), 22u);  // the first block drops none
  EXPECT_EQ(paths.back(), 0.2);
  EXPECT_EQ(drops({.dropout = 0.5}).second, paths);
  EXPECT_FALSE(drops({.dropout = 0.5}).first.empty());
  const auto [none, steeper] = drops({.drop_path = 0.4});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(steeper.back(), 0.4);
  EXPECT_TRUE(drops({.drop_path = 0.0}).second.empty());
}

TEST(Models, ThoseWithoutStochasticDepthRefuseIt) {
  const Trace bert = trace_of("bert-base", {.sequence = 8, .drop_path = 0.1});
  EXPECT_THROW(
      {
        try {
          require_used_options(bert);
        } catch (const UsageError& error) {
          EXPECT_STREQ(error.what(), "bert-base has no paths to drop (leave out the drop path)");
          throw;
        }
      },
      UsageError);
  require_used_options(trace_of("bert-base", {.sequence = 8, .drop_path = 0.0}));
}

}  // namespace
}  // namespace tidemark::models_test
