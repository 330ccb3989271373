// The front of sums against every combination of choices, at every budget that matters.
#include "simulator/planner/front.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/simulator/dice.h"

namespace tidemark {
namespace {

using Menus = std::vector<std::vector<Choice>>;

struct Walked {
  std::int64_t room = 0, time = 0;
};

// The room that a combination needs, by playing it.
Walked walk(const Menus& menus, const std::vector<Front::Picked>& picked) {
  Walked walked;
  std::int64_t kept = 0;
  for (const Front::Picked& pick : picked) {
    const Choice& choice = menus[pick.stage][pick.choice];
    walked.room = std::max(walked.room, kept + choice.need);
    walked.time += choice.time;
    kept += choice.kept;
    walked.room = std::max(walked.room, kept);
  }
  return walked;
}

using Best = std::map<std::int64_t, std::int64_t>;

void try_all(const Menus& menus, std::size_t stage, std::vector<Front::Picked>& picked,
             Best& best) {
  if (stage == menus.size()) {
    const Walked walked = walk(menus, picked);
    const auto [entry, is_new] = best.try_emplace(walked.room, walked.time);
    if (!is_new) entry->second = std::min(entry->second, walked.time);
    return;
  }
  for (std::uint32_t number = 0; number < menus[stage].size(); ++number) {
    picked.push_back({static_cast<std::uint32_t>(stage), number});
    try_all(menus, stage + menus[stage][number].span, picked, best);
    picked.pop_back();
  }
}

// By room the least time of all combinations.
Best all_of(const Menus& menus) {
  Best best;
  std::vector<Front::Picked> picked;
  try_all(menus, 0, picked, best);
  return best;
}

Menus random_menus(Dice& dice) {
  Menus menus(1 + dice.below(5));
  for (std::size_t j = 0; j < menus.size(); ++j) {
    menus[j].resize(1 + dice.below(6));
    for (Choice& choice : menus[j]) {
      choice.kept = static_cast<std::int64_t>(dice.below(30)) - 3;
      choice.need = choice.kept + static_cast<std::int64_t>(dice.below(40));
      choice.time = static_cast<std::int64_t>(dice.below(50)) - 5;
      if (&choice != &menus[j].front() && dice.below(3) == 0)
        choice.span = static_cast<std::uint32_t>(1 + dice.below(menus.size() - j));
    }
  }
  return menus;
}

TEST(Front, IsTheBestOfAllCombinationsAtEveryBudget) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    const Menus menus = random_menus(dice);
    const Front front(menus);
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (const auto& [room, time] : all_of(menus)) {
      best = std::min(best, time);
      const auto point = front.within(room);
      ASSERT_TRUE(point) << "seed " << seed << " room " << room;
      ASSERT_EQ(front[*point].time, best) << "seed " << seed << " room " << room;
    }
    ASSERT_FALSE(front.within(front[0].room - 1)) << "seed " << seed;
  }
}

TEST(Front, ReadsEachPointsChoicesBack) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Dice dice(seed);
    const Menus menus = random_menus(dice);
    const Front front(menus);
    for (std::size_t i = 0; i < front.size(); ++i) {
      const Walked walked = walk(menus, front.choices_at(i));
      ASSERT_EQ(walked.time, front[i].time) << "seed " << seed;
      ASSERT_LE(walked.room, front[i].room) << "seed " << seed;
      if (i == 0) continue;
      ASSERT_GT(front[i].room, front[i - 1].room);
      ASSERT_LT(front[i].time, front[i - 1].time);
    }
  }
}

// Metamorphic: one choice more never makes the front worse, one fewer never better.
TEST(Front, NeverGetsWorseByAChoice) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Dice dice(seed);
    Menus menus = random_menus(dice);
    const Front before(menus);
    menus[dice.below(menus.size())].push_back({2, 9, 3});
    const Front after(menus);
    for (std::size_t i = 0; i < before.size(); ++i)
      ASSERT_LE(after[*after.within(before[i].room)].time, before[i].time) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tidemark
