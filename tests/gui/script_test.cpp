// Scripted mouse and keys are played frame by frame, and mistakes name file, line and remedy.
#include "gui/script.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace tidemark::gui::script_test {
namespace {

std::string problem_of(std::string_view text) {
  try {
    const Script script(text, "hands.txt");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Script, PlaysWhatIsWritten) {
  const Script script(
      "# a click, then a key\n"
      "0 mouse 10 20.5\n"
      "1 down left\n"
      "\n"
      "2 up left\n"
      "2 wheel -3\n"
      "3 press f\n"
      "5 type mlp.fc1 weight\n",
      "hands.txt");
  EXPECT_EQ(script.frames(), 7);
  Input input;
  const auto play = [&](int frame) {
    input.end_frame();
    script.play(frame, input);
  };
  play(0);
  EXPECT_EQ(input.x, 10);
  EXPECT_EQ(input.y, 20.5F);
  play(1);
  EXPECT_TRUE(input.buttons[0]);
  play(2);
  EXPECT_FALSE(input.buttons[0]);
  EXPECT_EQ(input.wheel, -3);
  play(3);
  EXPECT_EQ(input.wheel, 0);
  EXPECT_TRUE(input.keys.contains(Key::F));
  play(4);
  EXPECT_TRUE(input.keys.empty());
  play(5);
  EXPECT_EQ(input.text, "mlp.fc1 weight");
}

TEST(Script, TellsFileLineAndWhatWouldBeRight) {
  EXPECT_THAT(problem_of("0 mouse 1 2\n1 mousse 1 2\n"),
              testing::StartsWith("hands.txt:2: unknown verb 'mousse' (did you mean 'mouse'?"));
  EXPECT_EQ(problem_of("x mouse 1 2"), "hands.txt:1: 'x' is not a number from 0 to 100000");
  EXPECT_EQ(problem_of("0 mouse 1"), "hands.txt:1: '' is not a number from -1 to 1000000");
  EXPECT_EQ(problem_of("0 mouse 1 2 3"), "hands.txt:1: '3' is one word too many");
  EXPECT_THAT(problem_of("0 press 7"), testing::HasSubstr("unknown key '7'"));
  EXPECT_THAT(problem_of("0 down up"), testing::HasSubstr("unknown button 'up'"));
  EXPECT_EQ(problem_of("0 wheel nan"), "hands.txt:1: 'nan' is not a number from -1000 to 1000");
  EXPECT_EQ(problem_of(""), "");
}

}  // namespace
}  // namespace tidemark::gui::script_test
