// The ladder of sizes that sliders snap to.
#include "gui/usual_numbers.h"

#include <gtest/gtest.h>

#include <vector>

namespace tidemark::gui::usual_numbers_test {
namespace {

TEST(UsualNumbers, AreWalkedUpAndDown) {
  const std::vector<std::int64_t> ladder = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  for (std::size_t i = 1; i < ladder.size(); ++i) {
    EXPECT_EQ(usual_after(ladder[i - 1]), ladder[i]);
    EXPECT_EQ(usual_before(ladder[i]), ladder[i - 1]);
  }
  EXPECT_EQ(usual_before(1), 1);
  EXPECT_EQ(usual_after(100), 128);
  EXPECT_EQ(usual_before(100), 96);
}

TEST(UsualNumbers, AreNearByRatio) {
  for (const std::int64_t rung : {1, 2, 3, 4, 6, 96, 1024, 131'072})
    EXPECT_EQ(usual_near(rung), rung);
  EXPECT_EQ(usual_near(5), 6);    // √24 = 4.9
  EXPECT_EQ(usual_near(13), 12);  // √192 = 13.9
  EXPECT_EQ(usual_near(14), 16);
  EXPECT_EQ(usual_near(1000), 1024);
}

}  // namespace
}  // namespace tidemark::gui::usual_numbers_test
