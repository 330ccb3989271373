// Each format that a command says it writes is written by it, and looks like one.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands/formats.h"
#include "tests/cli/program.h"

namespace tidemark::cli::every_format_test {
namespace {

using Json = nlohmann::json;

/// A run of a command, whose formats are those of `command` with these options.
struct Example {
  const char* name;
  VerbBit command;
  std::string_view when;
  const char* line;
  int exit_code = 0;
};

class EveryFormat : public testing::TestWithParam<Example> {};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool is_json(const std::string& text, const char* key) {
  const Json json = Json::parse(text, nullptr, false);
  return !json.is_discarded() && (json.is_array() || json.contains(key));
}

bool is_json(const std::string& text) { return !Json::parse(text, nullptr, false).is_discarded(); }

bool starts_with(const std::string& text, std::string_view beginning) {
  return text.starts_with(beginning);
}

/// What no other format begins with.
bool looks_like(Format format, const std::string& text) {
  switch (format) {
    case Format::Table:
      return !is_json(text) && !starts_with(text, "<") && text.find("| --") == text.npos;
    case Format::Json:
      return is_json(text);
    case Format::Csv:
      return first_line(text).find(',') != text.npos && first_line(text).find(", ") == text.npos;
    case Format::Markdown:
      return text.find("| --") != text.npos;
    case Format::Html:
      return starts_with(text, "<!DOCTYPE html>");
    case Format::Svg:
      return starts_with(text, "<svg ");
    case Format::Chrome:
      return is_json(text, "traceEvents");
    case Format::Timeline:
      return is_json(text) && Json::parse(text)["format"] == "tidemark-timeline";
    case Format::Collapsed:  // frames, a blank and a number
      return first_line(text).find_last_not_of("0123456789") == first_line(text).rfind(' ') &&
             first_line(text).find(';') != text.npos;
    case Format::Github:
      return starts_with(text, "::");
    case Format::Junit:
      return starts_with(text, "<?xml ");
    case Format::Sarif:
      return is_json(text) && Json::parse(text)["version"] == "2.1.0";
    case Format::SmallerIsBetter:
      return is_json(text, "") && Json::parse(text)[0].contains("unit");
    case Format::Bmf:
      return is_json(text) && Json::parse(text).begin()->begin()->contains("value");
  }
  return false;
}

/// A model of so many blocks.
std::string config(int blocks) {
  return R"({"model_type": "gpt2", "n_embd": 8, "n_head": 2, "vocab_size": 16, "n_positions": 8, )"
         R"("n_layer": )" +
         std::to_string(blocks) + "}";
}

TEST_P(EveryFormat, IsWrittenByTheCommandsThatListIt) {
  const Folder folder;
  const Surroundings there = {.folder = folder.path()};
  write_text(folder / "tidemark.json", R"({"format": "tidemark-check", "version": 1,)"
                                       R"( "experiments": [{"model": "config.json"}]})");
  write_text(folder / "config.json", config(1));
  ASSERT_EQ(tidemark("check --update", there).exit_code, 0);
  write_text(folder / "config.json", config(2));
  for (const std::string strategy : {"vanilla", "checkpoint"})
    ASSERT_EQ(tidemark("explain config.json --strategy " + strategy + " -o " + strategy +
                           ".timeline.json",
                       there)
                  .exit_code,
              0);
  std::vector<std::string> texts;
  for (const Format format : formats_of(GetParam().command, GetParam().when)) {
    const std::string line =
        GetParam().line + std::string(" --format ") + std::string(name_of(format));
    const Outcome outcome = tidemark(line, there);
    EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << line << "\n" << outcome.errors;
    EXPECT_TRUE(looks_like(format, outcome.output)) << line << "\n" << outcome.output;
    EXPECT_EQ(std::ranges::count(texts, outcome.output), 0) << line << " is as another format";
    texts.push_back(outcome.output);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Commands, EveryFormat,
    testing::Values(
        Example{"compare", for_compare, "", "compare config.json --strategies vanilla,checkpoint"},
        Example{"sweep", for_compare, "", "compare config.json -b 1,2 --strategies vanilla"},
        Example{"compare_replay", for_compare, with_replay,
                "compare config.json --strategies vanilla --replay null"},
        Example{"explain", for_explain, "", "explain config.json --strategy checkpoint"},
        Example{"explain_item", for_explain, of_an_item,
                "explain config.json --strategy checkpoint lm_head"},
        Example{"explain_snapshot", for_explain, of_a_snapshot,
                "explain " TIDEMARK_TESTS_DIR "/reference/snapshots/ring.pickle"},
        Example{"explain_saved", for_explain, with_saved, "explain config.json --saved"},
        Example{"replay", for_replay, "",
                "replay config.json --strategy checkpoint --backend null"},
        Example{"search", for_search, "",
                "search config.json --gpus 2 --cluster dgx-h100 --strategies vanilla"},
        Example{"check", for_check, "", "check", 3},
        Example{"diff", for_diff, "", "diff vanilla.timeline.json checkpoint.timeline.json"},
        Example{"devices", for_devices, "", "devices"},
        Example{"clusters", for_clusters, "", "clusters"},
        Example{"models", for_models, "", "models"},
        Example{"strategies", for_strategies, "", "strategies"},
        Example{"frameworks", for_frameworks, "", "frameworks"}),
    [](const auto& example) { return example.param.name; });

}  // namespace
}  // namespace tidemark::cli::every_format_test
