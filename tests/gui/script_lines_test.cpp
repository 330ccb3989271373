// Each verb of a window script, what it does to the input in its frame and after it, and what each
// mistake is told.
#include <gmock/gmock.h>

#include "base/error.h"
#include "gui/script.h"

namespace tidemark::gui::script_lines_test {
namespace {

/// The input after these frames have been played, each once.
Input after(std::string_view text, int frames) {
  const Script script(text, "hands.txt");
  Input input;
  for (int frame = 0; frame <= frames; ++frame) {
    input.end_frame();
    script.play(frame, input);
  }
  return input;
}

TEST(ScriptLines, APressIsDownForOneFrameAndAHeldKeyUntilItsRelease) {
  EXPECT_THAT(after("1 press z\n", 0).keys, testing::IsEmpty());
  EXPECT_THAT(after("1 press z\n", 1).keys, testing::ElementsAre(Key::Z));
  EXPECT_THAT(after("1 press z\n", 2).keys, testing::IsEmpty());
  EXPECT_THAT(after("1 hold shift\n4 release shift\n", 3).keys, testing::ElementsAre(Key::Shift));
  EXPECT_THAT(after("1 hold shift\n4 release shift\n", 4).keys, testing::IsEmpty());
}

TEST(ScriptLines, EachButtonIsItsOwn) {
  using Buttons = std::array<bool, 3>;
  EXPECT_EQ(after("0 down left\n", 0).buttons, (Buttons{true, false, false}));
  EXPECT_EQ(after("0 down right\n", 0).buttons, (Buttons{false, true, false}));
  EXPECT_EQ(after("0 down middle\n", 0).buttons, (Buttons{false, false, true}));
  EXPECT_EQ(after("0 down left\n0 down middle\n1 up left\n", 1).buttons,
            (Buttons{false, false, true}));
}

TEST(ScriptLines, OfOneFrameAddUpAndOthersWaitForTheirs) {
  EXPECT_EQ(after("2 wheel 1.5\n2 wheel 2\n", 2).wheel, 3.5F);
  EXPECT_EQ(after("2 wheel 1.5\n2 wheel 2\n", 1).wheel, 0);
  EXPECT_EQ(after("2 type a b\n2 type  c\n", 2).text, "a bc");
  EXPECT_THAT(after("2 drop a file.json\n2 drop b.json\n", 2).drops,
              testing::ElementsAre("a file.json", "b.json"));
  EXPECT_EQ(after("0 mouse 3 4\n2 mouse -1 0\n", 1).x, 3);
  EXPECT_EQ(after("0 mouse 3 4\n2 mouse -1 0\n", 2).x, -1);
}

TEST(ScriptLines, MayStandInAnyOrder) {
  EXPECT_EQ(after("5 mouse 50 0\n1 mouse 10 0\n", 3).x, 10);
  EXPECT_EQ(Script("5 wheel 1\n1 wheel 1\n", "").frames(), 7);
  EXPECT_EQ(Script("# nothing\n\n   \n", "").frames(), 0);
}

struct Mistake {
  const char* text;
  const char* problem;  // from its beginning
};

TEST(ScriptLines, SayWhatIsWrongWithThem) {
  for (const auto& [text, problem] : {
           Mistake{"-1 press f", "s:1: '-1' is not a number from 0 to 100000"},
           Mistake{"100001 press f", "s:1: '100001' is not a number from 0 to 100000"},
           Mistake{"1e3x press f", "s:1: '1e3x' is not a number"},
           Mistake{"7", "s:1: unknown verb ''"},
           Mistake{"0 prss f", "s:1: unknown verb 'prss' (did you mean 'press'?"},
           Mistake{"0 mouse -2 0", "s:1: '-2' is not a number from -1 to 1000000"},
           Mistake{"0 mouse 0 inf", "s:1: 'inf' is not a number from -1 to 1000000"},
           Mistake{"0 wheel 1001", "s:1: '1001' is not a number from -1000 to 1000"},
           Mistake{"0 wheel", "s:1: '' is not a number from -1000 to 1000"},
           Mistake{"0 up lft", "s:1: unknown button 'lft' (did you mean 'left'?"},
           Mistake{"0 down left right", "s:1: 'right' is one word too many"},
           Mistake{"0 hold shft", "s:1: unknown key 'shft' (did you mean 'shift'?"},
           Mistake{"0 press f now", "s:1: 'now' is one word too many"},
           Mistake{"0 press f\n\n# and\n1 wheel x", "s:4: 'x' is not a number"},
       }) {
    try {
      const Script script(text, "s");
      ADD_FAILURE() << text << " was read";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(problem)) << text;
    }
  }
}

}  // namespace
}  // namespace tidemark::gui::script_lines_test
