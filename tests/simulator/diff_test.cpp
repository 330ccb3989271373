// What differs between two profiles.
#include "simulator/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulator/recorded.h"
#include "traces/error.h"
#include "traces/files.h"
#include "traces/presets.h"

namespace tidemark {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Profile one_table(RowKind kind, std::vector<ProfileRow> rows) {
  return {"t", {{"sizes", Measure::Size, kind, std::move(rows)}}};
}

const DiffTable& table(const Diff& diff, std::string_view name) {
  return *std::ranges::find(diff.tables, name, &DiffTable::name);
}

TEST(Diff, SortsByTheSizeOfTheChangeAndCountsTheRest) {
  const Diff found =
      diff(one_table(RowKind::Part, {{"a", 10}, {"b", 20}, {"gone", 7}, {"same", 5}}),
           one_table(RowKind::Part, {{"a", 11}, {"b", 5}, {"new", 7}, {"same", 5}}));
  EXPECT_THAT(found.tables[0].rows, ElementsAre(DiffRow{"b", 20, 5}, DiffRow{"gone", 7, {}},
                                                DiffRow{"new", {}, 7}, DiffRow{"a", 10, 11}));
  EXPECT_EQ(found.tables[0].equal, 1u);
  EXPECT_EQ(found.tables[0].whole, (DiffRow{"all", 42, 28}));
}

TEST(Diff, TakesAFactThatOneDoesNotStateForUnknownNotForGone) {
  const Diff found = diff(one_table(RowKind::Fact, {{"live", 10}, {"planned", 3}}),
                          one_table(RowKind::Fact, {{"live", 12}, {"reserved", 4}}));
  EXPECT_THAT(found.tables[0].rows, ElementsAre(DiffRow{"live", 10, 12}));
  EXPECT_THAT(found.unmatched, ElementsAre("reserved", "planned"));
  EXPECT_FALSE(found.tables[0].whole);
}

TEST(Diff, MatchesBlocksByPlaceIfTheirNamesDiffer) {
  const Diff found =
      diff(one_table(RowKind::Part, {{"h.0", 10, "block 0"}, {"h.1", 9, "block 1"}, {"x", 1}}),
           one_table(RowKind::Part,
                     {{"layers.0", 10, "block 0"}, {"layers.1", 4, "block 1"}, {"x", 1}}));
  EXPECT_THAT(found.tables[0].rows, ElementsAre(DiffRow{"h.1 → layers.1", 9, 4}));
  EXPECT_EQ(found.tables[0].equal, 2u);
}

TEST(Diff, OfEqualStepsIsEmpty) {
  const Profile profile = profile_of(recorded(small_trace(), "vanilla"));
  const Diff found = diff(profile, profile);
  EXPECT_TRUE(found.is_empty());
  EXPECT_THAT(found.unmatched, IsEmpty());
}

TEST(Diff, RefusesWhatHasNoNumberInCommon) {
  EXPECT_THROW(diff(one_table(RowKind::Part, {}), {"u", {}}), UsageError);
}

// Whatever the cut, the parts of the change add up to the change of the peak.
TEST(Diff, ExplainsAllOfTheChangeOfThePeak) {
  const auto profile = [](std::string_view strategy) {
    return profile_of(recorded(build_trace(find_model("vit-ti-16"), {.batch = 2}), strategy));
  };
  for (const char* strategy : {"checkpoint", "mesa", "pareprop"}) {
    const Diff found = diff(profile("vanilla"), profile(strategy));
    const auto& totals = table(found, "totals").rows;
    const auto live = std::ranges::find(totals, "live peak", &DiffRow::key);
    ASSERT_NE(live, totals.end());
    for (const char* name : {"at the peak, by category", "at the peak, by block",
                             "at the peak, by op", "at the peak, by role"}) {
      std::int64_t sum = 0;
      for (const DiffRow& row : table(found, name).rows) sum += row.change();
      EXPECT_EQ(sum, live->change()) << strategy << ", " << name;
      EXPECT_EQ(table(found, name).whole->after, live->after) << strategy << ", " << name;
    }
  }
}

TEST(Profile, ReadsATimelineAndRefusesWhatIsNone) {
  const std::string path = testing::TempDir() + "profile.timeline.json";
  const Recording recording = recorded(small_trace(), "checkpoint");
  write_recording(path, recording);
  EXPECT_EQ(read_profile(path).title, title(recording));
  EXPECT_TRUE(diff(read_profile(path), profile_of(recording)).is_empty());
  for (const char* text : {"{}", "[]", "{\"format\": 3}", "{\"format\": \"tidemark-trace\"}"}) {
    write_file(path, text);
    EXPECT_THROW(read_profile(path), InputError) << text;
  }
}

}  // namespace
}  // namespace tidemark
