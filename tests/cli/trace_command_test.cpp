// Trace files give their model's numbers or list defects; allocator scripts print golden lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace tidemark::cli::trace_command_test {
namespace {

using Json = nlohmann::ordered_json;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TraceFiles, AnswerLikeTheModelTheyWereMadeFrom) {
  const Folder folder;
  for (const char* name : {"a.trace.json", "a.trace.json.zst"}) {
    const std::string path = folder / name;
    ASSERT_EQ(tidemark_with({"trace", "swin-t", "-b", "4", "-o", path}).exit_code, 0);
    const Json direct = Json::parse(tidemark("compare swin-t -b 4 --format json").output);
    const Json by_file = Json::parse(tidemark_with({"compare", path, "--format", "json"}).output);
    EXPECT_EQ(direct["rows"], by_file["rows"]) << name;
    EXPECT_EQ(direct["options"]["batch"], by_file["options"]["batch"]);
  }
}

TEST(TraceFiles, AreWrittenToStandardOutputWithoutAName) {
  const Folder folder;
  tidemark_with({"trace", "vit-ti-16", "-o", folder / "a.trace.json"});
  EXPECT_EQ(tidemark("trace vit-ti-16").output, file_text(folder / "a.trace.json"));
}

// As compare has it: all are replicas.
TEST(TraceFiles, AreOfARankOfSoManyGpus) {
  EXPECT_EQ(tidemark("trace gpt2 -s 64 --gpus 8").output,
            tidemark("trace gpt2 -s 64 --mesh dp=8").output);
  EXPECT_NE(tidemark("trace gpt2 -s 64 --gpus 8").output, tidemark("trace gpt2 -s 64").output);
}

TEST(TraceFiles, AreDescribedWhenSound) {
  const Folder folder;
  tidemark_with({"trace", "vit-ti-16", "-b", "3", "-o", folder / "a.trace.json"});
  const Outcome outcome = tidemark_with({"trace", "--info", folder / "a.trace.json"});
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* text : {"sound", "vit-ti-16 (vit)",
                           "batch 3, fp32, full, adamw, transformers-4.57", "blocks           12"})
    EXPECT_NE(outcome.output.find(text), std::string::npos) << outcome.output;
}

TEST(TraceFiles, WithDefectsGetAllOfThemListed) {
  const Folder folder;
  std::string text = tidemark("trace vit-ti-16").output;
  text = replaced(text, "\"shape\": [192]", "\"shape\": [191]");
  text = replaced(text, "\"inputs\": [\"blocks.0.mlp.fc1\"]", "\"inputs\": [\"blocks.9.add2\"]");
  write_text(folder / "bad.trace.json", text);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"trace", "--info"}, {"compare"}}) {
    std::vector<std::string> arguments = command;
    arguments.push_back(folder / "bad.trace.json");
    const Outcome outcome = tidemark_with(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.output, "");
    EXPECT_NE(outcome.errors.find("[191]"), std::string::npos) << outcome.errors;
    EXPECT_NE(outcome.errors.find("blocks.9.add2"), std::string::npos) << outcome.errors;
  }
}

TEST(TraceFiles, TakeNoOptionsOfTheStep) {
  const Folder folder;
  const std::string path = folder / "a.trace.json";
  tidemark_with({"trace", "vit-ti-16", "-o", path});
  for (const char* option : {"--batch 4", "--precision bf16", "--ddp", "--max-batch"}) {
    std::vector<std::string> arguments = words(option);
    arguments.insert(arguments.begin(), {"compare", path});
    const Outcome outcome = tidemark_with(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << option;
    EXPECT_NE(outcome.errors.find(words(option)[0] + " cannot change"), std::string::npos)
        << outcome.errors;
  }
}

TEST(TraceFiles, AreTheStepsOfReplicasThatTheySayNothingOf) {
  const Folder folder;
  const std::string path = folder / "a.trace.json";
  tidemark("trace gpt2 -b 2 -s 64 -o " + path);
  for (const std::string options :
       {"--gpus 8", "--mesh dp=8 --shard fsdp2", "--gpus 16 --shard ddp:bucket-mb=10"}) {
    const std::string more = " --cluster dgx-h100 --format json " + options;
    const Json direct = Json::parse(tidemark("compare gpt2 -b 2 -s 64" + more).output);
    const Json by_file = Json::parse(tidemark("compare " + path + more).output);
    EXPECT_EQ(direct["rows"], by_file["rows"]) << options;
    for (const char* field : {"mesh", "shard"})
      EXPECT_EQ(direct["options"][field], by_file["options"][field]) << options;
  }
}

TEST(TraceFiles, AreTheStepsOfReplicasInCheckFilesToo) {
  const Folder folder;
  tidemark("trace gpt2 -b 2 -s 64 -o " + (folder / "a.trace.json"));
  const std::string file = folder / "tidemark.json";
  write_text(file, R"({"format": "tidemark-check", "version": 1,
      "defaults": {"model": "a.trace.json", "mesh": ["1", "dp=2", "dp=8"]},
      "experiments": [{"shard": "fsdp2"}]})");
  EXPECT_EQ(tidemark_with({"check", file, "--update"}).exit_code, 0);
  const Json recorded = Json::parse(file_text(file));
  std::vector<std::int64_t> live;
  for (const Json& each : recorded["expected"]["experiments"])
    live.push_back(each["values"]["live"].get<std::int64_t>());
  ASSERT_EQ(live.size(), 3u);
  EXPECT_GT(live[0], live[1]);
  EXPECT_GT(live[1], live[2]);
}

TEST(TraceFiles, AreNotCutIntoStagesOrParts) {
  const Folder folder;
  const std::string path = folder / "a.trace.json";
  tidemark("trace gpt2 -b 2 -s 64 -o " + path);
  const auto refusal = [](const std::string& command) {
    const Outcome outcome = tidemark(command);
    EXPECT_EQ(outcome.exit_code, 2) << command;
    return outcome.errors;
  };
  EXPECT_THAT(refusal("compare " + path + " --mesh dp=2,tp=2"),
              testing::HasSubstr("can have replicas only (give --mesh dp=N, or name a model)"));
  EXPECT_THAT(refusal("compare " + path + " --gpus 2 --shard fsdp3"), testing::HasSubstr("fsdp2"));
  tidemark("trace gpt2 -b 2 -s 64 --mesh tp=2 -o " + path);
  EXPECT_THAT(refusal("compare " + path + " --mesh dp=2"),
              testing::HasSubstr("was recorded as a part of tp=2"));
}

TEST(TraceFiles, ThatEndEarlyAreRefused) {
  const Folder folder;
  const std::string text = tidemark("trace vit-ti-16").output;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, text.size() / 2, text.size() - 3}) {
    write_text(folder / "a.trace.json", text.substr(0, size));
    EXPECT_EQ(tidemark_with({"trace", "--info", folder / "a.trace.json"}).exit_code, 1) << size;
  }
}

TEST(Allocator, PrintsTheGoldenLinesFromFileAndStandardInput) {
  const std::string script =
      file_text(std::string(TIDEMARK_TESTS_DIR) + "/golden/allocator/default.in");
  const std::string expected =
      file_text(std::string(TIDEMARK_TESTS_DIR) + "/golden/allocator/default.out");
  EXPECT_EQ(tidemark("allocator tests/golden/allocator/default.in").output, expected);
  EXPECT_EQ(tidemark("allocator -", {.input = script}).output, expected);
}

TEST(Allocator, NamesTheLineThatIsWrong) {
  const Outcome outcome = tidemark("allocator -", {.input = "a 1 512 0\nb 2\n"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("standard input:2:"), std::string::npos) << outcome.errors;
}

}  // namespace
}  // namespace tidemark::cli::trace_command_test
