// One list in every format: people get what is shown, programs the value itself.
#include "cli/reports/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/figure_listing.h"
#include "cli/reports/saved_listing.h"
#include "tests/traces/small_trace.h"

namespace tidemark::cli::listing_test {
namespace {

Listing devices() {
  return {{{"name", "device"}, {"bytes", "memory", Align::Right}, {"note", "note"}},
          {{{std::string("t4")}, {std::int64_t{16}, "16 B"}, {std::string("a|b, \"c\"")}},
           {{std::string("none")}, {}, {std::string()}}}};
}

TEST(Listing, IsATableForPeople) {
  EXPECT_EQ(print(devices(), Format::Table, {.unicode = true, .width = 80}),
            "device  memory  note\n"
            "t4        16 B  a|b, \"c\"\n"
            "none\n");
}

TEST(Listing, IsMarkdownWithWhatIsShown) {
  EXPECT_EQ(print(devices(), Format::Markdown, {}),
            "| device | memory | note |\n"
            "| --- | --: | --- |\n"
            "| t4 | 16 B | a\\|b, \"c\" |\n"
            "| none |  |  |\n");
}

TEST(Listing, IsCsvWithKeysAndValues) {
  EXPECT_EQ(print(devices(), Format::Csv, {}),
            "name,bytes,note\n"
            "t4,16,\"a|b, \"\"c\"\"\"\n"
            "none,,\n");
}

TEST(Listing, IsJsonWithKeysAndValues) {
  EXPECT_EQ(nlohmann::json::parse(print(devices(), Format::Json, {})),
            nlohmann::json::parse(R"([{"name": "t4", "bytes": 16, "note": "a|b, \"c\""},
                                      {"name": "none", "bytes": null, "note": ""}])"));
}

TEST(Listing, HasNoOtherThanAsciiCharactersWhereTheLocaleHasNone) {
  const Listing listing = {{{"name", "name"}}, {{{std::string("é · µs")}}}};
  EXPECT_EQ(print(listing, Format::Table, {.unicode = false, .width = 80}).find("\xC2"),
            std::string::npos);
}

// What is a whole number stays one, however large; a fraction stays a fraction.
TEST(FigureListing, HasWholeNumbersWhereTheyAreWhole) {
  const auto number = [](double value) { return number_of({"key", value, "", "", {}}); };
  EXPECT_EQ(number(3.12e14), FieldValue(std::int64_t{312'000'000'000'000}));
  EXPECT_EQ(number(0), FieldValue(std::int64_t{0}));
  EXPECT_EQ(number(0.5), FieldValue(0.5));
  EXPECT_EQ(number(-1.5), FieldValue(-1.5));
}

// People read "312 TFLOP/s" at once; programs the number and its unit.
TEST(FigureListing, ShowsTextsToPeopleAndNumbersToPrograms) {
  const Figure rate = {"rate", 3.12e14, "FLOP/s", "312 TFLOP/s", {FigureKind::Datasheet, "a page"}};
  const Listing listing = figure_listing(std::span(&rate, 1));
  EXPECT_EQ(print(listing, Format::Table, {.unicode = true, .width = 80}),
            "figure        value  known by   source\n"
            "rate    312 TFLOP/s  datasheet  a page\n");
  EXPECT_EQ(print(listing, Format::Csv, {}),
            "figure,value,unit,kind,source\nrate,312000000000000,FLOP/s,datasheet,a page\n");
}

// Of two blocks each layer norm holds its input [2, 3, 4] of 96 bytes, 192 together; the two
// dropouts hold masks of a byte for each of 24 numbers.
TEST(SavedListing, CountsEachGroupAndItsBytes) {
  const std::string csv = print_saved_groups(small_trace(), Format::Csv, {});
  EXPECT_THAT(csv, testing::StartsWith("count,kind,operand,shape,dtype,storage_bytes,sum_bytes\n"));
  EXPECT_THAT(csv, testing::HasSubstr("\n2,layer_norm,input 0,\"[2, 3, 4]\",float32,96,192\n"));
  EXPECT_THAT(csv, testing::HasSubstr(",24,48\n"));
  EXPECT_THAT(csv, testing::Not(testing::HasSubstr("Together")));
}

TEST(SavedListing, AddsUpForPeople) {
  const Trace trace = small_trace();
  const SavedBytes saved = saved_bytes(trace, keep_everything(trace));
  ASSERT_GT(saved.per_op, saved.unique);  // "fc" reads what "norm" gave, "mlp" what "add1" did
  EXPECT_THAT(
      print_saved_groups(trace, Format::Table, {.width = 120}),
      testing::EndsWith("\nTogether " + std::to_string(saved.per_op.count) +
                        " B when a tensor counts once per kind of op, " +
                        std::to_string(saved.unique.count) +
                        " B when each storage counts once.\nParameters are not counted.\n"));
}

}  // namespace
}  // namespace tidemark::cli::listing_test
