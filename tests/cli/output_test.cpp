// Where the answer goes: standard output, a file, or a clear line when it cannot go there.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/program.h"

namespace tidemark::cli::output_test {
namespace {

namespace fs = std::filesystem;

TEST(StandardOutput, ThatIsFullIsToldInOneLine) {
  for (const char* arguments : {"compare vit-b-16 --strategies vanilla", "--help", "--version",
                                "devices", "trace vit-ti-16"}) {
    const Outcome outcome = tidemark(arguments, {.output_path = "/dev/full"});
    EXPECT_EQ(outcome.exit_code, 1) << arguments;
    EXPECT_EQ(outcome.errors, "tidemark: standard output: cannot write: No space left on device\n");
  }
}

TEST(StandardOutput, ThatIsClosedIsToldInOneLine) {
  const Outcome outcome = tidemark("devices", {.closes_output = true});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.errors, "tidemark: standard output: cannot write: Bad file descriptor\n");
}

// `true` ends without reading, long before 200 kB of trace are written.
TEST(StandardOutput, WhoseReaderIsGoneIsToldInOneLine) {
  const std::string script = std::string(TIDEMARK_PROGRAM) +
                             " trace vit-b-16 | true; "
                             "echo ${PIPESTATUS[0]}";
  const Outcome outcome = run_command({"/bin/bash", "-c", script});
  EXPECT_EQ(outcome.output, "1\n");
  EXPECT_EQ(outcome.errors, "tidemark: standard output: cannot write: Broken pipe\n");
}

TEST(OutputFile, HoldsWhatStandardOutputWouldShow) {
  const Folder folder;
  for (const char* format : {"table", "json", "csv", "markdown"}) {
    const std::string line = std::string("compare vit-ti-16 --format ") + format;
    std::vector<std::string> with_file = words(line);
    with_file.insert(with_file.end(), {"-o", folder / "report"});
    const Outcome outcome = tidemark_with(with_file);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.output, "");
    EXPECT_EQ(file_text(folder / "report"), tidemark(line).output);
  }
}

TEST(OutputFile, IsLeftAloneWhenTheScenarioIsWrong) {
  const Folder folder;
  write_text(folder / "report", "as before");
  EXPECT_EQ(tidemark_with({"compare", "vit-b-99", "-o", folder / "report"}).exit_code, 2);
  EXPECT_EQ(file_text(folder / "report"), "as before");
}

TEST(OutputFile, ThatCannotBeWrittenLeavesNothingBeside) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const Folder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(tidemark_with({"devices", "-o", folder / "report"}).exit_code, 1);
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(OutputFile, MayBeADevice) {
  EXPECT_EQ(tidemark_with({"devices", "-o", "/dev/null"}).exit_code, 0);
  const Outcome full = tidemark_with({"devices", "-o", "/dev/full"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_EQ(full.errors, "tidemark: /dev/full: cannot write: No space left on device\n");
}

TEST(OutputFile, IsWhatQuietDoesNotSilence) {
  const Folder folder;
  const Outcome loud = tidemark_with({"trace", "vit-ti-16", "-o", folder / "a.trace.json"});
  EXPECT_NE(loud.errors.find(" ops, "), std::string::npos);
  const Outcome quiet = tidemark_with({"trace", "vit-ti-16", "-q", "-o", folder / "b.trace.json"});
  EXPECT_EQ(quiet.errors, "");
  EXPECT_EQ(file_text(folder / "a.trace.json"), file_text(folder / "b.trace.json"));
}

TEST(Evaluation, IsTheSameToTheByteEveryTime) {
  for (const char* arguments :
       {"compare swin-t -b 16 --format json", "compare swin-t -b 16", "trace swin-t -b 16",
        "explain swin-t -b 16 --strategy pareprop --format json", "models --format csv"})
    EXPECT_EQ(tidemark(arguments).output, tidemark(arguments).output) << arguments;
}

TEST(Evaluation, DoesNotDependOnTheEnvironmentVariableOfPyTorch) {
  Surroundings around;
  around.environment.emplace_back("PYTORCH_CUDA_ALLOC_CONF=nonsense");
  const std::string line = "compare vit-ti-16 --format json";
  EXPECT_EQ(tidemark(line, around).output, tidemark(line).output);
}

}  // namespace
}  // namespace tidemark::cli::output_test
