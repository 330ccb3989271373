// Keys that are tapped faster than frames are drawn.
#include "gui/key_taps.h"

#include <gtest/gtest.h>

namespace tidemark::gui::key_taps_test {
namespace {

TEST(KeyTaps, AKeyThatIsHeldIsDownInEachFrame) {
  KeyTaps keys;
  keys.press(65);
  EXPECT_TRUE(keys.next_frame()[65]);
  EXPECT_TRUE(keys.next_frame()[65]);
  keys.release(65);
  EXPECT_TRUE(keys.next_frame().none());
}

TEST(KeyTaps, ATapShorterThanAFrameIsDownForOne) {
  KeyTaps keys;
  keys.press(256);
  keys.release(256);
  EXPECT_TRUE(keys.next_frame()[256]);
  EXPECT_TRUE(keys.next_frame().none());
}

TEST(KeyTaps, KeysWithoutANumberAreNotNoted) {
  KeyTaps keys;
  for (const int key : {-1, 512, 100'000}) {
    keys.press(key);
    keys.release(key);
  }
  EXPECT_TRUE(keys.next_frame().none());
}

}  // namespace
}  // namespace tidemark::gui::key_taps_test
