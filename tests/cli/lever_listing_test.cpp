// What would lower a peak, as a table and for programs: ratios, order, cautions.
#include "cli/reports/lever_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tidemark::cli::lever_listing_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

constexpr std::int64_t gib = 1 << 30;

Report report(std::int64_t allocated, double rate, bool fits) {
  Report made;
  made.strategy = "vanilla";
  made.allocated_peak = {allocated * gib};
  made.reserved_peak = {(allocated + 2) * gib};
  made.samples_per_second = rate;
  made.step = Nanoseconds{static_cast<std::int64_t>(1e9 / rate)};
  made.capacity = {24 * gib};
  made.fits = fits;
  return made;
}

/// 20 GiB at 10 samples per second; a lever saves half for a quarter of the speed, one a tenth for
/// nothing, and one saves nothing.
LeverTable levers(bool fits = true) {
  LeverTable table;
  table.comparison.scenario.model.name = "gpt2";
  table.comparison.scenario.device.title = "NVIDIA T4";
  table.comparison.rows = {report(20, 10, fits)};
  table.tried = {{LeverKind::Option, "--loss chunked:8", "in parts", "", report(18, 10, fits)},
                 {LeverKind::Strategy, "checkpoint", "computes again", "", report(10, 8, true)},
                 {LeverKind::Option, "--optimizer lion", "another rule", "is another training",
                  report(20, 11, fits)}};
  return table;
}

std::string table_of(const LeverTable& table, Measure measure = Measure::Allocated) {
  return print_levers(table, measure, Format::Table, Style());
}

std::string line_with(const std::string& text, std::string_view what) {
  const std::size_t place = text.find(what);
  EXPECT_NE(place, text.npos) << what << " is not in\n" << text;
  if (place == text.npos) return "";
  const std::size_t begin = text.rfind('\n', place) + 1;
  return text.substr(begin, text.find('\n', place) - begin);
}

TEST(LeverListing, BeginsWithWhatIsThere) {
  EXPECT_THAT(table_of(levers()),
              StartsWith("gpt2 · vanilla: allocated 20.0 GiB, fits in 24.0 GiB (NVIDIA T4)\n"));
  EXPECT_THAT(table_of(levers(false)), HasSubstr("does not fit in 24.0 GiB"));
  EXPECT_THAT(table_of(levers(false)), HasSubstr("peak, first what makes it fit:"));
  EXPECT_THAT(table_of(levers()), Not(HasSubstr("first what")));
}

TEST(LeverListing, SaysWhatEachSavesAndCosts) {
  const std::string text = table_of(levers());
  EXPECT_THAT(line_with(text, "checkpoint"),
              AllOf(HasSubstr("10.00"), HasSubstr("−50.0 %"), HasSubstr("+25.0 %"),
                    HasSubstr("yes"), HasSubstr("computes again")));
  EXPECT_THAT(line_with(text, "--loss chunked:8"),
              AllOf(HasSubstr("18.00"), HasSubstr("−10.0 %"), HasSubstr(" 0.0 %")));
}

// What saves most comes first, and what saves nothing is left out.
TEST(LeverListing, PutsTheBestFirst) {
  const std::string text = table_of(levers());
  EXPECT_LT(text.find("checkpoint"), text.find("--loss chunked:8"));
  EXPECT_THAT(text, Not(HasSubstr("lion")));
}

TEST(LeverListing, WarnsOfWhatChangesBeside) {
  LeverTable table = levers();
  table.tried[1].caution = "gradients are approximate";
  EXPECT_THAT(table_of(table), HasSubstr("computes again; ! gradients are approximate"));
}

TEST(LeverListing, TellsWhatDoesNotFit) {
  const std::string text = table_of(levers(false));
  EXPECT_THAT(line_with(text, "--loss chunked:8"), HasSubstr(" no "));
  EXPECT_THAT(line_with(text, "checkpoint"), HasSubstr(" yes "));
}

// Of 22 GiB reserved ten less are kept by the same lever.
TEST(LeverListing, IsAboutTheMeasureThatWasAskedFor) {
  const std::string text = table_of(levers(), Measure::Reserved);
  EXPECT_THAT(text, HasSubstr("vanilla: reserved 22.0 GiB"));
  EXPECT_THAT(line_with(text, "checkpoint"), AllOf(HasSubstr("12.00"), HasSubstr("−45.5 %")));
}

TEST(LeverListing, SaysThatNothingHelps) {
  LeverTable table = levers();
  table.tried.clear();
  EXPECT_EQ(table_of(table),
            "gpt2 · vanilla: allocated 20.0 GiB, fits\nNothing that Tidemark knows lowers this "
            "peak.\n");
}

TEST(LeverListing, IsExactForPrograms) {
  const Json list = Json::parse(print_levers(levers(), Measure::Allocated, Format::Json, Style()));
  const Json& rows = list.is_array() ? list : list.begin().value();
  ASSERT_EQ(rows.size(), 2u);
  const Json& first = rows[0];
  EXPECT_EQ(first.at("lever"), "checkpoint");
  EXPECT_EQ(first.at("kind"), "strategy");
  EXPECT_EQ(first.at("allocated_bytes"), 10 * gib);
  EXPECT_EQ(first.at("memory_ratio"), 0.5);
  EXPECT_EQ(first.at("time_per_sample_ratio"), 1.25);
  EXPECT_EQ(first.at("step_ns"), 125'000'000);
  EXPECT_EQ(first.at("fits"), true);
  EXPECT_EQ(rows[1].at("kind"), "option");
  EXPECT_EQ(rows[1].at("caution"), "");
}

TEST(LeverListing, NamesTheMeasureInTheColumn) {
  const std::string csv = print_levers(levers(), Measure::Reserved, Format::Csv, Style());
  EXPECT_THAT(csv, StartsWith("lever,kind,reserved_bytes,memory_ratio,step_ns,"));
}

}  // namespace
}  // namespace tidemark::cli::lever_listing_test
