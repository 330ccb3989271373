// Every strategy on every preset: whatever a user may ask for is planned, lowered, judged and
// packed. One test per family, so that they run beside each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/judge/validate.h"
#include "simulator/lower.h"
#include "simulator/strategies/strategy.h"
#include "tests/simulator/step_facts.h"
#include "tests/support/all_strategies.h"
#include "tests/support/brief_model.h"
#include "traces/presets.h"

namespace tidemark::zoo_test {
namespace {

using testing::IsEmpty;

/// What was asked for, to find the case again.
struct Case {
  std::string model, strategy;
  StepOptions options;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.model << " --strategy " << c.strategy << " --precision "
             << to_string(*c.options.precision) << " --framework " << c.options.framework
             << " --tuning " << to_text(c.options.tuning);
}

// A strategy may refuse, but then it says why, and the plan keeps everything.
void expect_sound(const std::shared_ptr<const Trace>& trace, const Case& c) {
  const PlannedStep step = plan_step(trace, parse_strategy(c.strategy));
  EXPECT_THAT(check(*step.trace), IsEmpty()) << c;
  const auto defects = check(*step.trace, step.plan);
  ASSERT_THAT(defects, IsEmpty()) << c;
  const Schedule schedule = lower(*step.trace, step.plan);
  const auto complaints = validate(*step.trace, schedule);
  EXPECT_THAT(complaints, IsEmpty()) << c;
  const Arena arena = plan_arena(schedule);
  EXPECT_THAT(validate(schedule, arena), IsEmpty()) << c;
  EXPECT_GE(arena.size, live_peak(schedule)) << c;
}

void expect_every_strategy_sound(const Model& model, const StepOptions& options) {
  const auto trace = std::make_shared<const Trace>(build_trace(brief(model), options));
  for (const char* strategy : all_strategies)
    expect_sound(trace, {model.name, strategy, trace->step});
}

StepOptions options_with(Precision precision) {
  StepOptions options{.batch = 2};
  options.precision = precision;
  return options;
}

std::vector<Model> models_of(std::string_view family) {
  std::vector<Model> models;
  for (const Model& model : known_models())
    if (model.family == family) models.push_back(model);
  return models;
}

void expect_family_sound(std::string_view family) {
  const std::vector<Model> models = models_of(family);
  ASSERT_FALSE(models.empty());
  for (const Model& model : models) {
    SCOPED_TRACE(model.name);
    for (const Precision precision : {Precision::Fp32, Precision::AmpFp16, Precision::Bf16}) {
      StepOptions options = options_with(precision);
      if (!sees_images(model.config)) options.sequence = 32;
      expect_every_strategy_sound(model, options);
    }
  }
}

TEST(Zoo, Vit) { expect_family_sound("vit"); }
TEST(Zoo, Swin) { expect_family_sound("swin"); }
TEST(Zoo, Mvit) { expect_family_sound("mvit"); }
TEST(Zoo, Bert) { expect_family_sound("bert"); }
TEST(Zoo, Gpt2) { expect_family_sound("gpt2"); }
TEST(Zoo, Llama) { expect_family_sound("llama"); }
TEST(Zoo, Gemma) { expect_family_sound("gemma"); }
TEST(Zoo, Gemma2) { expect_family_sound("gemma2"); }
TEST(Zoo, Gemma3) { expect_family_sound("gemma3"); }
TEST(Zoo, Phi) { expect_family_sound("phi"); }
TEST(Zoo, Phi3) { expect_family_sound("phi3"); }
TEST(Zoo, GptNeox) { expect_family_sound("gpt-neox"); }
TEST(Zoo, Opt) { expect_family_sound("opt"); }
TEST(Zoo, Olmo2) { expect_family_sound("olmo2"); }
TEST(Zoo, StableLm) { expect_family_sound("stablelm"); }
TEST(Zoo, Starcoder2) { expect_family_sound("starcoder2"); }
TEST(Zoo, T5) { expect_family_sound("t5"); }
TEST(Zoo, Bart) { expect_family_sound("bart"); }
TEST(Zoo, Whisper) { expect_family_sound("whisper"); }
TEST(Zoo, ModernBert) { expect_family_sound("modernbert"); }
TEST(Zoo, Deberta) { expect_family_sound("deberta"); }
TEST(Zoo, Falcon) { expect_family_sound("falcon"); }
TEST(Zoo, Clip) { expect_family_sound("clip"); }
TEST(Zoo, Siglip) { expect_family_sound("siglip"); }
TEST(Zoo, Mixtral) { expect_family_sound("mixtral"); }
TEST(Zoo, Qwen2Moe) { expect_family_sound("qwen2-moe"); }
TEST(Zoo, Qwen3Moe) { expect_family_sound("qwen3-moe"); }
TEST(Zoo, Olmoe) { expect_family_sound("olmoe"); }
TEST(Zoo, DeepSeekV2) { expect_family_sound("deepseek-v2"); }
TEST(Zoo, Beit) { expect_family_sound("beit"); }
TEST(Zoo, VitMae) { expect_family_sound("vit-mae"); }
TEST(Zoo, Pvt) { expect_family_sound("pvt"); }
TEST(Zoo, NemotronH) { expect_family_sound("nemotron-h"); }

TEST(Zoo, HasAllFamilies) {
  for (const Model& model : known_models())
    EXPECT_THAT(model.family,
                testing::AnyOf("vit", "swin", "mvit", "bert", "gpt2", "llama", "gemma", "gemma2",
                               "gemma3", "phi3", "gpt-neox", "opt", "olmo2", "t5", "mixtral",
                               "qwen3-moe", "olmoe", "bart", "whisper", "modernbert", "deberta",
                               "falcon", "clip", "siglip", "deepseek-v2", "beit", "vit-mae", "pvt",
                               "phi", "stablelm", "starcoder2", "qwen2-moe", "nemotron-h"));
}

TEST(Zoo, NamesEveryStrategy) {
  for (const StrategyRow& row : strategies())
    EXPECT_THAT(all_strategies, testing::Contains(testing::HasSubstr(std::string(row.name))));
}

// The smallest model of each family, under each framework's rules.
// Each network with each framework, each of those with both attentions.
TEST(Zoo, EveryFramework) {
  std::size_t turn = 0;
  for (const char* name : {"deit-ti", "swin-t", "mvitv2-t", "bert-base", "gpt2", "qwen2-7b"}) {
    const std::size_t first = turn++;
    for (std::size_t f = 0; f < frameworks().size(); ++f) {
      const Framework& framework = frameworks()[f];
      if (framework.torchtitan) continue;  // none of these is its LLaMA
      StepOptions options = options_with(framework.default_precision);
      options.framework = framework.name;
      options.attention = (first + f) % 2 == 0 ? Attention::Math : Attention::Flash;
      options.dropout = 0.1;
      options.ddp = true;
      expect_every_strategy_sound(find_model(name), options);
    }
  }
}

TEST(Zoo, EveryTuning) {
  for (const char* name : {"deit-ti", "swin-t", "bert-base", "gpt2", "llama-7b"})
    for (const char* tuning : {"lora:r=4,targets=all", "lora-fa:r=4,targets=q,v,qkv", "frozen:*",
                               "frozen:*bias,*norm*", "frozen:blocks.0*"}) {
      StepOptions options = options_with(Precision::AmpFp16);
      options.tuning = parse_tuning(tuning);
      options.optimizer = Optimizer::AdamW8bit;
      expect_every_strategy_sound(find_model(name), options);
    }
}

}  // namespace
}  // namespace tidemark::zoo_test
