// What the name after -o says: the format, where --format does not; and what is said to a name that
// means something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands/formats.h"

namespace tidemark::cli::file_names_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Format written(const char* name, VerbBit command, std::string_view when = {}) {
  Options options;
  options.output = name;
  return format_of(options, command, when);
}

std::string complaint(const char* name, VerbBit command, std::string_view when = {}) {
  try {
    written(name, command, when);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(FileNames, SayTheFormat) {
  struct Case {
    const char* name;
    VerbBit command;
    Format format;
  };
  for (const Case& each : {Case{"a.txt", for_compare, Format::Table},
                           {"a.log", for_compare, Format::Table},
                           {"a.json", for_compare, Format::Json},
                           {"a.csv", for_compare, Format::Csv},
                           {"a.md", for_compare, Format::Markdown},
                           {"a.markdown", for_compare, Format::Markdown},
                           {"a.html", for_compare, Format::Html},
                           {"a.htm", for_compare, Format::Html},
                           {"a.svg", for_compare, Format::Svg},
                           {"a.chrome.json", for_explain, Format::Chrome},
                           {"a.timeline.json", for_explain, Format::Timeline},
                           {"a.collapsed", for_explain, Format::Collapsed},
                           {"a.folded", for_explain, Format::Collapsed},
                           {"a.xml", for_check, Format::Junit},
                           {"a.sarif", for_check, Format::Sarif},
                           {"a.sarif.json", for_check, Format::Sarif}})
    EXPECT_EQ(written(each.name, each.command), each.format) << each.name;
}

TEST(FileNames, MayBeInCapitalsInFoldersAndCompressed) {
  EXPECT_EQ(written("out.svg/REPORT.HTML", for_compare), Format::Html);
  EXPECT_EQ(written("a.timeline.json.zst", for_explain), Format::Timeline);
  EXPECT_EQ(written("a.json.ZST", for_explain), Format::Json);
}

// Where timelines are not written, one called so is JSON like any other.
TEST(FileNames, AreReadAsFarAsTheCommandWrites) {
  EXPECT_EQ(written("a.timeline.json", for_compare), Format::Json);
  EXPECT_EQ(written("a.chrome.json", for_explain, of_an_item), Format::Json);
}

TEST(FileNames, WithoutAnEndingAreTheUsual) {
  for (const char* name : {"/dev/stdout", "report", "folder.json/report", ".json-notes"})
    EXPECT_EQ(written(name, for_compare), Format::Table) << name;
}

TEST(FileNames, OfWhatIsWrittenElsewhereAreToldSo) {
  EXPECT_EQ(complaint("a.html", for_search),
            "'a.html': html is not available here (known: table, json, csv, markdown)");
  EXPECT_EQ(complaint("a.pdf", for_compare),
            "'a.pdf': .pdf is not written here (write .html and print it from a browser)");
  EXPECT_THAT(complaint("a.png", for_compare), HasSubstr("write .svg, which browsers show"));
  EXPECT_THAT(complaint("a.JPEG", for_compare), StartsWith("'a.JPEG': .jpeg is not written here"));
  EXPECT_EQ(complaint("a.xlsx", for_search),
            "'a.xlsx': .xlsx is not written here (write .csv, which spreadsheets open)");
}

// There is no way from a search to a page, so none is named.
TEST(FileNames, OfNoFormatListTheEndings) {
  EXPECT_EQ(complaint("a.pdf", for_search),
            "'a.pdf': .pdf is no format that is written here (known: .json, .csv, .md; --format "
            "writes any of them to any name)");
  EXPECT_THAT(complaint("a.tar.gz", for_compare), StartsWith("'a.tar.gz': .gz is no format"));
}

TEST(FormatOption, GoesBeforeTheName) {
  Options options;
  options.output = "a.png";
  options.format = "json";
  EXPECT_EQ(format_of(options, for_compare), Format::Json);
  options.output = "a.json";
  options.format = "csv";
  EXPECT_EQ(format_of(options, for_compare), Format::Csv);
}

TEST(FormatOption, MustBeOneThatTheCommandWrites) {
  Options options;
  EXPECT_EQ(format_of(options, for_compare), Format::Table);
  const auto said = [&](const char* format, std::string_view when = {}) -> std::string {
    options.format = format;
    try {
      format_of(options, for_explain, when);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said("chrome"), "");
  EXPECT_EQ(said("chrome", of_an_item),
            "--format chrome is not available here (known: table, json)");
  EXPECT_THAT(said("jsn"), HasSubstr("(did you mean 'json'?"));
  EXPECT_THAT(said("Json"), HasSubstr("'Json'"));
}

TEST(RequiredEnding, IsThatOfTheOneFormatThereIs) {
  Options options;
  const auto said = [&](const char* name) -> std::string {
    options.output = name;
    try {
      require_ending(options, ".plan.json", "a plan");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NO_THROW(require_ending(options, ".plan.json", "a plan"));  // nothing is written
  for (const char* name : {"a.plan.json", "A.PLAN.JSON", "a.plan.json.zst", "/dev/stdout", "plan",
                           "v1.2/plan", ".hidden"})
    EXPECT_EQ(said(name), "") << name;
  EXPECT_EQ(said("a.json"), "'a.json': the name of a plan ends in .plan.json or .plan.json.zst");
  EXPECT_THAT(said("a.plan"), HasSubstr("ends in .plan.json"));
}

TEST(FormatNames, AreAllThatACommandWritesOnceEach) {
  EXPECT_THAT(format_names(for_search), ElementsAre("table", "json", "csv", "markdown"));
  EXPECT_THAT(format_names(for_replay),
              ElementsAre("table", "json", "csv", "markdown", "timeline", "chrome"));
  EXPECT_THAT(format_names(for_explain), ElementsAre("table", "json", "html", "svg", "chrome",
                                                     "timeline", "collapsed", "csv", "markdown"));
}

TEST(DescribedFormats, SayWhatIsWrittenWhen) {
  EXPECT_EQ(describe_formats(for_search),
            "table, json, csv or markdown. Default table, or what the name after -o says (.json, "
            ".csv or .md)");
  EXPECT_EQ(describe_formats(for_compare),
            "table, json, csv, markdown, html or svg; with --replay: table, json, csv or "
            "markdown. Default table, or what the name after -o says (.json, .csv, .md, .html or "
            ".svg)");
  EXPECT_EQ(describe_formats(for_compare | for_search),
            "compare: table, json, csv, markdown, html or svg; compare with --replay: table, json, "
            "csv or markdown; search: table, json, csv or markdown. Default table, or what the "
            "name after -o says");
}

TEST(WrittenAs, CallsTheWriterOfTheFormatAlone) {
  int calls = 0;
  const auto write = [&](const char* text) { return [&, text] { return ++calls, text; }; };
  EXPECT_EQ(written_as(Format::Csv, {{Format::Json, write("json")}, {Format::Csv, write("csv")}}),
            "csv");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tidemark::cli::file_names_test
