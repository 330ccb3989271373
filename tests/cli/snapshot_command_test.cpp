// Memory snapshots as operands: what each command says to them, and to those that it cannot take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/sqlite_database.h"

namespace tidemark::cli::snapshot_command_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string sample(const std::string& name) {
  return std::string(TIDEMARK_TESTS_DIR "/reference/snapshots/") + name + ".pickle";
}

std::string problem(const std::string& line, int exit_code) {
  const Outcome outcome = tidemark(line);
  EXPECT_EQ(outcome.exit_code, exit_code) << line << "\n" << outcome.errors;
  EXPECT_EQ(outcome.output, "");
  return outcome.errors;
}

TEST(SnapshotCommands, JsonHasExactNumbersAndAllFrames) {
  const Outcome outcome = tidemark("explain --format json " + sample("two_streams"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  const auto json = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(json["format"], "tidemark-snapshot-1");
  EXPECT_EQ(json["active_peak_bytes"], 20985344);  // two_streams.expected.json
  EXPECT_EQ(json["reserved_peak_bytes"], 37748736);
  std::int64_t alive = 0;
  for (const auto& group : json["alive"]) alive += group["bytes"].get<std::int64_t>();
  EXPECT_EQ(alive, 20985344);
  EXPECT_EQ(json["alive"][0]["frames"].back()["function"], "<module>");
}

TEST(SnapshotCommands, AFlameGraphsWeightsAreThePeak) {
  const Outcome outcome = tidemark("explain --format collapsed " + sample("two_streams"));
  std::istringstream lines(outcome.output);
  std::int64_t sum = 0;
  for (std::string line; std::getline(lines, line);)
    sum += std::stoll(line.substr(line.rfind(' ')));
  EXPECT_EQ(sum, 20985344);
  EXPECT_THAT(outcome.output, StartsWith("<module> (record.py:"));
}

TEST(SnapshotCommands, DiffComparesStacks) {
  const Outcome outcome = tidemark("diff " + sample("two_streams") + " " + sample("ring"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("two_streams.pickle · recorded · measured on cuda:0"));
  EXPECT_THAT(outcome.output, HasSubstr("[NEW]  (no stack was recorded)"));
}

TEST(SnapshotCommands, ANameSaysNothingAboutTheContent) {
  const Folder folder;
  write_text(folder / "run.bin", file_text(sample("ring")));
  EXPECT_EQ(tidemark("explain " + (folder / "run.bin")).exit_code, 0);
}

TEST(SnapshotCommands, WhatCannotBeAskedOfThemIsSaid) {
  const std::string ring = sample("ring");
  EXPECT_THAT(problem("explain " + ring + " -b 4", 2), HasSubstr("--batch cannot change"));
  EXPECT_THAT(problem("explain " + ring + " loss", 2), HasSubstr("no tensors, ops and plans"));
  EXPECT_THAT(problem("explain " + ring + " --format timeline", 2),
              HasSubstr("not available here"));
  EXPECT_THAT(problem("compare " + ring, 1),
              HasSubstr("is a memory snapshot, of blocks and stacks"));
}

TEST(ProfileCommands, AreForDiffAndView) {
  const std::string profile = TIDEMARK_TESTS_DIR "/reference/profiles/mlp_cpu.json";
  const Outcome same = tidemark("diff " + profile + " " + profile);
  EXPECT_EQ(same.exit_code, 0) << same.errors;
  EXPECT_THAT(same.output, HasSubstr("mlp_cpu.json · profiled · measured on cpu"));
  EXPECT_THAT(problem("explain " + profile, 2), HasSubstr("is a profile of PyTorch"));
  EXPECT_THAT(problem("compare " + profile, 2), HasSubstr("tidemark view and diff take profiles"));
}

TEST(NsysCommands, ExportsAreForDiffAndView) {
  const Folder folder;
  const std::string before = folder / "before.sqlite", after = folder / "after.db";
  write_text(before, nsys_step());
  write_text(after, nsys_step("DELETE FROM CUPTI_ACTIVITY_KIND_MEMSET;"));
  const Outcome outcome = tidemark("diff " + before + " " + after);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("before.sqlite · profiled · measured on cuda:0"));
  EXPECT_THAT(outcome.output, HasSubstr("[GONE]  forward of fill"));
  EXPECT_THAT(problem("explain " + before, 2),
              HasSubstr("is taken for a recording of Nsight Systems, of kernels"));
  EXPECT_THAT(problem("compare " + after, 2), HasSubstr("tidemark view and diff take it"));
  EXPECT_THAT(problem("explain gpt2 --beside " + before, 1),
              HasSubstr("has what was asked of the driver, pieces in which PyTorch places"));
}

TEST(NsysCommands, MemoryThatWasNotRecordedIsUnknown) {
  const Folder folder;
  const std::string timed = folder / "timed.sqlite", whole = folder / "whole.sqlite";
  write_text(timed, nsys_step("DELETE FROM CUDA_GPU_MEMORY_USAGE_EVENTS;"));
  write_text(whole, nsys_step());
  const Outcome outcome = tidemark("diff " + timed + " " + whole);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("Only one of the two says: totals; at the peak, by cat"));
  EXPECT_THAT(outcome.output, testing::Not(HasSubstr("live peak")));
}

TEST(NsysCommands, WhatIsNoExportIsToldSo) {
  const Folder folder;
  write_text(folder / "notes.sqlite", "nothing but a text\n");
  write_text(folder / "report.nsys-rep", "anything");
  write_text(folder / "other.db", sqlite_database("CREATE TABLE urls (id INTEGER);"));
  write_text(folder / "cut.sqlite", nsys_step().substr(0, 4096));
  const auto told = [&](const std::string& name) {
    return problem("diff " + (folder / name) + " " + (folder / name), 1);
  };
  EXPECT_THAT(told("notes.sqlite"), HasSubstr("is no database of SQLite: export it (again): nsys"));
  EXPECT_THAT(told("report.nsys-rep"), HasSubstr("nsys export --type sqlite -o report.sqlite"));
  EXPECT_THAT(told("other.db"), HasSubstr("but no export of Nsight Systems (nsys export"));
  EXPECT_THAT(told("cut.sqlite"), HasSubstr("database disk image is malformed (SQLite): export"));
  EXPECT_THAT(told("missing.sqlite"), HasSubstr("there is no such file"));
}

// What posix.system('id') looks like, as an attacker would write it.
TEST(SnapshotCommands, AFileThatCouldRunCodeIsRefused) {
  const Folder folder;
  write_text(folder / "evil.pickle",
             std::string("\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93."));
  EXPECT_THAT(problem("explain " + (folder / "evil.pickle"), 1),
              HasSubstr("byte 19: opcode STACK_GLOBAL: this file could run code"));
}

}  // namespace
}  // namespace tidemark::cli::snapshot_command_test
