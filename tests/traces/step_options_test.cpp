// Tunings read back their text and say what is wrong; precision is the framework's by default.
#include "traces/step_options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tidemark {
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

TEST(Tunings, AreReadFromText) {
  EXPECT_EQ(parse_tuning("full"), Tuning{});
  EXPECT_EQ(parse_tuning("lora:r=4,targets=q,v"), (Tuning{Kind::Lora, 4, {"q", "v"}}));
  EXPECT_EQ(parse_tuning("lora:targets=fc1,fc2,r=16"), (Tuning{Kind::Lora, 16, {"fc1", "fc2"}}));
  EXPECT_EQ(parse_tuning("lora-fa:r=4,targets=all"), (Tuning{Kind::LoraFa, 4, {"all"}}));
  EXPECT_EQ(parse_tuning("frozen:embed*,blocks.0.*"),
            (Tuning{Kind::Frozen, 8, {"embed*", "blocks.0.*"}}));
}

TEST(Tunings, LoraDefaultsToRank8OnQueryAndValue) {
  EXPECT_EQ(parse_tuning("lora"), (Tuning{Kind::Lora, 8, {"q", "v"}}));
  EXPECT_EQ(parse_tuning("lora-fa:r=2"), (Tuning{Kind::LoraFa, 2, {"q", "v"}}));
}

TEST(Tunings, ReadBackTheirText) {
  for (const char* text :
       {"full", "lora:r=4,targets=q,v", "lora-fa:r=65536,targets=all", "frozen:embed*,blocks.0.*"})
    EXPECT_EQ(to_text(parse_tuning(text)), text);
}

TEST(Tunings, SayWhatIsWrong) {
  EXPECT_EQ(error_of("lorra:r=4"),
            "unknown tuning 'lorra' (did you mean 'lora'? known: full, lora, lora-fa, frozen)");
  EXPECT_EQ(error_of("full:r=4"), "tuning: 'full' takes no arguments");
  EXPECT_EQ(error_of("lora:r=0"), "tuning: r=0 is not a rank (1 to 65536)");
  EXPECT_EQ(error_of("lora:r=65537"), "tuning: r=65537 is not a rank (1 to 65536)");
  EXPECT_EQ(error_of("lora:r=4x"), "tuning: r=4x is not a rank (1 to 65536)");
  EXPECT_EQ(error_of("lora:rank=4"),
            "tuning: 'rank=4' is not understood (write for example lora:r=4,targets=q,v)");
  EXPECT_EQ(error_of("lora:r=4,,"),
            "tuning: '' is not understood (write for example lora:r=4,targets=q,v)");
  EXPECT_EQ(error_of("frozen"),
            "tuning: 'frozen' needs names (for example frozen:embed*,blocks.0.*)");
  EXPECT_EQ(error_of(""), "unknown tuning '' (known: full, lora, lora-fa, frozen)");
}

TEST(PrecisionOf, IsTheFrameworksUnlessGiven) {
  EXPECT_EQ(precision_of({}), Precision::Fp32);
  EXPECT_EQ(precision_of({.framework = "torch-1.7-amp"}), Precision::AmpFp16);
  EXPECT_EQ(precision_of({.precision = Precision::Bf16, .framework = "paper"}), Precision::Bf16);
  EXPECT_THROW(precision_of({.framework = "caffe"}), UsageError);
}

TEST(Frameworks, HaveASourceEach) {
  for (const Framework& row : frameworks()) {
    EXPECT_EQ(&find_framework(row.name), &row);
    EXPECT_FALSE(row.title.empty() || row.source.empty()) << row.name;
  }
}

}  // namespace
}  // namespace tidemark
