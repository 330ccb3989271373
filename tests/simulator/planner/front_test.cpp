// The front of sums against every combination of choices, at every budget that matters.
#include "simulator/planner/front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "tests/simulator/dice.h"

namespace tidemark::front_test {
namespace {

using Menus = std::vector<std::vector<Choice>>;

struct Walked {
  std::int64_t room = 0, time = 0, error = 0;
};

// The room that a combination needs, by playing it.
Walked walk(const Menus& menus, const std::vector<Front::Picked>& picked) {
  Walked walked;
  std::int64_t kept = 0;
  for (const Front::Picked& pick : picked) {
    const Choice& choice = menus[pick.stage][pick.choice];
    walked.room = std::max(walked.room, kept + choice.need);
    walked.time += choice.time;
    walked.error += choice.error;
    kept += choice.kept;
    walked.room = std::max(walked.room, kept);
  }
  return walked;
}

using Best = std::map<std::int64_t, std::int64_t>;

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

void try_all(const Menus& menus, std::size_t stage, std::vector<Front::Picked>& picked,
             std::int64_t most_error, Best& best) {
  if (stage == menus.size()) {
    const Walked walked = walk(menus, picked);
    if (walked.error > most_error) return;
    const auto [entry, is_new] = best.try_emplace(walked.room, walked.time);
    if (!is_new) entry->second = std::min(entry->second, walked.time);
    return;
  }
  for (std::uint32_t number = 0; number < menus[stage].size(); ++number) {
    picked.push_back({static_cast<std::uint32_t>(stage), number});
    try_all(menus, stage + menus[stage][number].span, picked, most_error, best);
    picked.pop_back();
  }
}

// By room the least time of all combinations, or of those whose errors stay within a bound.
Best all_of(const Menus& menus, std::int64_t most_error = unlimited) {
  Best best;
  std::vector<Front::Picked> picked;
  try_all(menus, 0, picked, most_error, best);
  std::int64_t least = unlimited;
  for (auto& [room, time] : best) time = least = std::min(least, time);
  return best;
}

// In so much room.
std::int64_t time_in(const Best& best, std::int64_t room) {
  const auto after = best.upper_bound(room);
  return after == best.begin() ? unlimited : std::prev(after)->second;
}

std::int64_t time_in(const Front& front, std::int64_t room) {
  const auto point = front.within(room);
  return point ? front[*point].time : unlimited;
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
    for (const auto& [room, time] : all_of(menus))
      ASSERT_EQ(time_in(front, room), time) << "seed " << seed << " room " << room;
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

Menus menus_with_errors(Dice& dice) {
  Menus menus = random_menus(dice);
  for (std::vector<Choice>& choices : menus)
    for (Choice& choice : choices)
      if (dice.below(3) > 0) choice.error = static_cast<std::int64_t>(dice.below(10));
  return menus;
}

TEST(Front, IsTheBestOfAllCombinationsWithinABoundOnErrors) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Dice dice(seed);
    const Menus menus = menus_with_errors(dice);
    const Best all = all_of(menus);
    for (const std::int64_t most : {0, 1, 4, 9, 20, 45}) {
      const Best best = all_of(menus, most);
      const Front front(menus, {most, 64});
      ASSERT_TRUE(front.is_exact()) << "seed " << seed << " error " << most;
      for (const auto& [room, time] : all)
        ASSERT_EQ(time_in(front, room), time_in(best, room))
            << "seed " << seed << " room " << room << " error " << most;
    }
  }
}

// With few cells plans are still within the bound, and lose no more than is said.
TEST(Front, OfFewCellsLosesNoMoreThanACellsWidthPerStage) {
  std::size_t inexact = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Dice dice(seed);
    const Menus menus = menus_with_errors(dice);
    const std::int64_t most = 12 + static_cast<std::int64_t>(dice.below(20));
    const std::size_t cells = 3 + dice.below(6);
    const Front front(menus, {most, cells});
    inexact += front.is_exact() ? 0 : 1;
    for (std::size_t i = 0; i < front.size(); ++i) {
      const Walked walked = walk(menus, front.choices_at(i));
      ASSERT_EQ(walked.time, front[i].time) << "seed " << seed;
      ASSERT_EQ(walked.error, front[i].error) << "seed " << seed;
      ASSERT_LE(walked.error, most) << "seed " << seed;
      ASSERT_LE(walked.room, front[i].room) << "seed " << seed;
    }
    const std::int64_t width = most / static_cast<std::int64_t>(cells - 1) + 1;
    const Best within = all_of(menus, most), without = all_of(menus, 0);
    const Best less = all_of(menus, most - width * static_cast<std::int64_t>(menus.size()));
    for (const auto& [room, time] : all_of(menus)) {
      ASSERT_GE(time_in(front, room), time_in(within, room)) << "seed " << seed;
      ASSERT_LE(time_in(front, room), time_in(less, room)) << "seed " << seed;
      ASSERT_LE(time_in(front, room), time_in(without, room)) << "seed " << seed;
    }
  }
  EXPECT_GT(inexact, 100u);
}

TEST(Front, TakesTheLesserErrorOfEqualRoomAndTime) {
  const Choice exact{10, 12, 5}, approximate{10, 12, 5, 1, 3};
  for (const Menus& menus : {Menus{{exact, approximate}}, Menus{{approximate, exact}}}) {
    const Front front(menus);
    ASSERT_EQ(front.size(), 1u);
    EXPECT_EQ(front[0].error, 0);
  }
}

// Of one stage: a step for each of a choice and of the steps behind, all that others do not beat.
struct PlainStep {
  std::int64_t room, time, error;
  std::uint32_t choice;
  std::size_t next;
};

using PlainFront = std::vector<std::vector<PlainStep>>;

PlainFront plain_front(const Menus& menus) {
  PlainFront steps(menus.size() + 1);
  steps.back() = {{}};
  for (std::size_t j = menus.size(); j-- > 0;) {
    std::vector<PlainStep> all;
    for (std::uint32_t number = 0; number < menus[j].size(); ++number) {
      const Choice& choice = menus[j][number];
      const std::vector<PlainStep>& behind = steps[j + choice.span];
      for (std::size_t i = 0; i < behind.size(); ++i)
        all.push_back({std::max(choice.need, choice.kept + behind[i].room),
                       choice.time + behind[i].time, choice.error + behind[i].error, number, i});
    }
    std::ranges::sort(all, [](const PlainStep& a, const PlainStep& b) {
      return std::tie(a.room, a.time, a.error, a.choice) <
             std::tie(b.room, b.time, b.error, b.choice);
    });
    for (const PlainStep& step : all)
      if (steps[j].empty() || step.time < steps[j].back().time) steps[j].push_back(step);
  }
  return steps;
}

// Blocks of few kinds, as networks have them: staircases of many steps near each other. With small
// numbers many are of equal worth.
Menus long_chain(Dice& dice, std::size_t most) {
  Menus kinds(1 + dice.below(6));
  for (std::vector<Choice>& kind : kinds) {
    kind.resize(12);
    for (Choice& choice : kind) {
      choice.kept = static_cast<std::int64_t>(dice.below(most));
      choice.need = choice.kept + static_cast<std::int64_t>(dice.below(most));
      choice.time = (static_cast<std::int64_t>(most) - choice.kept) / 2 +
                    static_cast<std::int64_t>(dice.below(most / 3));
      choice.error = static_cast<std::int64_t>(dice.below(3));
    }
  }
  Menus menus;
  for (std::size_t j = 0; j < 24; ++j) {
    menus.push_back(kinds[j % kinds.size()]);
    for (std::size_t number = 1; number < 4 && j + 2 <= 24; ++number) {
      Choice& choice = menus[j][number];
      choice = {2 * choice.kept, 2 * choice.need, 2 * choice.time, 2, choice.error};
    }
  }
  return menus;
}

// … and of equal worth the one of the least error is taken, and then the first.
TEST(Front, OfManyStepsIsThatOfAllStepsSorted) {
  std::size_t most = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Dice dice(seed);
    const Menus menus = long_chain(dice, seed % 2 == 0 ? 100 : 100'000);
    const Front front(menus);
    const PlainFront plain = plain_front(menus);
    ASSERT_EQ(front.size(), plain.front().size()) << "seed " << seed;
    most = std::max(most, front.size());
    for (std::size_t i = 0; i < front.size(); ++i) {
      ASSERT_EQ(front[i].room, plain.front()[i].room) << "seed " << seed;
      ASSERT_EQ(front[i].time, plain.front()[i].time) << "seed " << seed;
      ASSERT_EQ(front[i].error, plain.front()[i].error) << "seed " << seed;
      std::size_t step = i;
      for (const Front::Picked& picked : front.choices_at(i)) {
        ASSERT_EQ(picked.choice, plain[picked.stage][step].choice) << "seed " << seed;
        step = plain[picked.stage][step].next;
      }
    }
  }
  EXPECT_GT(most, 500u);
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

// rotor's recurrence (rockmate, rk_rotor/solver.c; Beaumont et al., arXiv 1911.13214), written as
// published: a block is done now, in one of its ways, or later from a copy of its input.
struct RotorWay {
  std::int64_t kept, forward_extra, backward_extra, forward, backward;
};
struct RotorBlock {
  std::int64_t input, output, plain_forward;  ///< bytes, bytes, ns of a forward that saves nothing
  std::vector<RotorWay> ways;
};

constexpr std::int64_t impossible = std::int64_t{1} << 40;

std::int64_t rotor(const std::vector<RotorBlock>& chain, std::int64_t room, std::size_t first,
                   std::size_t end, bool restarts) {
  if (first == end) return 0;
  std::int64_t best = impossible;
  const RotorBlock& block = chain[first];
  for (const RotorWay& way : block.ways)
    if (room >= std::max(block.output + way.kept + way.forward_extra,
                         block.input + way.kept + way.backward_extra))
      best = std::min(best, way.forward + way.backward +
                                rotor(chain, room - way.kept, first + 1, end, restarts));
  std::int64_t run = 0;
  for (std::size_t j = first + 1; restarts && j < end; ++j) {
    run += chain[j - 1].plain_forward;
    if (room < chain[j].input) continue;
    best = std::min(best, run + rotor(chain, room - chain[j].input, j, end, true) +
                              rotor(chain, room, first, j, true));
  }
  return best;
}

std::vector<RotorBlock> random_chain(Dice& dice) {
  const auto some = [&](std::size_t most) { return static_cast<std::int64_t>(dice.below(most)); };
  std::vector<RotorBlock> chain(2 + dice.below(3));
  std::int64_t bytes = 1 + some(6);
  for (RotorBlock& block : chain) {
    block = {bytes, 1 + some(6), 1 + some(9), {}};
    bytes = block.output;
    for (std::size_t way = 0; way < 2; ++way)
      block.ways.push_back({1 + some(12), some(4), some(4), 1 + some(9), 1 + some(9)});
  }
  return chain;
}

// Plans recover each tensor at most once, which is rotor without restarts; with them it can only be
// faster where memory is short.
TEST(Front, IsRotorsRecurrenceWithoutRestarts) {
  Dice dice(404);
  for (int round = 0; round < 60; ++round) {
    const std::vector<RotorBlock> chain = random_chain(dice);
    Menus menus;
    for (const RotorBlock& block : chain) {
      menus.emplace_back();
      for (const RotorWay& way : block.ways)
        menus.back().push_back({way.kept,
                                std::max(block.output + way.kept + way.forward_extra,
                                         block.input + way.kept + way.backward_extra),
                                way.forward + way.backward});
    }
    const Front front(menus);
    for (std::int64_t room = 0; room < 60; ++room) {
      const auto point = front.within(room);
      const std::int64_t once = rotor(chain, room, 0, chain.size(), false);
      ASSERT_EQ(point ? front[*point].time : impossible, once) << round << " " << room;
      ASSERT_LE(rotor(chain, room, 0, chain.size(), true), once) << round << " " << room;
    }
  }
}

}  // namespace
}  // namespace tidemark::front_test
