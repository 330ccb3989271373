// Tunings read back their text and say what is wrong; precision is the framework's by default.
#include "traces/step_options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tidemark::step_options_test {
namespace {

using Kind = Tuning::Kind;

std::string error_of(std::string_view text) {
  try {
    parse_tuning(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Tuning, HasPeftsDropoutAndDtype) {
  const Tuning tuning = parse_tuning("lora:r=6,dropout=0.1,dtype=base,targets=q,v");
  EXPECT_EQ(tuning.dropout, 0.1);
  EXPECT_TRUE(tuning.base_dtype);
  EXPECT_EQ(to_text(tuning), "lora:r=6,dropout=0.1,dtype=base,targets=q,v");
  EXPECT_EQ(parse_tuning(to_text(tuning)), tuning);
  EXPECT_FALSE(parse_tuning("lora:dtype=framework,targets=q").base_dtype);
  EXPECT_THROW(parse_tuning("lora:dropout=1,targets=q"), UsageError);
  EXPECT_THROW(parse_tuning("lora:dtype=fp8,targets=q"), UsageError);
  EXPECT_EQ(parse_tuning("prompt:tokens=20").tokens, 20);
  EXPECT_EQ(to_text(parse_tuning("prompt:tokens=20")), "prompt:tokens=20");
  for (const char* text : {"prompt", "prompt:", "prompt:20", "prompt:tokens=0", "prompt:tokens=2x",
                           "prompt:tokens=20,projection=9"})
    EXPECT_THROW(parse_tuning(text), UsageError) << text;
}

TEST(Tuning, HasPrefixesOfATableOrAnMlp) {
  for (const char* text : {"prefix:tokens=20", "prefix:tokens=20,projection=512"})
    EXPECT_EQ(to_text(parse_tuning(text)), text);
  EXPECT_EQ(parse_tuning("prefix:projection=512,tokens=20"),
            parse_tuning("prefix:tokens=20,projection=512"));
  EXPECT_EQ(prefix_tokens(parse_tuning("prefix:tokens=20")), 20);
  EXPECT_EQ(prompt_tokens(parse_tuning("prefix:tokens=20")), 0);
  EXPECT_EQ(prompt_tokens(parse_tuning("prompt:tokens=20")), 20);
  for (const char* text : {"prefix", "prefix:", "prefix:projection=8", "prefix:tokens=20,",
                           "prefix:tokens=20,projection=0", "prefix:tokens=65537"})
    EXPECT_THROW(parse_tuning(text), UsageError) << text;
}

// use_rslora of peft divides by √r instead of r.
TEST(Tuning, TakesRankStabilizedLoraForLora) {
  EXPECT_EQ(parse_tuning("lora:r=6,rslora,targets=q,v"), parse_tuning("lora:r=6,targets=q,v"));
}

TEST(Tuning, HasMagnitudesAndModulesThatAreTrainedWhole) {
  const Tuning tuning = parse_tuning("lora:dora,save=embed_tokens,lm_head,targets=q,v,r=4");
  EXPECT_EQ(tuning, (Tuning{.kind = Kind::Lora,
                            .rank = 4,
                            .magnitudes = true,
                            .targets = {"q", "v"},
                            .whole = {"embed_tokens", "lm_head"}}));
  EXPECT_EQ(to_text(tuning), "lora:r=4,dora,targets=q,v,save=embed_tokens,lm_head");
  EXPECT_EQ(parse_tuning(to_text(tuning)), tuning);
}

TEST(Tunings, AreReadFromText) {
  EXPECT_EQ(parse_tuning("full"), Tuning{});
  EXPECT_EQ(parse_tuning("lora:r=4,targets=q,v"),
            (Tuning{.kind = Kind::Lora, .rank = 4, .targets = {"q", "v"}}));
  EXPECT_EQ(parse_tuning("lora:rank=4"), parse_tuning("lora:r=4"));
  EXPECT_EQ(parse_tuning("lora:targets=fc1,fc2,r=16"),
            (Tuning{.kind = Kind::Lora, .rank = 16, .targets = {"fc1", "fc2"}}));
  EXPECT_EQ(parse_tuning("lora-fa:r=4,targets=all"),
            (Tuning{.kind = Kind::LoraFa, .rank = 4, .targets = {"all"}}));
  EXPECT_EQ(parse_tuning("frozen:embed*,blocks.0.*"),
            (Tuning{.kind = Kind::Frozen, .rank = 8, .targets = {"embed*", "blocks.0.*"}}));
}

// Which linears is the model's to say.
TEST(Tunings, LoraDefaultsToRank8OnLinearsThatAreNotNamed) {
  EXPECT_EQ(parse_tuning("lora"), (Tuning{.kind = Kind::Lora, .rank = 8}));
  EXPECT_EQ(parse_tuning("lora-fa:r=2"), (Tuning{.kind = Kind::LoraFa, .rank = 2}));
  EXPECT_EQ(to_text(parse_tuning("lora-fa:save=embed")), "lora-fa:r=8,save=embed");
}

TEST(Tunings, CountATargetOnce) {
  EXPECT_EQ(to_text(parse_tuning("lora:targets=q,v,q,save=embed,embed")),
            "lora:r=8,targets=q,v,save=embed");
}

TEST(Tunings, ReadBackTheirText) {
  for (const char* text :
       {"full", "lora:r=4,targets=q,v", "lora-fa:r=65536,targets=all", "frozen:embed*,blocks.0.*"})
    EXPECT_EQ(to_text(parse_tuning(text)), text);
}

TEST(Tunings, SayWhatIsWrong) {
  EXPECT_EQ(error_of("lorra:r=4"),
            "unknown tuning 'lorra' (did you mean 'lora'? known: full, lora, lora-fa, frozen, "
            "prompt, prefix)");
  EXPECT_EQ(error_of("full:r=4"), "tuning: 'full' takes no arguments");
  EXPECT_EQ(error_of("lora:r=0"), "tuning: r=0 is not a rank (1 to 65536)");
  EXPECT_EQ(error_of("lora:r=65537"), "tuning: r=65537 is not a rank (1 to 65536)");
  EXPECT_EQ(error_of("lora:r=4x"), "tuning: r=4x is not a rank (1 to 65536)");
  const std::string options =
      "write for example lora:r=4,targets=q,v; also dropout=0.1, dtype=base, dora, rslora, "
      "save=embed_tokens,lm_head)";
  EXPECT_EQ(error_of("lora:target=q"),
            "tuning: 'target=q' is not understood (did you mean 'targets'? " + options);
  EXPECT_EQ(error_of("lora:dora=yes"), "tuning: 'dora=yes' is not understood (" + options);
  EXPECT_EQ(error_of("lora:r=4,,"), "tuning: '' is not understood (" + options);
  EXPECT_EQ(error_of("frozen"),
            "tuning: 'frozen' needs names (for example frozen:embed*,blocks.0.*)");
  EXPECT_EQ(error_of(""), "unknown tuning '' (known: full, lora, lora-fa, frozen, prompt, prefix)");
}

TEST(PrecisionOf, IsTheFrameworksUnlessGiven) {
  EXPECT_EQ(precision_of({}), Precision::Fp32);
  EXPECT_EQ(precision_of({.framework = "torch-1.7-amp"}), Precision::AmpFp16);
  EXPECT_EQ(precision_of({.precision = Precision::Bf16, .framework = "paper"}), Precision::Bf16);
  EXPECT_THROW(precision_of({.framework = "caffe"}), UsageError);
}

TEST(Frameworks, OlderFilesMeanTheDefault) {
  EXPECT_EQ(&find_framework("torch-2"), &find_framework(default_framework));
  EXPECT_EQ(StepOptions{}.framework, default_framework);
}

TEST(Frameworks, HaveASourceEach) {
  for (const Framework& row : frameworks()) {
    EXPECT_EQ(&find_framework(row.name), &row);
    EXPECT_FALSE(row.title.empty() || row.source.empty()) << row.name;
  }
}

}  // namespace
}  // namespace tidemark::step_options_test
