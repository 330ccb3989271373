// What all JSON documents have in common: what the answer is about, and how they are written down.
#include "cli/reports/json_text.h"

#include <gtest/gtest.h>

#include "tests/cli/small_comparison.h"

namespace tidemark::cli::json_text_test {
namespace {

using namespace literals;

TEST(DocumentText, IsIndentedUtf8WithANewlineAtTheEnd) {
  EXPECT_EQ(document_text({{"a", Json::array({1})}, {"b", "µs"}}),
            "{\n  \"a\": [\n    1\n  ],\n  \"b\": \"µs\"\n}\n");
  EXPECT_EQ(document_text("caf\xe9"), "\"caf\uFFFD\"\n");  // what is no UTF-8 is replaced
}

TEST(JsonValues, AreNullWhereNothingIsKnown) {
  EXPECT_EQ(to_json(std::optional<Bytes>()), nullptr);
  EXPECT_EQ(to_json(std::optional(3_KiB)), 3072);
  EXPECT_EQ(to_json(std::monostate()), nullptr);
}

TEST(JsonValues, HaveTheBytesOfEachCategory) {
  BytesByCategory bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = Bytes{static_cast<std::int64_t>(i) + 1};
  const Json json = to_json(bytes);
  EXPECT_EQ(json.size(), bytes.size());
  EXPECT_EQ(json.at("parameter"), bytes[static_cast<std::size_t>(Category::Parameter)].count);
  EXPECT_EQ(json.at("unknown"), bytes[static_cast<std::size_t>(Category::Unknown)].count);
}

TEST(InputsJson, SayWhatTheAnswerIsAbout) {
  Comparison comparison = small_comparison();
  comparison.scenario.model.family = "vit";
  comparison.scenario.model.source = "a paper";
  comparison.trainable = 7;
  comparison.attention = Attention::Flash;
  comparison.scenario.device.context = 2_MiB;
  comparison.budget.allocator.max_split_size = 1_MiB;
  comparison.budget.allocator.expandable_segments = true;
  comparison.notes = {"a note"};
  const Json json = inputs_json("some-format-1", comparison);
  EXPECT_EQ(json.at("format"), "some-format-1");
  EXPECT_EQ(json.at("predicted"), true);
  EXPECT_EQ(json.at("notes"), Json::array({"a note"}));
  EXPECT_EQ(json.at("model"), Json::parse(R"({"name": "vit", "family": "vit", "title": "ViT",
      "source": "a paper", "parameters": 86000000, "trainable_parameters": 7, "tokens": 197})"));
  EXPECT_EQ(json.at("device"), Json::parse(R"({"name": "gpu", "title": "GPU",
      "capacity_bytes": 35651584, "context_bytes": 2097152, "budget_bytes": null,
      "available_bytes": 33554432})"));
  const Json& allocator = json.at("allocator");
  EXPECT_EQ(allocator.at("max_split_size_bytes"), 1 << 20);
  EXPECT_EQ(allocator.at("expandable_segments"), true);
  const Json& options = json.at("options");
  EXPECT_EQ(options.at("batch"), 4);
  EXPECT_EQ(options.at("attention"), "flash");
  EXPECT_EQ(options.at("precision"), "fp32");
  EXPECT_EQ(options.at("dropout"), nullptr);
}

}  // namespace
}  // namespace tidemark::cli::json_text_test
