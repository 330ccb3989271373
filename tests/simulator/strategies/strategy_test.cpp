// Strategy texts are parsed with their options, plans hold what they claim, and refusals say why.
#include "simulator/strategies/strategy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "tests/traces/small_trace.h"
#include "traces/presets.h"

namespace tidemark::strategy_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

std::string error_of(std::string_view text) {
  try {
    parse_strategy(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string_view> rows_of(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& component : parse_strategy(text).components)
    names.push_back(component.row->name);
  return names;
}

PlannedStep planned(std::string_view text) {
  return plan_step(std::make_shared<const Trace>(small_trace()), parse_strategy(text));
}

std::string refusal_of(std::string_view text) { return planned(text).refusal; }

// --- parsing ------------------------------------------------------------------------------------

TEST(Strategy, OneNameIsOneRow) { EXPECT_THAT(rows_of("vanilla"), ElementsAre("vanilla")); }

TEST(Strategy, AnUnknownNameListsTheKnownOnes) {
  EXPECT_THAT(error_of("vanila"), HasSubstr("unknown strategy 'vanila' (did you mean 'vanilla'?"));
  EXPECT_THAT(error_of("vanila"), HasSubstr("checkpoint"));
  EXPECT_THAT(error_of(""), HasSubstr("unknown strategy ''"));
  EXPECT_THAT(error_of("mesa+"), HasSubstr("unknown strategy ''"));
}

TEST(Strategy, OptionsFollowAColon) {
  const StrategySpec spec = parse_strategy("checkpoint:every=2");
  EXPECT_EQ(spec.components[0].arguments.number("every"), 2);
  EXPECT_TRUE(parse_strategy("mesa:released").components[0].arguments.has("released"));
  EXPECT_FALSE(parse_strategy("mesa").components[0].arguments.has("released"));
  const auto both = parse_strategy("pareprop:hoist,released").components[0].arguments;
  EXPECT_TRUE(both.has("hoist") && both.has("released"));
}

TEST(Strategy, AnUnknownOptionListsTheKnownOnes) {
  EXPECT_THAT(error_of("checkpoint:squirt"),
              HasSubstr("unknown option of strategy 'checkpoint' 'squirt' (did you mean 'sqrt'?"));
  EXPECT_THAT(error_of("vanilla:fast"), HasSubstr("strategy 'vanilla' has no options"));
}

TEST(Strategy, EveryTakesAWholeNumberFromOne) {
  for (const char* text :
       {"checkpoint:every=0", "checkpoint:every=-1", "checkpoint:every=", "checkpoint:every=2x",
        "checkpoint:every=1.5", "checkpoint:every=99999999999999999999"})
    EXPECT_THAT(error_of(text), HasSubstr("takes a number of blocks, 1 or more")) << text;
}

TEST(Strategy, BitsAreTwoFourOrEight) {
  for (const char* text : {"mesa:bits=3", "mesa:bits=16", "mesa:bits=0", "mesa:bits="})
    EXPECT_THAT(error_of(text), HasSubstr("takes a number of bits, one of 2, 4, 8")) << text;
  EXPECT_THAT(error_of("mesa:group=0"), HasSubstr("takes a number of channels, 1 or more"));
  EXPECT_THAT(error_of("mesa:released,bits=4"), HasSubstr("stores a byte per element"));
  EXPECT_THAT(error_of("mesa:released,delayed"), HasSubstr("range of the tensor that it codes"));
  EXPECT_THAT(error_of("fp8-activation"), HasSubstr("did you mean 'fp8-activations'?"));
  EXPECT_THAT(error_of("fp8-activations:group=24"),
              HasSubstr("group= takes a number of neighbours, one of 16, 32, 64, 128"));
}

TEST(Strategy, ACombinationIsInTheOrderOfTheTable) {
  EXPECT_EQ(rows_of("overlap+checkpoint"), rows_of("checkpoint+overlap"));
  EXPECT_EQ(parse_strategy("overlap+checkpoint").text, "overlap+checkpoint");
}

TEST(Strategy, IsWrittenAsItIsRead) {
  for (const char* text : {"vanilla", "checkpoint:every=2", "checkpoint:selective",
                           "checkpoint:every=3+mesa:released", "approx-bp+pareprop:hoist"})
    EXPECT_EQ(strategy_text(parse_strategy(text).components), text);
}

// --- the table ----------------------------------------------------------------------------------

TEST(Strategy, EveryRowSaysWhatItDoesAndWhereItIsFrom) {
  for (const StrategyRow& row : strategies()) {
    EXPECT_FALSE(row.summary.empty()) << row.name;
    const bool is_ours = row.name == "vanilla" || row.name == "overlap";
    EXPECT_EQ(row.source.empty(), is_ours) << row.name;
  }
}

// --- planning -----------------------------------------------------------------------------------

TEST(Strategy, VanillaKeepsTheTraceAndEverything) {
  const auto trace = std::make_shared<const Trace>(small_trace());
  const PlannedStep step = plan_step(trace, parse_strategy("vanilla"));
  EXPECT_EQ(step.trace, trace);
  EXPECT_THAT(step.plan.decisions, Each(Field(&Decision::action, Action::Keep)));
  EXPECT_EQ(step.plan.strategy, "vanilla");
}

TEST(Strategy, EveryDecisionHasItsReason) {
  for (const StrategyRow& row : strategies()) {
    const PlannedStep step = planned(row.name);
    for (std::size_t t = 0; t < step.plan.decisions.size(); ++t)
      EXPECT_FALSE(step.plan.reasons[step.plan.decisions[t].reason].empty()) << row.name;
  }
}

TEST(Strategy, CheckpointKeepsOnlyWhatEntersABlock) {
  const PlannedStep step = planned("checkpoint");
  const auto action = [&](const char* name) {
    return step.plan.decisions[index(tensor_named(*step.trace, name))].action;
  };
  EXPECT_EQ(action("b0.norm"), Action::Recompute);
  EXPECT_EQ(action("b0.drop.mask"), Action::Recompute);
  EXPECT_EQ(action("b0.add2"), Action::Keep);
  EXPECT_EQ(step.plan.regions.size(), 2u);
  EXPECT_FALSE(step.plan.overlap);
  EXPECT_TRUE(planned("checkpoint+overlap").plan.overlap);
}

TEST(Strategy, CheckpointEveryTwoHasHalfAsManyRegions) {
  EXPECT_EQ(planned("checkpoint:every=2").plan.regions.size(), 1u);
  EXPECT_EQ(planned("checkpoint:every=99").plan.regions.size(), 1u);
}

TEST(Strategy, MesaQuantizesWhatItsLayersKeep) {
  const PlannedStep step = planned("mesa");
  const auto action = [&](const char* name) {
    return step.plan.decisions[index(tensor_named(*step.trace, name))].action;
  };
  EXPECT_EQ(action("b0.norm"), Action::Quantize);  // what the linear keeps
  EXPECT_EQ(action("b0.drop.mask"), Action::Keep);
  EXPECT_EQ(action("loss.log_softmax"), Action::Keep);  // the loss is none of Mesa's layers
  EXPECT_FALSE(step.plan.quirks.codes_per_use);
  EXPECT_TRUE(planned("mesa:released").plan.quirks.codes_per_use);
}

// Channels where they divide the width, else all of it.
TEST(Strategy, MesaCodesAsItIsTold) {
  const auto encoding = [&](std::string_view strategy) {
    const PlannedStep step = planned(strategy);
    return encoding_of(step.plan, tensor_named(*step.trace, "b0.norm"));
  };
  const Encoding usual = encoding("mesa");
  EXPECT_EQ(usual.bits, 8);
  EXPECT_EQ(encoding("mesa:released"), usual);
  EXPECT_EQ(encoding("mesa:bits=4").bits, 4);
  EXPECT_EQ(encoding("mesa:group=2").group, 2u);
  EXPECT_EQ(encoding("mesa:group=1000").group, 0u);
  EXPECT_EQ(planned("mesa:bits=2").plan.reasons.back(), "kept in 2 bits per element");
}

// fc1's output is coded because GELU's backward reads it; GELU's own, which only fc2 reads, is not.
TEST(Strategy, DelayedMesaMakesActivationsAgainFromCodes) {
  TraceBuilder b("codes", "toy", {.precision = Precision::Fp32});
  const TensorId x = b.linear("fc1", b.input("x", {2, 8}, DType::Float32), 8);
  const TensorId y = b.linear("fc2", b.gelu("gelu", x), 8);
  const auto trace = std::make_shared<const Trace>(
      b.finish(b.cross_entropy("loss", y, b.input("t", {2}, DType::Int64))));
  const Plan plan = plan_step(trace, parse_strategy("mesa:delayed")).plan;
  const TensorId fc1 = tensor_named(*trace, "fc1"), gelu = tensor_named(*trace, "gelu");
  EXPECT_EQ(plan.decisions[index(fc1)].action, Action::Quantize);
  EXPECT_TRUE(encoding_of(plan, fc1).delayed);
  EXPECT_EQ(plan.decisions[index(gelu)].action, Action::Recompute);
  ASSERT_EQ(plan.regions.size(), 1u);
  EXPECT_EQ((*trace)[plan.regions[0].begin].name, "gelu");
  EXPECT_THAT(check(*trace, plan), testing::IsEmpty());
  // Segments that are recomputed as wholes leave nothing to be made again from codes.
  const Plan both = planned("mesa:delayed+checkpoint").plan;
  EXPECT_EQ(both.regions, planned("checkpoint").plan.regions);
}

// One scale for what products alone read, one per sixteen neighbours for all else, and nothing that
// Mesa would not keep in codes.
TEST(Strategy, Fp8ActivationsHaveTheGranularityOfTheirReaders) {
  TraceBuilder b("codes", "toy", {.precision = Precision::Fp32});
  const TensorId x = b.linear("fc1", b.input("x", {2, 48}, DType::Float32), 48);
  const TensorId gelu = b.gelu("gelu", x);
  const TensorId y = b.linear("fc2", gelu, 48);
  const TensorId both = b.layer_norm("norm", b.linear("fc3", y, 48), 1e-5);
  const TensorId z = b.mul("gate", both, b.linear("fc4", both, 48));
  const auto trace = std::make_shared<const Trace>(
      b.finish(b.cross_entropy("loss", z, b.input("t", {2}, DType::Int64))));
  const auto encoding = [&](std::string_view strategy, const char* name) {
    const Plan plan = plan_step(trace, parse_strategy(strategy)).plan;
    const TensorId tensor = tensor_named(*trace, name);
    EXPECT_EQ(plan.decisions[index(tensor)].action, Action::Quantize) << name;
    return encoding_of(plan, tensor);
  };
  EXPECT_EQ(encoding("fp8-activations", "fc1"), float8_encoding({2, 48}));
  EXPECT_EQ(encoding("fp8-activations", "gelu"), float8_encoding_of_tensor());
  EXPECT_EQ(encoding("fp8-activations", "norm"),
            float8_encoding({2, 48}));                                // a linear and the gate
  EXPECT_EQ(encoding("fp8-activations:group=32", "fc1").group, 48u);  // 32 do not divide 48
  const Plan floats = plan_step(trace, parse_strategy("fp8-activations")).plan;
  const Plan mesa = plan_step(trace, parse_strategy("mesa")).plan;
  for (std::size_t t = 0; t < floats.decisions.size(); ++t)
    EXPECT_EQ(floats.decisions[t].action, mesa.decisions[t].action) << trace->tensors[t].name;
  EXPECT_EQ(caution_of_codes(floats), "gradients are approximate, from copies in 8-bit floats");
  EXPECT_EQ(caution_of_codes(mesa), "gradients are approximate, from 8-bit copies");
}

// --- refusals -----------------------------------------------------------------------------------

TEST(Strategy, AContradictionIsRefusedWithTheReason) {
  EXPECT_THAT(refusal_of("vanilla+mesa"), HasSubstr("vanilla means no technique"));
  EXPECT_THAT(refusal_of("mesa+mesa"), HasSubstr("mesa is named twice"));
  EXPECT_THAT(refusal_of("reversible+pareprop"), HasSubstr("pareprop is reversible already"));
  EXPECT_THAT(refusal_of("reversible+checkpoint"), HasSubstr("keeps nothing between its blocks"));
  EXPECT_THAT(refusal_of("pareprop+mesa"), HasSubstr("grow through every inverse"));
  EXPECT_THAT(refusal_of("reversible+fp8-activations"), HasSubstr("grow through every inverse"));
  EXPECT_THAT(refusal_of("mesa+fp8-activations"), HasSubstr("in codes of its own"));
  EXPECT_THAT(refusal_of("pareprop+overlap"), HasSubstr("pareprop overlaps already"));
  EXPECT_THAT(refusal_of("lowmemorybp+ms-bp"), HasSubstr("lowmemorybp contains ms-bp"));
}

TEST(Strategy, WhatDoesNotApplyIsRefusedWithTheReason) {
  EXPECT_THAT(refusal_of("approx-bp"), HasSubstr("approx-bp: "));  // no activation in it
  EXPECT_THAT(refusal_of("overlap"), HasSubstr("nothing is recovered that could overlap"));
  EXPECT_THAT(refusal_of("checkpoint:selective"), HasSubstr("no block makes an attention map"));
}

TEST(Strategy, ARefusedStrategyKeepsEverything) {
  const PlannedStep step = planned("checkpoint+approx-bp");
  EXPECT_FALSE(step.refusal.empty());
  EXPECT_EQ(*step.trace, small_trace());
  EXPECT_THAT(step.plan.decisions, Each(Field(&Decision::action, Action::Keep)));
  EXPECT_THAT(step.plan.regions, IsEmpty());
  EXPECT_EQ(step.plan.strategy, "checkpoint+approx-bp");
}

TEST(Strategy, ATraceWithoutBlocksHasNoCheckpoints) {
  TraceBuilder b("flat", "toy", {});
  const auto trace = std::make_shared<const Trace>(b.finish(b.gelu("gelu", b.parameter("p", {}))));
  EXPECT_THAT(plan_step(trace, parse_strategy("checkpoint")).refusal,
              HasSubstr("the trace names no blocks"));
}

std::shared_ptr<const Trace> tuned(std::string_view model, std::string_view tuning) {
  StepOptions step{.sequence = 8, .tuning = parse_tuning(tuning)};
  if (model.starts_with("vit") || model.ends_with("vision")) step.sequence.reset();
  return std::make_shared<const Trace>(build_trace(find_model(model), step));
}

/// Inputs that get gradients for the sake of those behind them.
std::vector<std::string> zeros_in(const Trace& trace) {
  std::vector<std::string> names;
  for (const Tensor& tensor : trace.tensors)
    if (tensor.category == Category::Input && tensor.trainable) names.push_back(tensor.name);
  return names;
}

// enable_input_require_grads(): words, or patches. T5's encoder and decoder share the module;
// BART's own copies of it have no hook.
TEST(Strategy, TheModelsOwnCheckpointsGiveTheEmbeddingAGradientBesideAdapters) {
  const auto zeros = [](std::string_view model, std::string_view strategy,
                        std::string_view tuning) {
    const PlannedStep step = plan_step(tuned(model, tuning), parse_strategy(strategy));
    EXPECT_EQ(step.refusal, "");
    EXPECT_THAT(check(*step.trace), IsEmpty());
    EXPECT_THAT(check(*step.trace, step.plan), IsEmpty());
    EXPECT_EQ(step.rewrites.size(), zeros_in(*step.trace).empty() ? 0u : 1u);
    return zeros_in(*step.trace);
  };
  constexpr auto lora = "lora:r=4,targets=q";
  EXPECT_THAT(zeros("bert-base", "checkpoint", lora), ElementsAre("embed.requires_grad.zero"));
  EXPECT_THAT(zeros("siglip-base-vision", "checkpoint", lora),
              ElementsAre("patch_embed.requires_grad.zero"));
  EXPECT_THAT(zeros("vit-ti-16", "checkpoint", "lora:r=4,targets=qkv"), IsEmpty());  // timm's
  EXPECT_EQ(zeros("t5-base", "checkpoint", lora).size(), 3u);  // with that of its scores
  EXPECT_THAT(zeros("bart-base", "checkpoint", lora), IsEmpty());
  EXPECT_THAT(zeros("bert-base", "checkpoint", "full"), IsEmpty());
  EXPECT_THAT(zeros("bert-base", "checkpoint:blocks", lora), IsEmpty());
  EXPECT_THAT(zeros("bert-base", "vanilla", lora), IsEmpty());
  EXPECT_THAT(zeros("bert-base", "checkpoint", "lora:r=4,targets=q,save=embed_tokens"), IsEmpty());
}

// position_bias.requires_grad = True of modeling_t5.py, where it checkpoints: of the zeros that
// stand for a table of distances to the encoder's words. Their sum with a mask, and its gradient,
// are as large as the scores.
TEST(Strategy, ACheckpointedT5GivesTheZerosOfItsScoresAGradient) {
  for (const char* framework : {"transformers-4.57", "transformers-5"}) {
    const auto trace = std::make_shared<const Trace>(
        build_trace(find_model("t5-base"),
                    {.batch = 2, .sequence = 16, .target_sequence = 8, .framework = framework}));
    EXPECT_THAT(zeros_in(*plan_step(trace, parse_strategy("vanilla")).trace), IsEmpty());
    EXPECT_THAT(zeros_in(*plan_step(trace, parse_strategy("checkpoint:blocks")).trace), IsEmpty());
    const PlannedStep step = plan_step(trace, parse_strategy("checkpoint"));
    EXPECT_EQ(zeros_in(*step.trace).size(), 1u) << framework;
    const Schedule schedule = lower(*step.trace, step.plan);
    EXPECT_THAT(validate(*step.trace, schedule), IsEmpty());
    EXPECT_TRUE(std::ranges::any_of(schedule.buffers, [&](const Buffer& buffer) {
      return buffer.role == Role::Gradient && buffer.tensor != no_tensor &&
             (*step.trace)[buffer.tensor].name.starts_with("decoder.cross_bias");
    })) << framework;
  }
}

// The weights that a layer returns, which the encoder would name until the next layer returns, have
// a name while the layer runs again: until that ends with what its last norm keeps.
TEST(Strategy, WhatALayerReturnsLastsWhileItRunsAgain) {
  Model model = find_model("bert-base");
  std::get<BertConfig>(model.config).depth = 2;
  StepOptions step{.batch = 2, .sequence = 16, .precision = Precision::AmpBf16, .dropout = 0.1};
  step.attention = Attention::Math;
  const auto trace = std::make_shared<const Trace>(build_trace(model, step));
  const PlannedStep planned = plan_step(trace, parse_strategy("checkpoint"));
  const Schedule schedule = lower(*planned.trace, planned.plan);
  std::vector<std::string> events;
  for (const Step& each : schedule.steps) {
    if (const auto* run = std::get_if<tidemark::Run>(&each); run && run->task == Task::Recompute)
      events.emplace_back((*planned.trace)[run->op].name);
    if (const auto* free = std::get_if<Free>(&each))
      if (const TensorId tensor = schedule[free->buffer].tensor; tensor != no_tensor)
        events.push_back(fmt::format("free {}", (*planned.trace)[tensor].name));
  }
  const auto place = [&](const char* event) { return std::ranges::find(events, event); };
  EXPECT_LT(place("blocks.0.norm2"),
            std::find(place("blocks.0.attn.dropout"), events.end(), "free blocks.0.attn.dropout"));
}

// The zero's gradient ends with the step, however the step is cut.
TEST(Strategy, InputGradientsEndWithTheStep) {
  for (const bool in_backward : {false, true}) {
    StepOptions step{.sequence = 8, .tuning = parse_tuning("lora:r=4,targets=q")};
    step.update_in_backward = in_backward;
    if (!in_backward) step.accumulate.count = 2;
    const auto trace = std::make_shared<const Trace>(build_trace(find_model("bert-base"), step));
    const PlannedStep planned = plan_step(trace, parse_strategy("checkpoint"));
    EXPECT_THAT(validate(*planned.trace, lower(*planned.trace, planned.plan)), IsEmpty());
  }
}

// Gemma 3's module for the table scales what it finds; that of the others' is scaled by the model.
TEST(Strategy, InputGradientsBeginBehindTheModuleThatLooksUp) {
  const auto read_by_zero = [](const char* model) {
    const PlannedStep step =
        plan_step(tuned(model, "lora:r=4,targets=q"), parse_strategy("checkpoint"));
    for (const Op& op : step.trace->ops)
      if (op.name.ends_with(".requires_grad"))
        return std::string((*step.trace)[step.trace->inputs(op)[0]].name);
    return std::string();
  };
  EXPECT_EQ(read_by_zero("gemma-2b"), "embed");
  EXPECT_EQ(read_by_zero("gemma-3-1b"), "embed.scale");
}

// What lies between the embedding and the first block keeps its inputs for gradients.
TEST(Strategy, WithInputGradientsEmbeddingsKeepMore) {
  const auto trace = tuned("bert-base", "lora:r=4,targets=q");
  const PlannedStep step = plan_step(trace, parse_strategy("checkpoint"));
  const auto keeps = [](const Trace& of, std::string_view op) {
    const Needs needs = derive_needs(of);
    for (std::size_t i = 0; i < of.ops.size(); ++i)
      if (of.ops[i].name == op) return needs.saved[i] != 0;
    return false;
  };
  EXPECT_FALSE(keeps(*trace, "embed_norm"));
  EXPECT_TRUE(keeps(*step.trace, "embed_norm"));
}

// GPT-2's causal masks, and the head that a trained copy stands in for: the module has them.
TEST(Strategy, WhatNoOpReadsIsThereInChangedSteps) {
  const auto unread = [](const Trace& trace) {
    std::vector<bool> is_read(trace.tensors.size());
    for (const TensorId operand : trace.operands) is_read[index(operand)] = true;
    std::vector<std::string> names;
    for (std::size_t t = 0; t < is_read.size(); ++t)
      if (!is_read[t]) names.emplace_back(trace.tensors[t].name);
    return names;
  };
  for (const char* model : {"gpt2", "vit-b-16"}) {
    const auto trace = tuned(model, "lora:r=4,targets=all");
    EXPECT_THAT(unread(*trace), Not(IsEmpty()));
    for (const char* strategy : {"checkpoint", "reversible", "approx-bp", "ms-bp"}) {
      const PlannedStep step = plan_step(trace, parse_strategy(strategy));
      ASSERT_NE(step.trace, trace) << strategy;
      EXPECT_EQ(unread(*step.trace), unread(*trace)) << model << " " << strategy;
    }
  }
}

// Coupled first, a post-norm block's norm feeds only linears, and its affine part needs no op.
TEST(Strategy, WiringIsChangedBeforeOperators) {
  const auto trace =
      std::make_shared<const Trace>(build_trace(find_model("bert-base"), {.sequence = 8}));
  const PlannedStep step = plan_step(trace, parse_strategy("ms-bp+reversible"));
  EXPECT_EQ(step.refusal, "");
  EXPECT_THAT(check(*step.trace, step.plan), IsEmpty());
  for (const Op& op : step.trace->ops) EXPECT_THAT(op.name, Not(HasSubstr("affine")));
}

}  // namespace
}  // namespace tidemark::strategy_test
