// Exchanges hide behind the runs that they slow down least.
#include "analysis/layouts/beside_exchanges.h"

#include <gtest/gtest.h>

namespace tidemark::beside_exchanges_test {
namespace {

// 60 ns need 1.1 of the SMs beside an exchange, 100 ns 1.2, and 40 ns no more than there is.
const std::vector<DeviceUse> runs = {{1.0, 0.2, 100}, {0.5, 0.5, 40}, {0.9, 0.2, 60}};

double beside(double ns) { return least_beside(runs, {.sms = 0.2, .memory = 0.1, .ns = ns}); }

TEST(BesideExchanges, HideBehindWhatTheySlowDownLeast) {
  EXPECT_DOUBLE_EQ(beside(0), 200);
  EXPECT_DOUBLE_EQ(beside(40), 200);
  EXPECT_DOUBLE_EQ(beside(90), 200 + 0.1 * 50);
  EXPECT_DOUBLE_EQ(beside(150), 200 + 0.1 * 60 + 0.2 * 50);
}

// Longer ones are waited for.
TEST(BesideExchanges, TakeWhatIsLeftOfThemAlone) {
  EXPECT_DOUBLE_EQ(beside(230), 200 + 0.1 * 60 + 0.2 * 100 + 30);
}

TEST(BesideExchanges, RunsOfEqualSharesAreOne) {
  const auto together = taken_together({{1, 0, 3}, {0.5, 1, 2}, {1, 0, 4}});
  ASSERT_EQ(together.size(), 2);
  EXPECT_EQ(together[0].ns, 2);
  EXPECT_EQ(together[1].ns, 7);
}

}  // namespace
}  // namespace tidemark::beside_exchanges_test
