// The live set is who is alive, however it is sliced; shares and gaps add up; search counts all.
#include "gui/indexes/live_set.h"

#include <gtest/gtest.h>

#include "gui/facts.h"
#include "gui/indexes/search.h"
#include "tests/gui/robot.h"

namespace tidemark::gui::live_set_test {
namespace {

std::shared_ptr<const Opened> opened(const char* strategy) {
  return predict(vit({strategy})).front().opened;
}

LiveSet live_at(const std::shared_ptr<const Opened>& what, StateId state, std::size_t slice) {
  LiveSetBuilder builder;
  builder.look(what, state);
  while (!builder.advance(slice)) continue;
  return builder.current();
}

TEST(LiveSet, IsWhoIsAlive) {
  const auto what = opened("checkpoint");
  for (const StateId state : {StateId{0}, what->peak(), what->memory().states() - 1}) {
    const LiveSet live = live_at(what, state, 1000);
    std::vector<BufferId> listed = live.largest;
    std::ranges::sort(listed);
    if (state > 0) {
      EXPECT_EQ(listed, alive_after(what->schedule(), what->timeline(), state - 1)) << state;
    }
    EXPECT_EQ(live.bytes, what->memory().total_of(state));
    EXPECT_EQ(live.count, listed.size());
    EXPECT_EQ(live.by_address.size(), listed.size());
  }
}

TEST(LiveSet, SharesAddUpToTheCategories) {
  const auto what = opened("pareprop");
  const LiveSet live = live_at(what, what->peak(), 1000);
  BytesByCategory sums{};
  for (const LiveShare& share : live.shares)
    sums[static_cast<std::size_t>(share.category)] += share.bytes;
  Bytes of_blocks;
  std::size_t next = 0;
  for (const LiveBlock& block : live.blocks) {
    EXPECT_EQ(block.first, next);
    next = block.last;
    of_blocks += block.bytes;
  }
  EXPECT_EQ(next, live.shares.size());
  EXPECT_EQ(of_blocks, live.bytes);
  EXPECT_EQ(sums, what->memory().categories_of(what->peak()));
}

TEST(LiveSet, SlicesDoNotMatter) {
  const auto what = opened("vanilla");
  const LiveSet whole = live_at(what, what->peak(), 1'000'000);
  const LiveSet sliced = live_at(what, what->peak(), 7);
  EXPECT_EQ(whole.largest, sliced.largest);
  EXPECT_EQ(whole.by_address, sliced.by_address);
  EXPECT_EQ(whole.bytes, sliced.bytes);
}

TEST(LiveSet, StaysTheOldOneUntilTheNewOneIsComplete) {
  const auto what = opened("vanilla");
  LiveSetBuilder builder;
  builder.look(what, what->peak());
  while (!builder.advance(100)) continue;
  builder.look(what, 0);
  builder.advance(10);
  EXPECT_FALSE(builder.is_complete());
  EXPECT_EQ(builder.current().state, what->peak());
}

// What is alive and the gaps between it are the arena.
TEST(LiveSet, GapsFillTheArena) {
  const auto what = opened("mesa");
  for (StateId state = 0; state < what->memory().states(); state += 17) {
    const LiveSet live = live_at(what, state, 100'000);
    Bytes free;
    for (const Gap& gap : gaps_of(*what, live)) free += Bytes{gap.end - gap.begin};
    const Bytes rounding{static_cast<std::int64_t>(live.count) * 512};
    EXPECT_GE((free + live.bytes).count, what->recording.planned.count - rounding.count) << state;
    EXPECT_LE(free + live.bytes, what->recording.planned) << state;
  }
}

TEST(Opened, KnowsTheLifeOfABuffer) {
  const auto what = opened("vanilla");
  const LiveSet live = live_at(what, what->peak(), 1000);
  for (const BufferId id : live.largest) {
    if (what->schedule()[id].persistent) continue;
    const auto writer = what->buffers().first_writer(id);
    if (!writer) continue;
    const Nanoseconds born = what->memory().begin_of(what->buffers().first_state(id));
    EXPECT_LE(born, (*what)[*writer].begin);
    const auto next = what->buffers().next_use(id, (*what)[*writer].end);
    if (!next) continue;
    EXPECT_GE((*what)[*next].begin, (*what)[*writer].end);
    EXPECT_LE((*what)[*next].end, what->memory().begin_of(std::min(what->buffers().last_state(id),
                                                                   what->memory().states() - 1)));
  }
}

TEST(RangeFacts, OfTheWholeStepAreThoseOfTheReport) {
  const auto prediction = predict(vit({"pareprop"})).front();
  const Opened& what = *prediction.opened;
  const RangeFacts facts = facts_of(what, Range{0, what.end()});
  EXPECT_EQ(facts.span, prediction.report.step);
  // The simulator rounds each piece of it to nanoseconds, and adds them up.
  const auto rounding = static_cast<double>(what.timeline().runs.size());
  const auto ns = [](Nanoseconds time) { return static_cast<double>(time.count()); };
  EXPECT_NEAR(ns(facts.overlap), ns(prediction.report.overlap), rounding);
  EXPECT_NEAR(ns(facts.idle), ns(what.timeline().idle), rounding);
  EXPECT_EQ(facts.runs, what.timeline().runs.size());
  EXPECT_EQ(facts.highest, prediction.report.live_peak);
  // Twice 17.6 GFLOP of multiply-adds per image forward, at least twice that backward.
  EXPECT_GT(*facts.flops, 8 * 3 * 2 * 17e9);
}

TEST(Search, CountsAllAndListsSome) {
  const auto what = opened("vanilla");
  Search search;
  search.look_for(what, "BLOCKS.");
  while (!search.advance(13)) continue;
  const auto has_it = [](const auto& named) {
    return named.name.find("blocks.") != std::string::npos;
  };
  const auto expected = std::ranges::count_if(what->trace().ops, has_it) +
                        std::ranges::count_if(what->trace().tensors, has_it);
  EXPECT_EQ(search.count(), static_cast<std::size_t>(expected));
  EXPECT_EQ(search.hits().size(), Search::most_listed);
  search.look_for(what, "");
  EXPECT_TRUE(search.is_complete());
  EXPECT_TRUE(search.hits().empty());
}

}  // namespace
}  // namespace tidemark::gui::live_set_test
