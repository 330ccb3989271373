// What is said about runs, buffers and reports.
#include "gui/facts.h"

#include <gmock/gmock.h>

#include <regex>

#include "tests/gui/robot.h"

namespace tidemark::gui::facts_test {
namespace {

using testing::HasSubstr;

std::string value_of(const std::vector<Fact>& facts, std::string_view name) {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? "" : found->value;
}

// Rates are in GB/s, as datasheets have them; amounts stand beside others in MiB.
TEST(Facts, AmountsOfMemoryAreInOneUnit) {
  const auto opened = predict(vit({"vanilla"})).front().opened;
  const std::regex decimal_amount("[0-9] [kMGT]B([^/]|$)");
  std::vector<Fact> facts = lines_of(facts_of(*opened, Range{0, opened->end()}));
  for (std::uint32_t run = 0; run < opened->timeline().runs.size(); ++run)
    std::ranges::copy(facts_of(*opened, RunId{run}), std::back_inserter(facts));
  for (const Fact& fact : facts)
    EXPECT_FALSE(std::regex_search(fact.value, decimal_amount)) << fact.name << ": " << fact.value;
  EXPECT_THAT(value_of(facts, "they move"), HasSubstr("iB"));
}

TEST(Facts, AReportSaysWhatIsAllocatedAndWhatIsReserved) {
  const Report report = predict(vit({"vanilla"}, 64)).front().report;
  ASSERT_GT(report.reserved_peak, report.allocated_peak);
  const std::vector<Fact> facts = facts_of(report);
  EXPECT_THAT(value_of(facts, "allocated"), HasSubstr(to_text(report.allocated_peak)));
  EXPECT_THAT(value_of(facts, "reserved"), HasSubstr(to_text(report.reserved_peak)));
  EXPECT_EQ(value_of(facts, "fits"), "yes, in " + to_text(report.capacity));
}

TEST(Facts, WhatDoesNotFitSaysWhatKeepsItOut) {
  Report report;
  report.capacity = Bytes{1 << 30};
  report.short_by = Bytes{3 << 20};
  EXPECT_EQ(value_of(facts_of(report), "fits"), "no, 3.00 MiB short of 1.00 GiB");
  report.short_by = Bytes{};
  EXPECT_THAT(value_of(facts_of(report), "fits"), HasSubstr("fragmentation"));
}

// Merged norms keep their output, so that no backward reads the input of a checkpointed block: it
// is the recomputation that needs it.
TEST(WhyAlive, TheInputOfACheckpointIsHeldForItsRecomputation) {
  const auto opened = predict(vit({"ms-bp+checkpoint"})).front().opened;
  const Block& block = opened->trace().blocks[5];
  std::size_t found = 0;
  for (std::uint32_t b = 0; b < opened->schedule().buffers.size(); ++b) {
    const Buffer& buffer = opened->schedule().buffers[b];
    if (buffer.role != Role::Value || buffer.tensor != opened->trace()[block.input].storage)
      continue;
    ++found;
    EXPECT_THAT(opened->why_alive(BufferId{b}),
                HasSubstr("held for the recompute of " + block.name + "."));
  }
  EXPECT_EQ(found, 1u);
}

TEST(WhyAlive, ParametersArePersistentAndWhatNobodyReadsAgainIsNotSaved) {
  const auto opened = predict(vit({"checkpoint"})).front().opened;
  std::set<std::string> reasons;
  for (std::uint32_t b = 0; b < opened->schedule().buffers.size(); ++b) {
    const std::string why = opened->why_alive(BufferId{b});
    EXPECT_NE(why, "");
    if (opened->schedule().buffers[b].persistent) reasons.insert(why);
  }
  EXPECT_TRUE(reasons.contains("persistent"));
}

}  // namespace
}  // namespace tidemark::gui::facts_test
