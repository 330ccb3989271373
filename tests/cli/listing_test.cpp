// One list in every format: people get what is shown, programs the value itself.
#include "cli/reports/listing.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace tidemark::cli::listing_test
