// What differs between two profiles.
#include "analysis/diff/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/diff/report_profile.h"
#include "base/error.h"
#include "base/files.h"
#include "tests/analysis/recording/recorded.h"
#include "traces/presets.h"

namespace tidemark::diff::diff_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Profile one_table(RowKind kind, std::vector<ProfileRow> rows) {
  return {.title = "t", .cases = {{"", {}, {{"sizes", Measure::Size, kind, std::move(rows)}}}}};
}

/// A step of `strategy` with one number, as a file of many has it.
ProfileCase step_of(const std::string& strategy, const std::string& batch, std::int64_t live) {
  return {batch + "/" + strategy,
          {.batch = batch, .device = "h100", .strategy = strategy},
          {{"totals", Measure::Size, RowKind::Fact, {{"live peak", live}}}}};
}

Profile file_of(ProfileKind kind, std::vector<ProfileCase> cases) {
  return {.title = "file", .kind = kind, .source = "predicted", .cases = std::move(cases)};
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
  EXPECT_THROW(diff(one_table(RowKind::Part, {}), {.title = "u", .cases = {{}}}), UsageError);
}

TEST(Diff, LeavesOutAWholeOfOnePart) {
  const Profile one = one_table(RowKind::Part, {{"stream 0", 5}});
  EXPECT_THROW(diff(one, one), UsageError);  // nothing else to compare
  const Diff found = diff(one, one_table(RowKind::Part, {{"stream 0", 3}, {"stream 1", 3}}));
  EXPECT_THAT(found.tables[0].rows,
              ElementsAre(DiffRow{"stream 1", {}, 3}, DiffRow{"stream 0", 5, 3}));
}

// Two comparisons: each number is a table, each strategy a row.
TEST(Diff, OfManyStepsHasATablePerNumber) {
  const Diff found = diff(
      file_of(ProfileKind::Comparison, {step_of("mesa", "8", 10), step_of("vanilla", "8", 20)}),
      file_of(ProfileKind::Comparison, {step_of("mesa", "8", 12), step_of("vanilla", "8", 20)}));
  ASSERT_EQ(found.tables.size(), 1u);
  EXPECT_EQ(found.tables[0].name, "live peak");
  EXPECT_THAT(found.tables[0].rows, ElementsAre(DiffRow{"8/mesa", 10, 12}));
  EXPECT_EQ(found.tables[0].equal, 1u);
}

// A baseline and a sweep have no names in common, and say the same of their steps.
TEST(Diff, AcrossKindsMatchesStepsByWhatTheyAre) {
  Profile baseline =
      file_of(ProfileKind::Baseline, {step_of("mesa", "8", 10), step_of("mesa", "16", 20)});
  baseline.cases[0].key = "ours";
  const Profile sweep =
      file_of(ProfileKind::Sweep, {step_of("mesa", "16", 25), step_of("mesa", "8", 10)});
  EXPECT_THAT(diff(baseline, sweep).tables[0].rows,
              ElementsAre(DiffRow{"batch 16 · h100 · mesa", 20, 25}));
  baseline.cases.push_back(step_of("mesa", "8", 11));
  EXPECT_THROW(diff(baseline, sweep), UsageError);  // two are batch 8 · h100 · mesa
}

TEST(Diff, RefusesAFileWithTwoStepsOfOneName) {
  const Profile twice =
      file_of(ProfileKind::Comparison, {step_of("mesa", "8", 10), step_of("mesa", "8", 12)});
  EXPECT_THROW(diff(twice, twice), UsageError);
}

// "overlap_ns" and "overlap_bytes" are two numbers, whatever they are called in common.
TEST(Diff, KeepsNumbersOfOneNameApartByTheirUnits) {
  const auto with_overlap = [](const std::string& strategy, std::int64_t time) {
    ProfileCase one = step_of(strategy, "8", 10);
    add_fact(one, "overlap", Measure::Size, 5);
    add_fact(one, "overlap", Measure::Time, time);
    return one;
  };
  const Profile before = file_of(ProfileKind::Comparison,
                                 {with_overlap("mesa", 7), with_overlap("vanilla", 8)}),
                after = file_of(ProfileKind::Comparison,
                                {with_overlap("mesa", 7), with_overlap("vanilla", 9)});
  EXPECT_TRUE(diff(before, before).is_empty());
  const Diff found = diff(before, after);
  std::vector<std::string> changed;
  for (const DiffTable& one : found.tables)
    if (!one.rows.empty())
      changed.push_back(one.name + " in " +
                        std::string(measures[static_cast<std::size_t>(one.measure)].name));
  EXPECT_THAT(changed, ElementsAre("overlap in nanoseconds"));
}

TEST(Diff, FindsTheStepOfOneFileAmongMany) {
  const Profile many =
      file_of(ProfileKind::Sweep,
              {step_of("mesa", "8", 10), step_of("mesa", "16", 20), step_of("vanilla", "16", 40)});
  const auto one = [](const std::string& strategy, const std::string& batch) {
    return file_of(ProfileKind::OneStep, {step_of(strategy, batch, 30)});
  };
  const Diff found = diff(many, one("mesa", "16"));
  EXPECT_EQ(found.before, "file · 16/mesa");
  EXPECT_THAT(found.tables[0].rows, ElementsAre(DiffRow{"live peak", 20, 30}));
  // Another batch than all: what of it there is, if that is one.
  EXPECT_THAT(diff(one("vanilla", "64"), many).tables[0].rows,
              ElementsAre(DiffRow{"live peak", 30, 40}));
}

std::string refusal(const Profile& before, const Profile& after) {
  try {
    diff(before, after);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Diff, SaysWhichStepsThereAreIfNoneOrManyMatch) {
  const Profile many =
      file_of(ProfileKind::Sweep, {step_of("mesa", "8", 10), step_of("mesa", "16", 20)});
  const auto one = [](const std::string& strategy) {
    return file_of(ProfileKind::OneStep, {step_of(strategy, "64", 30)});
  };
  EXPECT_EQ(refusal(one("pareprop"), many),
            "file has no step with the strategy of file (it has: 8/mesa, 16/mesa)");
  EXPECT_EQ(
      refusal(one("mesa"), many),
      "file has more than one step that file could be compared with: 8/mesa, 16/mesa (compare "
      "with a file that has one of them)");
}

TEST(Diff, NamesItsColumnsByTheSourcesIfTheyDiffer) {
  Profile measured = file_of(ProfileKind::OneStep, {step_of("mesa", "8", 10)});
  const Profile predicted = measured;
  EXPECT_EQ(diff(predicted, measured).before_label, "before");
  measured.source = "measured";
  EXPECT_EQ(diff(predicted, measured).before_label, "predicted");
  EXPECT_EQ(diff(predicted, measured).after_label, "measured");
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

/// An explanation with these numbers and what is alive at its peak.
std::string explanation(const std::string& numbers, const std::string& alive) {
  return R"({"format": "tidemark-explain-1", "model": {"name": "m"}, "options": {"batch": 1},)"
         R"( "device": {"name": "d"}, "report": {"strategy": "vanilla", )" +
         numbers + R"(}, "alive": [)" + alive + "]}";
}

std::string error_of(const std::string& text) {
  try {
    read_profile_text(text, "a.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// Sums and differences of what a file says have to be numbers, too.
TEST(Profile, RefusesPartsOfMoreThanAllMemoryThereIs) {
  const std::string
      half = R"({"tensor": "x", "role": "value", "block": "", "bytes": 1152921504606846975})",
      byte = R"({"tensor": "y", "role": "value", "block": "", "bytes": 1})";
  const Profile most =
      read_profile_text(explanation(R"("live_peak_bytes": 1)", half + "," + byte), "a.json");
  EXPECT_EQ(table(diff(most, most), "at the peak, by role").whole->after, largest_size);
  EXPECT_EQ(error_of(explanation(R"("live_peak_bytes": 1)", half + "," + byte + "," + byte)),
            "a.json: /alive/2/bytes: found parts of more than 1048576 TiB in all; need less");
  EXPECT_EQ(
      error_of(explanation(R"("at_peak_bytes": {"a": 1152921504606846976, "b": 1})", "")),
      "a.json: /report/at_peak_bytes/b: found parts of more than 1048576 TiB in all; need less");
  EXPECT_THAT(error_of(explanation(R"("live_peak_bytes": 9223372036854775807)", "")),
              testing::HasSubstr("/report/live_peak_bytes: found 9223372036854775807; need"));
}

}  // namespace
}  // namespace tidemark::diff::diff_test
