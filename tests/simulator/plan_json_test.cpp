// Plan files: what is written, what names mean in another trace, and one line for each mistake.
#include "simulator/plan_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report.h"
#include "base/error.h"
#include "tests/support/small_models.h"
#include "traces/trace_builder.h"

namespace tidemark::plan_json_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::shared_ptr<const Trace> trace_of(const Model& model, std::int64_t batch = 2) {
  StepOptions step{.batch = batch};
  step.attention = Attention::Math;
  return std::make_shared<const Trace>(build_trace(model, step));
}

std::string written(const Model& model, const std::string& strategy) {
  const StrategySpec spec = parse_strategy(strategy);
  return write_plan(plan_step(trace_of(model), spec));
}

// A whole file around its last members.
std::string file_with(const std::string& members) {
  return R"({"format": "tidemark-plan", "version": 1, "model": "small-vit", "step": "batch 2", )" +
         members + "}";
}

std::string decisions(const std::string& list) {
  return file_with(R"("decisions": [)" + list + "]");
}

PlannedStep planned(const std::string& json, const Model& model = small_vit()) {
  return plan_step(trace_of(model), read_plan(json, "my.plan.json"));
}

std::string error_of(const std::string& json) {
  try {
    planned(json);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

Action action_of(const PlannedStep& step, std::string_view name) {
  for (std::size_t t = 0; t < step.trace->tensors.size(); ++t)
    if (step.trace->tensors[t].name == name) return step.plan.decisions[t].action;
  ADD_FAILURE() << "no tensor " << name;
  return Action::Keep;
}

// --- what is written ----------------------------------------------------------------------------

TEST(PlanFile, NamesTheTensorsOfAllBlocksByTheirRole) {
  EXPECT_EQ(written(small_vit(2), "mesa"), R"({
  "format": "tidemark-plan",
  "version": 2,
  "strategy": "mesa",
  "model": "small-vit",
  "step": "batch 2, fp32, math attention, full, adamw, transformers-4.57, no ema",
  "decisions": [
    {
      "action": "quantize",
      "reason": "kept in one byte per element",
      "tensors": [
        "pos_add", "blocks.*.norm1", "blocks.*.attn.q.dense", "blocks.*.attn.k.dense",
        "blocks.*.attn.softmax", "blocks.*.attn.v.dense", "blocks.*.attn.merge", "blocks.*.add1",
        "blocks.*.norm2", "blocks.*.mlp.fc1", "blocks.*.mlp.gelu", "blocks.*.add2", "norm"
      ]
    }
  ]
}
)");
}

// Only what Mesa's layers have otherwise: heads, and 64 channels, where 64 divide them.
TEST(PlanFile, SaysHowTensorsAreCoded) {
  const std::string text = written(small_vit(2), "mesa:bits=4,group=2");
  EXPECT_THAT(text, HasSubstr("      \"reason\": \"kept in 4 bits per element\",\n"
                              "      \"encoding\": {\"bits\": 4, \"group\": 2},\n"));
  EXPECT_THAT(text, HasSubstr("      \"encoding\": {\"bits\": 4},\n"
                              "      \"tensors\": [\n"
                              "        \"blocks.*.attn.q.dense\""));
}

TEST(PlanFile, OfVanillaDecidesNothing) {
  const std::string text = written(small_vit(), "vanilla");
  EXPECT_THAT(text, HasSubstr("\"decisions\": []\n}\n"));
  EXPECT_THAT(text, Not(HasSubstr("regions")));
}

TEST(PlanFile, NamesTheOpsBetweenWhichARegionLies) {
  const std::string text = written(small_vit(3), "checkpoint+overlap");
  EXPECT_THAT(text, HasSubstr("  \"overlap\": true,\n"));
  EXPECT_THAT(text, HasSubstr("  \"regions\": [\n"
                              "    {\"begin\": \"blocks.0.norm1\", \"end\": \"blocks.1.norm1\"},\n"
                              "    {\"begin\": \"blocks.1.norm1\", \"end\": \"blocks.2.norm1\"},\n"
                              "    {\"begin\": \"blocks.2.norm1\", \"end\": \"norm\"}\n  ]"));
}

TEST(PlanFile, SaysWhichStrategiesRewroteItsTrace) {
  EXPECT_THAT(written(small_vit(), "pareprop:hoist,released+approx-bp"),
              HasSubstr("\"rewrites\": \"approx-bp+pareprop:hoist,released\",\n"));
  EXPECT_THAT(written(small_vit(), "mesa+checkpoint"), Not(HasSubstr("rewrites")));
}

// --- what is read -------------------------------------------------------------------------------

TEST(PlanFile, IsCalledAsTheFileIs) {
  const std::string text = written(small_vit(), "checkpoint");
  EXPECT_EQ(read_plan(text, "a/b/tuned.plan.json").text, "plan:tuned");
  EXPECT_EQ(read_plan(text, "tuned.plan.json.zst").text, "plan:tuned");
  EXPECT_EQ(read_plan(text, "tuned.v2.json").text, "plan:tuned.v2");
  EXPECT_EQ(planned(text).plan.strategy, "plan:my");
}

TEST(PlanFile, OfOneBatchIsThatOfAnother) {
  const std::string text = written(small_vit(), "checkpoint");
  const auto large = trace_of(small_vit(), 64);
  Plan expected = plan_step(large, parse_strategy("checkpoint")).plan;
  expected.strategy = "plan:x";
  EXPECT_EQ(plan_step(large, read_plan(text, "x")).plan, expected);
}

TEST(PlanFile, GivesWhatItsStrategyGives) {
  const Device device = find_device("a100-80gb");
  for (const char* text : {"lowmemorybp+mesa", "pareprop:released", "checkpoint+overlap"}) {
    const auto trace = trace_of(small_vit());
    const MemoryBudget budget{device.capacity};
    const Evaluation by_name = evaluate(trace, parse_strategy(text), device, budget);
    const Evaluation by_file =
        evaluate(trace, read_plan(written(small_vit(), text), "x"), device, budget);
    EXPECT_EQ(by_file.schedule.steps.size(), by_name.schedule.steps.size()) << text;
    EXPECT_EQ(by_file.timeline.duration, by_name.timeline.duration) << text;
    EXPECT_EQ(by_file.report.reserved_peak, by_name.report.reserved_peak) << text;
    EXPECT_EQ(by_file.report.caution, by_name.report.caution) << text;
    EXPECT_EQ(by_file.report.strategy, "plan:x");
  }
}

TEST(PlanFile, ALaterDecisionOverridesAnEarlierOne) {
  const PlannedStep step = planned(decisions(R"(
      {"action": "offload", "tensors": ["blocks.*.mlp.fc1"]},
      {"action": "keep", "reason": "the first to be needed", "tensors": ["blocks.2.mlp.fc1"]})"));
  EXPECT_EQ(action_of(step, "blocks.1.mlp.fc1"), Action::Offload);
  EXPECT_EQ(action_of(step, "blocks.2.mlp.fc1"), Action::Keep);
  EXPECT_THAT(step.plan.reasons,
              ElementsAre(usual_reason, "named in the plan file", "the first to be needed"));
}

// A file of version 1 says nothing about it: 8 bits, by Mesa's groups. What an encoding leaves out
// is Mesa's, too.
TEST(PlanFile, SaysOfATensorHowItIsCoded) {
  const PlannedStep step = planned(decisions(R"(
      {"action": "quantize", "tensors": ["blocks.0.norm1", "blocks.0.attn.softmax"]},
      {"action": "quantize", "encoding": {"bits": 4}, "tensors": ["blocks.1.attn.softmax"]},
      {"action": "quantize", "encoding": {"bits": 2, "axis": 0, "group": 1},
       "tensors": ["blocks.1.norm1"]})"));
  const auto encoding = [&](std::string_view name) {
    const auto& tensors = step.trace->tensors;
    const auto found = std::ranges::find(tensors, name, &Tensor::name);
    return encoding_of(step.plan, static_cast<TensorId>(found - tensors.begin()));
  };
  const auto is_mesa = [&](std::string_view name, int bits) {
    const auto found = std::ranges::find(step.trace->tensors, name, &Tensor::name);
    return encoding(name) == mesa_encoding(found->shape, bits);
  };
  EXPECT_TRUE(is_mesa("blocks.0.norm1", 8) && is_mesa("blocks.0.attn.softmax", 8));
  EXPECT_TRUE(is_mesa("blocks.1.attn.softmax", 4));
  EXPECT_EQ(encoding("blocks.1.norm1"), (Encoding{.group = 1, .bits = 2, .axis = 0}));
}

TEST(PlanFile, SaysWhichCodesAreDelayed) {
  const std::string text = written(small_vit(), "mesa:delayed");
  EXPECT_THAT(text, HasSubstr("\"version\": 5,"));
  EXPECT_THAT(text, HasSubstr("\"delayed\": true"));
  EXPECT_THAT(written(small_vit(), "mesa"), Not(HasSubstr("delayed")));
  const PlannedStep step = planned(decisions(
      R"({"action": "quantize", "encoding": {"delayed": true}, "tensors": ["blocks.0.norm1"]})"));
  const auto found = std::ranges::find(step.trace->tensors, "blocks.0.norm1", &Tensor::name);
  const auto norm = static_cast<TensorId>(found - step.trace->tensors.begin());
  EXPECT_TRUE(encoding_of(step.plan, norm).delayed);
}

// What is left out of an encoding of floats is as COAT has it.
TEST(PlanFile, SaysWhichCodesAreFloats) {
  const std::string text = written(small_vit(), "fp8-activations");
  EXPECT_THAT(text, HasSubstr("\"version\": 6,"));
  EXPECT_THAT(text, HasSubstr("\"encoding\": {\"format\": \"float8_e4m3fn\"},"));
  EXPECT_THAT(text, HasSubstr("\"encoding\": {\"format\": \"float8_e4m3fn\", \"group\": 0},"));
  EXPECT_THAT(written(small_vit(), "mesa"), Not(HasSubstr("float8")));
  const auto trace = trace_of(small_vit());
  const Plan by_name = plan_step(trace, parse_strategy("fp8-activations")).plan;
  const Plan by_file = plan_step(trace, read_plan(text, "x")).plan;
  for (std::size_t t = 0; t < trace->tensors.size(); ++t) {
    const auto tensor = static_cast<TensorId>(t);
    EXPECT_EQ(by_file.decisions[t].action, by_name.decisions[t].action);
    EXPECT_EQ(encoding_of(by_file, tensor), encoding_of(by_name, tensor));
  }
  EXPECT_EQ(error_of(decisions(R"({"action": "quantize", "encoding": {"format": "float8"},
                                   "tensors": ["blocks.0.norm1"]})")),
            "my.plan.json: /decisions/0/encoding/format: unknown format of codes 'float8' (did you "
            "mean 'float8_e4m3fn'? known: integer, float8_e4m3fn)");
}

TEST(PlanFile, AnEncodingThatFitsNoTensorIsTold) {
  const auto error = [](const std::string& encoding) {
    return error_of(decisions(R"({"action": "quantize", "encoding": )" + encoding +
                              R"(, "tensors": ["blocks.0.norm1"]})"));
  };
  EXPECT_EQ(error(R"({"bits": 5})"),
            "my.plan.json: /decisions/0/encoding: codes have 2, 4, 8 bits, not 5");
  EXPECT_THAT(error(R"({"axis": 7, "group": 1})"), HasSubstr("/encoding: it has no axis 7"));
  EXPECT_THAT(error(R"({"group": 7})"), HasSubstr("groups of 7 do not divide its axis 2"));
  EXPECT_THAT(error(R"({"metadata": 2})"), HasSubstr("2 bytes hold no range"));
  EXPECT_THAT(error(R"({"groups": 1})"), HasSubstr("unknown key 'groups' (did you mean 'group'?"));
  EXPECT_THAT(error(R"({"bits": 300})"), HasSubstr("/encoding/bits"));
  EXPECT_THAT(error_of(decisions(R"({"action": "keep", "encoding": {}, "tensors": []})")),
              HasSubstr("/decisions/0/encoding: is of no use to keep"));
}

TEST(PlanFile, IsRefusedWhereItsRewritingDoesNotApply) {
  const PlannedStep step = planned(file_with(R"("rewrites": "approx-bp", "decisions": [])"),
                                   small_model("relu-free", VitConfig{.image = 16,
                                                                      .patch = 4,
                                                                      .width = 32,
                                                                      .depth = 0,
                                                                      .heads = 2,
                                                                      .mlp = 64,
                                                                      .classes = 10}));
  EXPECT_THAT(step.refusal, StartsWith("approx-bp: "));
}

TEST(PlanFile, NamesWhatStaysForRecovery) {
  const auto trace = std::make_shared<const Trace>(build_trace(small_vit(2), {.batch = 2}));
  const StrategySpec file = read_plan(
      R"({"format": "tidemark-plan", "version": 3, "decisions": [],
          "kept_for_recovery": ["blocks.*.add1"]})",
      "my.plan.json");
  const Plan plan = plan_for(*trace, *file.plan);
  const std::string text = write_plan({trace, plan, {}});
  EXPECT_THAT(text, HasSubstr("  \"version\": 3,\n"));
  EXPECT_THAT(text, HasSubstr("  \"kept_for_recovery\": [\n    \"blocks.*.add1\"\n  ]"));
  std::size_t kept = 0;
  for (std::size_t t = 0; t < trace->tensors.size(); ++t)
    kept += is_kept_for_recovery(plan, static_cast<TensorId>(t));
  EXPECT_EQ(kept, 2u);
}

// --- mistakes -----------------------------------------------------------------------------------

TEST(PlanFile, OfAnotherKindOrVersionIsRefused) {
  EXPECT_EQ(error_of("{}"), "my.plan.json: not a plan file; need \"format\": \"tidemark-plan\"");
  EXPECT_EQ(error_of(R"({"format": "tidemark-plan", "version": 8})"),
            "my.plan.json: /version: found 8; this program reads versions 1 to 7");
  EXPECT_THAT(error_of(file_with(R"("decision": [])")),
              HasSubstr("unknown key 'decision' (did you mean 'decisions'?"));
}

// Not only where they are shown: who reads the file is told at once.
TEST(PlanFile, WhatItWasMadeForIsText) {
  for (const char* key : {"model", "step", "strategy"}) {
    const std::string json = fmt::format(
        R"({{"format": "tidemark-plan", "version": 2, "{}": [1], "decisions": []}})", key);
    try {
      read_plan(json, "my.plan.json");
      FAIL() << key;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()),
                fmt::format("my.plan.json: /{}: found a list; need text in quotes", key));
    }
  }
}

TEST(PlanFile, AnUnknownTensorIsToldWithTheNearestAndWhatThePlanWasMadeFor) {
  EXPECT_EQ(error_of(decisions(R"({"action": "offload", "tensors": ["blocks.0.mlp.geul"]})")),
            "my.plan.json: /decisions/0/tensors/0: small-vit has no tensor 'blocks.0.mlp.geul' "
            "(did you mean 'blocks.0.mlp.gelu'?); the plan was made for small-vit (batch 2)");
  EXPECT_THAT(error_of(decisions(R"({"action": "offload", "tensors": ["blocks.*.mlp.geul"]})")),
              HasSubstr("(did you mean 'blocks.*.mlp.gelu'?)"));
}

TEST(PlanFile, AViewIsToldWithItsMemory) {
  EXPECT_EQ(error_of(decisions(R"({"action": "offload", "tensors": ["blocks.0.attn.unpack.q"]})")),
            "my.plan.json: /decisions/0/tensors/0: 'blocks.0.attn.unpack.q' lies in the memory of "
            "'blocks.0.attn.qkv'; name that one");
}

TEST(PlanFile, UnknownActionsQuirksAndOpsAreTold) {
  EXPECT_THAT(error_of(decisions(R"({"action": "ofload", "tensors": []})")),
              HasSubstr("/decisions/0/action: unknown action 'ofload' (did you mean 'offload'?"));
  EXPECT_THAT(error_of(file_with(R"("quirks": ["two_streams"], "decisions": [])")),
              HasSubstr("/quirks/0: unknown quirk 'two_streams'"));
  EXPECT_THAT(error_of(file_with(R"("decisions": [], "regions": [{"begin": "blocks.1.norm"}])")),
              HasSubstr("/regions/0/begin: small-vit has no op 'blocks.1.norm' (did you mean"));
  EXPECT_THAT(error_of(decisions(R"({"action": "keep", "reason": "", "tensors": []})")),
              HasSubstr("/decisions/0/reason: is empty"));
}

// Each tensor is looked for among the reasons.
TEST(PlanFile, HasAThousandReasonsAtMost) {
  const auto with_reasons = [](int count) {
    std::string list;
    for (int i = 1; i < count; ++i)  // beside that of tensors which no group names
      list += fmt::format(R"({}{{"action": "keep", "reason": "{}", "tensors": ["blocks.0.add1"]}})",
                          i == 1 ? "" : ", ", i);
    return decisions(list);
  };
  EXPECT_EQ(error_of(with_reasons(1000)), "");
  EXPECT_THAT(error_of(with_reasons(1001)),
              HasSubstr("/decisions/999: is the reason number 1000; give groups the same reason"));
}

TEST(PlanFile, ARegionGoesForwardAndDoesNotOverlap) {
  const auto of_regions = [](const std::string& list) {
    return error_of(file_with(R"("decisions": [], "regions": [)" + list + "]"));
  };
  EXPECT_THAT(of_regions(R"({"begin": "blocks.1.norm1", "end": "blocks.1.norm1"})"),
              HasSubstr("/regions/0: ends before it begins"));
  EXPECT_THAT(of_regions(R"({"begin": "blocks.1.norm1", "split": "blocks.0.norm1"})"),
              HasSubstr("/regions/0/split: is no op of the region"));
  EXPECT_THAT(of_regions(R"({"begin": "blocks.1.norm1"}, {"begin": "blocks.2.norm1"})"),
              HasSubstr("/regions/1: begins before the region in front of it ends"));
}

TEST(PlanFile, ReadsLanesAndWhatRerunsWaitFor) {
  const auto with_waits = [](const std::string& waits) {
    return file_with(
        R"("overlap": true, "lanes": 3,
           "decisions": [{"action": "recompute", "tensors": ["blocks.0.mlp.gelu"]}],
           "regions": [{"begin": "blocks.0.norm1", "end": "blocks.1.norm1"}],
           "rerun_after": {)" +
        waits + "}");
  };
  const std::string plan = with_waits(R"("blocks.0.mlp.gelu": "blocks.2.mlp.fc1")");
  EXPECT_EQ(error_of(plan), "");
  EXPECT_THAT(write_plan(planned(plan)), HasSubstr("\"version\": 7,"));
  const auto of_waits = [&](const std::string& waits) { return error_of(with_waits(waits)); };
  EXPECT_THAT(of_waits(R"("blocks.0.mlp.gelu": "blocks.0.mlp.fc2")"),
              HasSubstr("'blocks.0.mlp.gelu' is to run again after the gradients of an op that is "
                        "not behind its region"));
  EXPECT_THAT(of_waits(R"("blocks.0.mlp.fc1": "blocks.2.mlp.fc1")"),
              HasSubstr("'blocks.0.mlp.fc1' does not run again: there is nothing that could wait"));
  EXPECT_THAT(of_waits(R"("blocks.0.mlp.gelo": "blocks.2.mlp.fc1")"),
              HasSubstr("/rerun_after/blocks.0.mlp.gelo: small-vit has no op 'blocks.0.mlp.gelo' "
                        "(did you mean 'blocks.0.mlp.gelu'?)"));
  EXPECT_THAT(error_of(file_with(R"("overlap": true, "lanes": 5, "decisions": [])")),
              HasSubstr("/lanes: "));
}

// The strategies would be decided about twice.
TEST(PlanFile, OnlyStrategiesThatRewriteCanBeNamedForIt) {
  EXPECT_THAT(error_of(file_with(R"("rewrites": "checkpoint:blocks", "decisions": [])")),
              HasSubstr("/rewrites: checkpoint rewrites no trace; leave it out"));
  EXPECT_THAT(error_of(file_with(R"("rewrites": "reversibel", "decisions": [])")),
              HasSubstr("/rewrites: unknown strategy 'reversibel' (did you mean 'reversible'?"));
}

TEST(PlanFile, WhatCannotBeCarriedOutIsToldWithTheTensor) {
  EXPECT_THAT(error_of(decisions(R"({"action": "recompute", "tensors": ["blocks.0.mlp.gelu"]})")),
              HasSubstr("my.plan.json: 'blocks.0.mlp.gelu'"));
  EXPECT_THAT(error_of(decisions(R"({"action": "offload", "tensors": ["blocks.0.norm1.weight"]})")),
              HasSubstr("'blocks.0.norm1.weight' is offload, but no op of the step writes it"));
}

TEST(PlanFile, SaysIfItWasMadeForAnotherModel) {
  const StrategySpec spec = read_plan(decisions(""), "x");
  EXPECT_EQ(other_model_of(spec, "small-vit"), "");
  EXPECT_EQ(other_model_of(spec, "large-vit"), "small-vit");
  EXPECT_EQ(other_model_of(parse_strategy("vanilla"), "large-vit"), "");
}

}  // namespace
}  // namespace tidemark::plan_json_test
