// What programs read: JSON and CSV.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/reports/comparison_fields.h"
#include "cli/text/csv.h"
#include "tests/cli/program.h"

namespace tidemark::cli::formats_test {
namespace {

using Json = nlohmann::ordered_json;

Json answer_to(const std::string& line) {
  const Outcome outcome = tidemark(line + " --format json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output.back(), '\n');
  return Json::parse(outcome.output);
}

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> result;
  for (const auto& [key, value] : object.items()) result.push_back(key);
  return result;
}

// A cell may hold commas in quotes.
std::size_t cells(const std::string& line) {
  bool quoted = false;
  std::size_t count = 1;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) ++count;
  }
  return count;
}

TEST(Json, SaysWhatWasAsked) {
  const Json json = answer_to(
      "compare vit-b-16 -b 4 --precision bf16 --device h100 --budget 20GiB --tuning "
      "lora:r=4,targets=q,v --alloc-conf max_split_size_mb:128 --strategies vanilla");
  EXPECT_EQ(json["predicted"], true);
  EXPECT_EQ(json["model"]["name"], "vit-b-16");
  EXPECT_EQ(json["options"]["batch"], 4);
  EXPECT_EQ(json["options"]["precision"], "bf16");
  EXPECT_EQ(json["options"]["tuning"], "lora:r=4,targets=q,v");
  EXPECT_EQ(json["device"]["name"], "h100");
  EXPECT_EQ(json["device"]["budget_bytes"], 20LL << 30);
  EXPECT_EQ(json["allocator"]["max_split_size_bytes"], 128LL << 20);
  EXPECT_LT(json["model"]["trainable_parameters"], json["model"]["parameters"]);
}

TEST(Json, RowsHaveTheKeysOfTheManualPageInOneOrder) {
  const Json json = answer_to("compare vit-b-16 --strategies vanilla,checkpoint,reversible+mesa");
  std::vector<std::string> expected;
  for (const RowField& field : row_fields()) expected.emplace_back(field.key);
  expected.insert(expected.end(), {"at_peak_bytes", "block_units"});
  ASSERT_EQ(json["rows"].size(), 3u);
  for (const Json& row : json["rows"]) EXPECT_EQ(keys(row), expected);
}

TEST(Json, HasNullForAllNumbersOfAStrategyThatDoesNotApply) {
  const Json row = answer_to("compare vit-b-16 --strategies reversible+mesa")["rows"][0];
  EXPECT_EQ(row["applies"], false);
  EXPECT_NE(row["reason"], "");
  for (const auto& [key, value] : row.items()) {
    const bool is_text =
        key == "strategy" || key == "applies" || key == "reason" || key == "caution";
    EXPECT_NE(value.is_null(), is_text) << key;
  }
}

TEST(Json, CategoriesAtThePeakSumToIt) {
  const Json answer = answer_to("compare swin-t -b 4");
  for (const Json& row : answer["rows"]) {
    if (row["applies"] == false) continue;
    std::int64_t sum = 0;
    for (const auto& [category, bytes] : row["at_peak_bytes"].items())
      sum += bytes.get<std::int64_t>();
    EXPECT_EQ(sum, row["live_peak_bytes"]) << row["strategy"];
  }
}

// arXiv 2406.16282: 19 and 21.8 units per block, of which 39.47 % and 29.19 % are saved.
TEST(Json, ReproducesThePublishedSharesFromTheModel) {
  const Json vit = answer_to(
      "compare vit-b-16 --batch 64 --precision amp-fp16 --attention flash --framework paper "
      "--strategies vanilla,lowmemorybp")["rows"];
  EXPECT_EQ(vit[0]["block_units"]["per_op"], 19.0);
  EXPECT_NEAR(1 - vit[1]["saved_ratio"].get<double>(), 0.3947, 0.00005);
  const Json llama = answer_to(
      "compare llama-13b --precision amp-fp16 --attention flash --framework paper "
      "--strategies vanilla,lowmemorybp")["rows"];
  EXPECT_EQ(llama[0]["block_units"]["per_op"], 21.8);
  EXPECT_NEAR(1 - llama[1]["saved_ratio"].get<double>(), 0.2919, 0.00005);
}

TEST(Json, KnowsTheLargestBatchThatStillFits) {
  const std::string card = " --budget 2GiB --strategies checkpoint";
  const Json row = answer_to("compare vit-s-16 --max-batch" + card)["rows"][0];
  const auto batch = row["largest_batch"].get<std::int64_t>();
  ASSERT_GT(batch, 1);
  const auto fits = [&](std::int64_t n) {
    return answer_to("compare vit-s-16 -b " + std::to_string(n) + card)["rows"][0]["fits"];
  };
  EXPECT_EQ(fits(batch), true);
  EXPECT_EQ(fits(batch + 1), false);
}

TEST(Csv, HasEveryRowWithEveryCell) {
  const Outcome outcome =
      tidemark("compare vit-b-16 --strategies vanilla,pareprop:hoist,released --format csv");
  std::istringstream stream(outcome.output);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[2].starts_with("\"pareprop:hoist,released\",true,")) << lines[2];
  for (const std::string& line : lines) EXPECT_EQ(cells(line), row_fields().size()) << line;
}

TEST(Csv, QuotesWhatWouldBreakTheLine) {
  EXPECT_EQ(csv_line({"a", "b,c", "d\"e", ""}), "a,\"b,c\",\"d\"\"e\",\n");
}

TEST(Markdown, EscapesWhatWouldBreakTheTable) {
  EXPECT_EQ(markdown_line({"a|b", "c"}), "| a\\|b | c |\n");
}

TEST(Lists, AreJsonObjectsWithTypedValues) {
  const Json devices = answer_to("devices");
  EXPECT_GE(devices.size(), 11u);
  EXPECT_TRUE(devices[0]["capacity"].is_number_integer());
  const Json models = answer_to("models");
  EXPECT_TRUE(models[0]["parameters"].is_number_integer());
  EXPECT_GE(answer_to("strategies").size(), 9u);
  EXPECT_GE(answer_to("frameworks").size(), 5u);
  EXPECT_EQ(answer_to("frameworks paper")[0]["value"], "paper");
}

TEST(Lists, GiveADeviceFileThatTheProgramReads) {
  const Folder folder;
  write_text(folder / "my.json", tidemark("devices h100 --format json").output);
  const Outcome mine =
      tidemark_with({"compare", "vit-ti-16", "--format", "json", "-d", folder / "my.json"});
  EXPECT_EQ(mine.output, tidemark("compare vit-ti-16 --format json -d h100").output);
}

}  // namespace
}  // namespace tidemark::cli::formats_test
