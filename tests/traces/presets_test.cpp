// Every preset, as a whole and in every way to run it; and models by name, by path and by mistake.
#include "traces/presets.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <set>
#include <string>

#include "base/error.h"
#include "tests/support/brief_model.h"
#include "tests/traces/model_traces.h"
#include "traces/models/titan.h"

namespace tidemark::presets_test {
namespace {

using namespace model_traces;
using testing::HasSubstr;

// Every two of framework, precision, attention and tuning together: all four at once find no more,
// in three times as long.
TEST(Presets, MakeSoundTracesInEveryWayToRunThem) {
  constexpr std::array precisions = {Precision::Fp32, Precision::AmpBf16, Precision::Bf16};
  constexpr std::array attentions = {Attention::Math, Attention::Flash, Attention::Sdpa};
  constexpr std::array tunings = {"full", "lora:r=4,targets=q,v", "lora-fa:r=4,targets=all"};
  for (const Model& known : known_models()) {
    const Model model = brief(known);
    for (std::size_t f = 0; f < frameworks().size(); ++f)
      for (std::size_t p = 0; p < precisions.size(); ++p)
        for (std::size_t a = 0; a < attentions.size(); ++a) {
          StepOptions step = small_step(model);
          step.framework = frameworks()[f].name;
          step.precision = precisions[p];
          step.attention = attentions[a];
          step.tuning = parse_tuning(tunings[(f + p + a) % tunings.size()]);
          if (frameworks()[f].torchtitan && !titan_defect(model, step).empty()) continue;
          SCOPED_TRACE(fmt::format("{} {} {}", model.name, step.framework, f + p + a));
          ASSERT_THAT(check(build_trace(model, step)), testing::IsEmpty());
        }
  }
}

TEST(Presets, HaveTheirOwnNames) {
  std::set<std::string> names;
  for (const Model& model : known_models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_EQ(model.family, family_of(model.config)) << model.name;
    EXPECT_FALSE(model.title.empty() || model.source.empty()) << model.name;
  }
}

TEST(FindModel, SuggestsTheNearestName) {
  try {
    find_model("swin_t");
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'swin-t'?"));
    EXPECT_THAT(error.what(), HasSubstr("config.json"));
  }
}

TEST(FindModel, SaysThatAPathLeadsNowhere) {
  for (const char* path : {"examples/none.json", "./none/here"}) {
    try {
      find_model(path);
      FAIL() << "no error";
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(),
                std::string(path) + ": no such file (nor a folder with a config.json)");
    }
  }
}

TEST(FindModel, SaysHowToGetTheConfigOfAHubId) {
  try {
    find_model("google-bert/bert-base-uncased");
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("curl -L -o bert-base-uncased.json "
                  "https://huggingface.co/google-bert/bert-base-uncased/resolve/main/config.json"));
  }
}

TEST(FindModel, SaysThatAPresetHidesAFolder) {
  EXPECT_THAT(find_model("llama-7b").notes, testing::IsEmpty());
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(TIDEMARK_SOURCE_DIR "/examples");
  const Model preset = find_model("llama-7b"), folder = find_model("./llama-7b");
  std::filesystem::current_path(before);
  EXPECT_THAT(preset.notes, ElementsAre(HasSubstr("(write ./llama-7b for it)")));
  EXPECT_EQ(preset.title, "LLaMA 7B");
  EXPECT_EQ(folder.title, "./llama-7b/config.json");
}

TEST(FindModel, ReadsAConfigByItsPathOrItsFolder) {
  const std::string folder = TIDEMARK_SOURCE_DIR "/examples/llama-7b";
  EXPECT_EQ(find_model(folder).config, find_model("llama-7b").config);
  EXPECT_EQ(find_model(folder + "/config.json").config, find_model("llama-7b").config);
}

}  // namespace
}  // namespace tidemark::presets_test
