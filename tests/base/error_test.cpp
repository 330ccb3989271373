// Typos get the nearest known name, quotes stay on one line, a failed check ends the program.
#include "base/error.h"

#include <gtest/gtest.h>

#include "base/quoted.h"

namespace tidemark::error_test {
namespace {

const std::vector<std::string_view> strategies = {"vanilla", "checkpoint", "mesa", "pareprop"};

TEST(NearestName, FindsTypos) {
  EXPECT_EQ(nearest_name("vanila", strategies), "vanilla");
  EXPECT_EQ(nearest_name("chekpiont", strategies), "checkpoint");
  EXPECT_EQ(nearest_name("mes", strategies), "mesa");
  EXPECT_EQ(nearest_name("Mesa", strategies), "mesa");
}

TEST(NearestName, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("offload", strategies), "");
  EXPECT_EQ(nearest_name("vanilla", {}), "");
  EXPECT_EQ(nearest_name(std::string(300, 'v'), strategies), "");
}

TEST(NearestName, PrefersANameThatBeginsSo) {
  EXPECT_EQ(nearest_name("a100", {"a10g", "a100-40gb", "a100-80gb"}), "a100-40gb");
  EXPECT_EQ(nearest_name("page", {"checkpoint", "pagedness"}), "pagedness");  // five letters off
  EXPECT_EQ(nearest_name("", {"a"}), "");  // all names begin with nothing
}

TEST(NearestName, KnowsALastWord) {
  EXPECT_EQ(nearest_name("4090", {"rtx-3090ti", "rtx-4090"}), "rtx-4090");
  EXPECT_EQ(nearest_name("rtx-409", {"rtx-4090"}), "rtx-4090");
  EXPECT_EQ(nearest_name("090", {"rtx-40-090"}), "");  // three letters say little
  EXPECT_EQ(nearest_name("4090", {"rtx4090"}), "");
}

// Three letters bear one slip; two would make any word another.
TEST(NearestName, AllowsOneSlipInThreeLetters) {
  EXPECT_EQ(nearest_name("xml", {"bmf"}), "");
  EXPECT_EQ(nearest_name("cup", {"cpu", "cuda"}), "cpu");  // an exchange is one slip
  EXPECT_EQ(nearest_name("gtp2", {"gpt2"}), "gpt2");
}

TEST(NearestName, PrefersTheFirstOfEquals) { EXPECT_EQ(nearest_name("b2", {"b0", "b1"}), "b0"); }

TEST(UnknownName, ListsWhatIsKnown) {
  EXPECT_EQ(unknown_name("strategy", "vanila", strategies),
            "unknown strategy 'vanila' (did you mean 'vanilla'? known: vanilla, checkpoint, mesa, "
            "pareprop)");
  EXPECT_EQ(unknown_name("strategy", "offload", strategies),
            "unknown strategy 'offload' (known: vanilla, checkpoint, mesa, pareprop)");
  // A NUL would end the message of an exception.
  EXPECT_EQ(unknown_name("strategy", std::string_view("a\0b", 3), {"mesa"}),
            "unknown strategy 'a?b' (known: mesa)");
}

TEST(Quoted, StaysShortAndOnOneLine) {
  EXPECT_EQ(quoted("h3.attn"), "'h3.attn'");
  EXPECT_EQ(quoted("a\nb\x7f"
                   "c\t"),
            "'a?b?c?'");
  EXPECT_EQ(quoted(std::string(61, 'x')), "'" + std::string(60, 'x') + "…'");
  // 'ß' has two bytes; the cut would go through the 30th.
  std::string text = "x";
  for (int i = 0; i < 40; ++i) text += "ß";
  EXPECT_EQ(quoted(text).size(), 59u + 5u);
}

TEST(Check, EndsTheProgramWithPlaceAndCondition) {
  const int answer = 42;
  CHECK(answer == 42);
  EXPECT_DEATH(CHECK(answer == 41), "bug at .*error_test.cpp:[0-9]+: answer == 41 does not hold");
}

}  // namespace
}  // namespace tidemark::error_test
