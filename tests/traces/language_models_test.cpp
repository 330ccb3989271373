// What networks of words are made of, so far as memory depends on it: heads, masks, names that the
// models' code has, losses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "tests/traces/model_traces.h"
#include "traces/presets.h"

namespace tidemark::language_models_test {
namespace {

using namespace model_traces;

OpId weights_held_until(const Trace& trace, std::size_t block) {
  const Op& made = op_named(trace, fmt::format("blocks.{}.attn.dropout", block));
  return trace[trace.outputs(made)[0]].held_until;
}

TEST(Llama, GroupedKeysAreNarrowAndRepeatedOnlyForMaterializedScores) {
  const Trace math = math_trace("llama-3-8b");
  EXPECT_EQ(output_shape(math, "blocks.0.attn.k"), (Shape{2, 32, 1024}));  // 8 heads of 128
  EXPECT_EQ(output_shape(math, "blocks.0.attn.k.repeat"), (Shape{2, 32, 32, 128}));
  const Trace flash = trace_of("llama-3-8b", {.sequence = 32, .precision = Precision::Bf16});
  EXPECT_EQ(find_op(flash, "blocks.0.attn.k.repeat"), nullptr);
  const Trace masked =
      trace_of("llama-3-8b", {.sequence = 32, .precision = Precision::Bf16, .padded = true});
  EXPECT_NE(find_op(masked, "blocks.0.attn.k.repeat"), nullptr);
}

TEST(Llama, GroupedHeadsInFp32AreComposedByPyTorch) {
  const Trace trace = trace_of("llama-3-8b", {.batch = 2, .sequence = 32});
  EXPECT_EQ(find_op(trace, "blocks.0.attn.flash"), nullptr);
  EXPECT_NE(find_op(trace, "blocks.0.attn.k.scale"), nullptr);
  EXPECT_EQ(output_shape(trace, "blocks.0.attn.softmax"), (Shape{2, 32, 32, 32}));
}

TEST(Gpt2, OddHeadsArePaddedForFlashAndCutBehindIt) {
  const Model model{
      "odd", "gpt2", "", "",
      Gpt2Config{
          .width = 90, .depth = 1, .heads = 2, .mlp = 360, .vocabulary = 97, .positions = 64}};
  const StepOptions step{.batch = 2, .sequence = 24, .precision = Precision::Bf16};
  const Trace trace = build_trace(model, step);
  EXPECT_EQ(output_shape(trace, "blocks.0.attn.flash"), (Shape{2, 2, 24, 48}));
  EXPECT_EQ(output_shape(trace, "blocks.0.attn.merge"), (Shape{2, 24, 90}));
  EXPECT_DOUBLE_EQ(attribute(trace, op_named(trace, "blocks.0.attn.flash"), AttributeKey::Factor),
                   std::sqrt(48.0 / 45));
  EXPECT_THAT(check(trace), testing::IsEmpty());
}

TEST(Llama, SlidingWindowIsAnAttributeOfFusedAttention) {
  const Trace trace = trace_of("mistral-7b", {.sequence = 32, .precision = Precision::Bf16});
  const Op& flash = op_named(trace, "blocks.0.attn.flash");
  EXPECT_EQ(attribute(trace, flash, AttributeKey::Window), 4096);
  EXPECT_EQ(attribute(trace, flash, AttributeKey::Causal), 1);
}

// arXiv 2406.16282's table, in units of one 16-bit [batch, tokens, width] tensor, counted once per
// op kind and tensor: norms 4 (fp32 inputs), attention 4, linears 3 + r, SiLU r, product 2r.
TEST(Llama, BlockSavesThePublishedUnits) {
  const Trace trace = trace_of("llama-7b", {.batch = 2, .sequence = 64, .framework = "paper"});
  const std::int64_t width = 4096, mlp = 11008, rows = 2 * 64;
  const auto required = requires_gradient(trace);
  std::map<OpKind, std::int64_t> bytes;
  std::set<std::pair<OpKind, TensorId>> counted;
  for (const Op& op : trace.ops) {
    if (op.block != 7) continue;
    const Operands saved = saved_operands(trace, op, inputs_with_gradient(trace, op, required));
    for (int bit = 0; bit < 32; ++bit) {
      const TensorId id = saved >> bit & 1 ? operand(trace, op, bit) : no_tensor;
      if (id == no_tensor || trace[id].category != Category::Activation) continue;
      if (counted.insert({op.kind, trace[id].storage}).second)
        bytes[op.kind] += size(trace[trace[id].storage]).count;
    }
  }
  EXPECT_EQ(bytes[OpKind::RmsNorm], 2 * rows * 4 * width);
  EXPECT_EQ(bytes[OpKind::FlashAttention], 2 * rows * 4 * width);
  EXPECT_EQ(bytes[OpKind::Linear], 2 * rows * (3 * width + mlp));
  EXPECT_EQ(bytes[OpKind::Silu], 2 * rows * mlp);
  EXPECT_EQ(bytes[OpKind::Mul], 2 * rows * 2 * mlp);
  EXPECT_EQ(bytes.size(), 5u);
}

TEST(Bert, NormReadsTheSumOfBranchAndShortcut) {
  const Trace trace = math_trace("bert-base");
  const Op& norm = op_named(trace, "blocks.3.norm1");
  const Op& add = op_named(trace, "blocks.3.add1");
  EXPECT_EQ(trace.inputs(norm)[0], trace.outputs(add)[0]);
  EXPECT_TRUE(add.residual);
  EXPECT_EQ(norm.part, Part::F);
  EXPECT_EQ(op_named(trace, "blocks.3.mlp.fc1").part, Part::G);
}

TEST(LanguageModels, TiedHeadsReadTheEmbeddingAndAreCountedOnce) {
  for (const char* name : {"gpt2", "bert-base"}) {
    const Trace trace = math_trace(name);
    EXPECT_EQ(trace[trace.inputs(op_named(trace, "lm_head"))[1]].name, "embed.weight") << name;
  }
  const Trace untied = math_trace("llama-7b");
  EXPECT_EQ(untied[untied.inputs(op_named(untied, "lm_head"))[1]].name, "lm_head.weight");
}

TEST(LanguageModels, LossReadsAllButTheLastTokenWhereTheFrameworkShifts) {
  const Trace shifted =
      trace_of("gpt2", {.batch = 2, .sequence = 32, .framework = "transformers-4.47"});
  EXPECT_EQ(output_shape(shifted, "logits.shift"), (Shape{2, 31, 50257}));
  const Trace whole = trace_of("gpt2", {.batch = 2, .sequence = 32, .framework = "paper"});
  EXPECT_EQ(find_op(whole, "logits.shift"), nullptr);
  EXPECT_EQ(output_shape(whole, "logits.rows"), (Shape{64, 50257}));
}

TEST(LanguageModels, LossShiftsLabelsOfFp32LogitsSinceTransformers448) {
  const Trace trace = trace_of("gpt2", {.batch = 2, .sequence = 32, .precision = Precision::Bf16});
  EXPECT_EQ(output_shape(trace, "logits.rows"), (Shape{64, 50257}));
  EXPECT_EQ(trace[trace.inputs(op_named(trace, "labels.shift"))[0]].shape, (Shape{2, 33}));
  EXPECT_EQ(output_shape(trace, "labels.shift"), (Shape{2, 32}));
  const Op& cast = op_named(trace, "logits.float");
  EXPECT_EQ(trace[trace.outputs(cast)[0]].dtype, DType::Float32);
  EXPECT_NE(trace[trace.inputs(cast)[0]].held_until, no_op);  // a variable of the model's forward()
}

TEST(LanguageModels, EagerScoresHaveAMaskOfEachSampleWhereTheCodeMakesOne) {
  const auto mask_of = [](const char* model, const char* framework) {
    const Trace trace = trace_of(
        model, {.batch = 3, .sequence = 32, .attention = Attention::Math, .framework = framework});
    return trace[trace.inputs(op_named(trace, "blocks.0.attn.mask"))[1]].shape[0];
  };
  for (const char* framework : {"transformers-5", "transformers-4.57", "transformers-4.51"})
    EXPECT_EQ(mask_of("llama-7b", framework), 3) << framework;
  EXPECT_EQ(mask_of("llama-7b", "torch-1.13"), 1);
  EXPECT_EQ(mask_of("gpt2", "transformers-4.57"), 3);
  EXPECT_EQ(mask_of("gpt2", "transformers-4.51"), 1);  // a buffer of each block tells who sees whom
}

// Where ranks cut masks, they are given.
TEST(LanguageModels, AMaskIsMadeWhereTheCodeMakesIt) {
  const auto given = [](const char* model, const char* mesh) {
    StepOptions step{.batch = 2, .sequence = 32, .attention = Attention::Math};
    step.mesh = parse_mesh(mesh);
    std::vector<std::string> masks;
    const Trace trace = trace_of(model, step);
    for (const Tensor& tensor : trace.tensors)
      if (tensor.category == Category::Input && numel(tensor.shape) == 32 * 32)
        masks.emplace_back(tensor.name);
    return masks;
  };
  EXPECT_THAT(given("llama-7b", "dp=1"), testing::IsEmpty());
  EXPECT_THAT(given("gpt2", "dp=1"), testing::IsEmpty());
  EXPECT_THAT(given("llama-7b", "tp=2"), testing::ElementsAre("attention_mask"));
}

// Far below 0 where a key is behind its query, or a window before it.
TEST(LanguageModels, AMadeMaskSaysHowFarAKeyIsOutOfSight) {
  const auto adds = [](std::int64_t sequence) {
    const Trace trace =
        trace_of("mistral-7b", {.batch = 1, .sequence = sequence, .attention = Attention::Math});
    return find_op(trace, "attention_mask.hidden") != nullptr;
  };
  EXPECT_FALSE(adds(4096));
  EXPECT_TRUE(adds(4097));
}

TEST(LanguageModels, ABlockNamesWhatItsAttentionReturns) {
  for (const char* model : {"llama-7b", "gpt2", "distilbert-base"}) {
    const Trace trace =
        trace_of(model, {.batch = 2, .sequence = 32, .attention = Attention::Math, .dropout = 0.1});
    const OpId last = weights_held_until(trace, 0);
    const bool drops_them = std::string_view(model).starts_with("distil");
    EXPECT_EQ(index(last) + 1 < index(trace.blocks[0].end), drops_them) << model;
    EXPECT_LE(index(last) + 1, index(trace.blocks[0].end)) << model;
  }
}

// BertLayer of 4.57 returns its weights, whoever asks, and BertEncoder has a name for what it got
// until the next layer returns. Before, and in transformers 5, a layer returns its output alone.
TEST(LanguageModels, AnEncoderNamesTheWeightsThatALayerReturnsUntilTheNextDoes) {
  for (const char* model : {"bert-base", "roberta-base", "electra-small"}) {
    const StepOptions step{
        .batch = 2, .sequence = 32, .attention = Attention::Math, .dropout = 0.1};
    const Trace trace = trace_of(model, step);
    EXPECT_EQ(index(weights_held_until(trace, 0)) + 1, index(trace.blocks[1].end)) << model;
    const std::size_t last = trace.blocks.size() - 1;
    EXPECT_EQ(index(weights_held_until(trace, last)) + 1, index(trace.blocks[last].end)) << model;
    for (const char* framework : {"transformers-5", "transformers-4.51"}) {
      StepOptions other = step;
      other.framework = framework;
      const Trace alone = trace_of(model, other);
      EXPECT_EQ(index(weights_held_until(alone, 0)) + 1, index(alone.blocks[0].end)) << framework;
    }
  }
}

// … until the block is done, of both attentions that BART's decoder has.
TEST(LanguageModels, ABlockOfBartNamesWhatBothAttentionsReturn) {
  const Trace trace = trace_of(
      "bart-base", {.batch = 2, .sequence = 32, .attention = Attention::Math, .dropout = 0.1});
  for (const char* which : {"attn", "cross"}) {
    const std::string name = fmt::format("decoder.blocks.0.{}.dropout", which);
    const Op& op = op_named(trace, name);
    const Tensor& weights = trace[trace.outputs(op)[0]];
    const Block& block = trace.blocks[static_cast<std::size_t>(op.block)];
    EXPECT_EQ(index(weights.held_until) + 1, index(block.end)) << which;
  }
}

TEST(LanguageModels, AModelNamesItsMaskAndWhatItLooksUp) {
  const StepOptions step{.batch = 2, .sequence = 32, .attention = Attention::Math};
  const auto held_to_the_end = [&](const char* model, const char* name) {
    const Trace trace = trace_of(model, step);
    return trace[trace.outputs(op_named(trace, name))[0]].held_until ==
           static_cast<OpId>(&op_named(trace, "norm") - trace.ops.data());
  };
  EXPECT_TRUE(held_to_the_end("llama-7b", "attention_mask.samples"));
  EXPECT_TRUE(held_to_the_end("gpt2", "embed"));
  EXPECT_TRUE(held_to_the_end("llama-7b", "embed"));
  EXPECT_FALSE(held_to_the_end("gpt2", "pos_add"));  // its variable is that of the blocks
}

TEST(LanguageModels, AModelNamesItsOutputsUntilTheLossIsThere) {
  for (const char* model : {"llama-7b", "gpt2"}) {
    const Trace trace =
        trace_of(model, {.batch = 2, .sequence = 32, .precision = Precision::AmpBf16});
    const Tensor& normed = trace[trace.outputs(op_named(trace, "norm"))[0]];
    EXPECT_EQ(index(normed.held_until) + 1, trace.ops.size()) << model;
  }
}

// Booleans of each sample where any is padded; encoders of 4.57 have numbers.
TEST(LanguageModels, MasksOfPaddedBatchesAreOfEachSample) {
  const auto mask_of = [](const char* model, const char* framework, const char* name) {
    const Trace trace = trace_of(model, {.batch = 3,
                                         .sequence = 32,
                                         .precision = Precision::Bf16,
                                         .padded = true,
                                         .framework = framework});
    return trace[trace.outputs(op_named(trace, name))[0]];
  };
  for (const char* framework : {"transformers-4.57", "transformers-5"}) {
    const Tensor mask = mask_of("llama-7b", framework, "attention_mask.samples");
    EXPECT_EQ(mask.shape, (Shape{3, 1, 32, 32}));
    EXPECT_EQ(mask.dtype, DType::Bool);
  }
  EXPECT_EQ(mask_of("bert-base", "transformers-4.57", "attention_mask").shape,
            (Shape{3, 1, 32, 32}));
  EXPECT_EQ(mask_of("bert-base", "transformers-4.57", "attention_mask").dtype, DType::BFloat16);
  EXPECT_EQ(mask_of("bert-base", "transformers-5", "attention_mask").dtype, DType::Bool);
}

TEST(LanguageModels, EncodersOfTransformers5HaveNoMaskThatHidesNothing) {
  const auto adds = [](bool padded) {
    const Trace trace = trace_of("bert-base", {.batch = 3,
                                               .sequence = 32,
                                               .attention = Attention::Math,
                                               .padded = padded,
                                               .framework = "transformers-5"});
    return find_op(trace, "blocks.0.attn.mask") != nullptr;
  };
  EXPECT_FALSE(adds(false));
  EXPECT_TRUE(adds(true));
}

// repeat_kv() of both comes before the scores, so that the gradient of repeated values waits for
// that of the probabilities.
TEST(LanguageModels, ValuesAreRepeatedBeforeScoresAreMade) {
  const Trace trace =
      trace_of("qwen2.5-0.5b", {.batch = 2, .sequence = 32, .attention = Attention::Math});
  EXPECT_LT(&op_named(trace, "blocks.0.attn.v.repeat"), &op_named(trace, "blocks.0.attn.scores"));
}

TEST(LanguageModels, NoKernelMakesFp32ProbabilitiesOfBf16Scores) {
  const auto copies = [](Precision precision) {
    const Trace trace = trace_of(
        "llama-7b",
        {.batch = 2, .sequence = 32, .precision = precision, .attention = Attention::Math});
    return find_op(trace, "blocks.0.attn.scores.float") != nullptr;
  };
  EXPECT_TRUE(copies(Precision::Bf16));
  EXPECT_FALSE(copies(Precision::AmpFp16));
  EXPECT_FALSE(copies(Precision::Fp32));
}

TEST(LanguageModels, HeadsOfOneSampleAreReadWhereTheyLie) {
  const auto copies = [](std::int64_t batch) {
    const Trace trace =
        trace_of("llama-7b", {.batch = batch, .sequence = 32, .attention = Attention::Math});
    return find_op(trace, "blocks.0.attn.v.dense") != nullptr;
  };
  EXPECT_TRUE(copies(2));
  EXPECT_FALSE(copies(1));
}

// Expanded to all heads, one of one sample still lies in one step from head to head; that of two
// samples does not.
TEST(LanguageModels, TheKeyHeadOfOneSampleIsReadByAllHeadsWhereItLies) {
  const auto repeats = [](std::int64_t batch, std::string_view which) {
    const Trace trace =
        trace_of("gemma-2b", {.batch = batch, .sequence = 32, .attention = Attention::Math});
    return find_op(trace, fmt::format("blocks.0.attn.{}.repeat", which)) != nullptr;
  };
  for (const char* which : {"k", "v"}) {
    EXPECT_FALSE(repeats(1, which));
    EXPECT_TRUE(repeats(2, which));
  }
}

// Autocast's copy of the keys, whose rotation is fp32, has them for each head.
TEST(LanguageModels, TheKeyHeadOfOneSampleIsCopiedWhereAutocastCastsIt) {
  const Trace trace = trace_of(
      "gemma-2b",
      {.batch = 1, .sequence = 32, .precision = Precision::AmpBf16, .attention = Attention::Math});
  EXPECT_NE(find_op(trace, "blocks.0.attn.k.repeat"), nullptr);
  EXPECT_EQ(find_op(trace, "blocks.0.attn.v.repeat"), nullptr);
}

// FalconDecoderLayer has a name for each norm's output and for what each branch gives, one by one
// or at once; of the masks of all samples and of one there is one name.
TEST(Falcon, NamesWhatNormsAndBranchesGive) {
  for (const BlockForm form : {BlockForm::PreNorm, BlockForm::Parallel}) {
    Model model = find_model("falcon-40b");
    auto& config = std::get<DecoderConfig>(model.config);
    config.depth = 1, config.block = form, config.drops_sum = is_parallel(form);
    const Trace trace = build_trace(
        model, {.batch = 2, .sequence = 32, .precision = Precision::Bf16, .padded = true});
    for (const char* name : {"input_norm", "attn.o", "post_norm"}) {
      const Op& op = op_named(trace, fmt::format("blocks.0.{}", name));
      const OpId last = trace[trace.outputs(op)[0]].held_until;
      EXPECT_EQ(index(last) + 1, index(trace.blocks[0].end)) << name;
    }
    const auto place = [&](const char* name) { return &op_named(trace, name) - trace.ops.data(); };
    EXPECT_EQ(place("blocks.0.post_norm") < place("blocks.0.attn.o"), is_parallel(form));
    const Op& of_one = op_named(trace, "attention_mask");
    EXPECT_EQ(trace[trace.outputs(of_one)[0]].held_until, no_op);
  }
}

// StableLmDecoderLayer has names for its first norm's output and for what attention gives; the
// second norm's goes into the MLP without one.
TEST(StableLm, NamesWhatTheFirstNormAndAttentionGive) {
  Model model = find_model("stablelm-3b");
  std::get<DecoderConfig>(model.config).depth = 1;
  const Trace trace =
      build_trace(model, {.batch = 2, .sequence = 32, .precision = Precision::Bf16});
  const auto lasts_as_the_block = [&](const char* name) {
    const Op& op = op_named(trace, fmt::format("blocks.0.{}", name));
    const OpId last = trace[trace.outputs(op)[0]].held_until;
    return last != no_op && index(last) + 1 == index(trace.blocks[0].end);
  };
  EXPECT_TRUE(lasts_as_the_block("input_norm"));
  EXPECT_TRUE(lasts_as_the_block("attn.o"));
  EXPECT_FALSE(lasts_as_the_block("post_norm"));
  EXPECT_FALSE(lasts_as_the_block("mlp.down"));
}

// Starcoder2Attention and Starcoder2MLP drop what they give before they return: their variables,
// and what they were called with, last until then.
TEST(Starcoder2, DropsInsideOfItsBranches) {
  const Trace trace = trace_of("starcoder2-3b", {.batch = 2, .sequence = 32, .dropout = 0.1});
  const auto held = [&](const char* name) {
    const TensorId made = trace.outputs(op_named(trace, name))[0];
    const OpId last = trace[trace[made].storage].held_until;
    return last == no_op ? std::string() : std::string(trace[last].name);
  };
  EXPECT_EQ(held("blocks.0.attn.q_rope"), "blocks.0.attn.drop");
  EXPECT_EQ(held("blocks.0.post_norm"), "blocks.0.mlp.drop");
}

// Masked scores and probabilities, dropped or not, are variables of DisentangledSelfAttention's
// forward(); the parts of the scores of places are gone when their own function returns.
TEST(Deberta, NamesItsScoresUntilTheAttentionReturns) {
  const Trace trace = trace_of("deberta-v3-base", {.batch = 2, .sequence = 32});
  const auto held = [&](const std::string& name) {
    const TensorId made = trace.outputs(op_named(trace, "blocks.0.attn." + name))[0];
    const OpId end = trace[trace[made].storage].held_until;
    return end == no_op ? std::string() : std::string(trace[end].name);
  };
  for (const char* name : {"q.heads", "mask.bool", "places.add", "masked", "softmax.drop"})
    EXPECT_EQ(held(name), "blocks.0.attn.merge") << name;
  EXPECT_EQ(held("c2p.found"), "blocks.0.attn.places.add");
  EXPECT_EQ(held("scores"), "");
}

// In fp32 the weights are multiplied in place over a view of all rows, whose gradient is made
// beside; in 16 bits over a copy.
TEST(DeepSeek, WeighsItsExpertsOverAViewWhereNothingIsCast) {
  const auto beside = [](Precision precision) {
    const Trace trace =
        trace_of("deepseek-v2-lite", {.batch = 2, .sequence = 32, .precision = precision});
    const Op& op = op_named(trace, "blocks.1.mlp.weighted");
    return opaque_row(trace, op)->backward.workspace.count / size(trace[trace.inputs(op)[0]]).count;
  };
  EXPECT_EQ(beside(Precision::Fp32), 3);
  EXPECT_EQ(beside(Precision::Bf16), 0);
}

TEST(LanguageModels, RefuseMoreTokensThanLearnedPositions) {
  EXPECT_THROW(trace_of("gpt2", {.sequence = 1025}), UsageError);
  EXPECT_THROW(trace_of("roberta-base", {.sequence = 513}), UsageError);
  EXPECT_NO_THROW(trace_of("roberta-base", {.sequence = 512}));
  EXPECT_NO_THROW(trace_of("llama-7b", {.sequence = 4096}));  // rotary tables have no end
}

}  // namespace
}  // namespace tidemark::language_models_test
