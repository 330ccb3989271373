// What runs save beside each other, and prices by which that is bounded.
#include "simulator/planner/shared_runs.h"

#include <gtest/gtest.h>

#include "tests/simulator/dice.h"

namespace tidemark::shared_runs_test {
namespace {

// Each at half its rate: nothing is saved. A product beside what moves memory: both go at 1 / 1.25,
// so 0.8 ns of each are done in a ns, which take 1.6 ns one after the other.
TEST(SharedRuns, SaveWhatTheirSharesLeave) {
  EXPECT_DOUBLE_EQ(saved_beside({1, 0}, {1, 0}), 0);
  EXPECT_DOUBLE_EQ(saved_beside({1, 0.25}, {0.25, 1}), 0.6 / 0.8);
  EXPECT_DOUBLE_EQ(saved_beside({0.5, 0.25}, {0.25, 0.5}), 1);
}

// Greedily, whatever fits best first: what is saved that way is a lower bound of what can be.
double saved_greedily(std::vector<SharedRuns> gradients, std::vector<SharedRuns> recovery) {
  double saved = 0;
  while (true) {
    double most = 0;
    SharedRuns *gradient = nullptr, *run = nullptr;
    for (SharedRuns& g : gradients)
      for (SharedRuns& r : recovery)
        if (g.ns > 0 && r.ns > 0 && saved_beside(r, g) > most)
          most = saved_beside(r, g), gradient = &g, run = &r;
    if (!gradient) return saved;
    const std::int64_t together = std::min(gradient->ns, run->ns);
    saved += most * static_cast<double>(together);
    gradient->ns -= together;
    run->ns -= together;
  }
}

TEST(SharedRuns, NoPricesSayLessThanCanBeSaved) {
  Dice dice(11);
  const auto runs = [&](std::size_t count) {
    std::vector<SharedRuns> made;
    for (std::size_t i = 0; i < count; ++i)
      made.push_back({static_cast<double>(dice.below(257)) / 256,
                      static_cast<double>(dice.below(257)) / 256,
                      static_cast<std::int64_t>(1000 + dice.below(100'000))});
    return made;
  };
  for (int i = 0; i < 40; ++i) {
    const std::vector<SharedRuns> gradients = runs(6), recovery = runs(5);
    const PricesBeside beside = best_prices(gradients, recovery);
    auto most = static_cast<double>(beside.saved_within());
    for (const SharedRuns& run : recovery)
      most += beside.saved_by(run) * static_cast<double>(run.ns);
    ASSERT_GE(most, saved_greedily(gradients, recovery)) << i;
    double without_limits = 0;  // as if each gradient had time for all recoveries
    for (const SharedRuns& run : recovery) {
      double best = 0;
      for (const SharedRuns& gradient : gradients)
        best = std::max(best, saved_beside(run, gradient));
      without_limits += best * static_cast<double>(run.ns);
    }
    ASSERT_LE(most, without_limits + 1) << i;
  }
}

}  // namespace
}  // namespace tidemark::shared_runs_test
