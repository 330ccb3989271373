// `tidemark record` end to end: a program that seems to use a GPU, the library that is loaded into
// it, a CUPTI without a GPU, and the file that comes of it. And: that the program ends as it would
// alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "importers/run_file.h"
#include "tests/cli/program.h"

namespace tidemark::cli::record_command_test {
namespace {

using importers::RunFile;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string target = TIDEMARK_FAKE_LIBRARIES "/fake_target";

Surroundings with_cupti(const std::string& file, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "TIDEMARK_CUPTI=" + file});
  return {.environment = std::move(more)};
}
const Surroundings fake = with_cupti(TIDEMARK_FAKE_LIBRARIES "/fake_cupti.so");

/// A recording of the target's actions, in a folder of its own.
struct Recorded {
  explicit Recorded(const std::string& actions, const Surroundings& around = fake) {
    std::vector<std::string> command = {"record", "-o", path(), "--", target};
    for (const std::string& word : words(actions)) command.push_back(word);
    outcome = tidemark_with(command, around);
  }
  std::string path() const { return folder / "run.timeline"; }
  RunFile file() const { return importers::read_run_file(path()); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }

  Folder folder;
  Outcome outcome;
};

TEST(Record, KeepsWhatCuptiAndNvtxSaw) {
  const Recorded recorded(
      "cuda nvtx range=forward kernels=2 end copy allocate=1048576 pool free exit=0");
  EXPECT_EQ(recorded.outcome.exit_code, 0) << recorded.outcome.errors;
  const RunFile run = recorded.file();
  EXPECT_EQ(run.cupti_version, 130001);
  EXPECT_EQ(run.command.front(), target);
  ASSERT_EQ(run.kernels.size(), 2u);
  EXPECT_EQ(run.names[run.kernels[0].name], "_Z4gemmIfEvPT_");
  EXPECT_EQ(run.kernels[0].end - run.kernels[0].begin, 400u);
  EXPECT_EQ(run.kernels[0].registers, 64u);
  ASSERT_EQ(run.transfers.size(), 2u);
  EXPECT_EQ(run.transfers[0].bytes, 4096u);
  EXPECT_EQ(run.transfers[1].kind, importers::memset_transfer);
  ASSERT_EQ(run.memory.size(), 2u);
  EXPECT_EQ(run.memory[0].bytes, 1048576u);
  EXPECT_EQ(run.memory[1].operation, 2);
  ASSERT_EQ(run.pools.size(), 1u);
  EXPECT_EQ(run.pools[0].size, 1u << 25);
  ASSERT_EQ(run.ranges.size(), 1u);
  EXPECT_EQ(run.names[run.ranges[0].name], "forward");
  EXPECT_EQ(run.launches.size(), 2u);
  ASSERT_TRUE(run.end);
  EXPECT_EQ(run.end->signal, 0u);
  EXPECT_THAT(importers::defects(run), IsEmpty());
  EXPECT_THAT(recorded.files(), ElementsAre("run.timeline"));
}

TEST(Record, ReadsTheRecordsOfCuda12) {
  const Recorded recorded("cupti=22 cuda kernels=3 copy allocate=4096");
  const RunFile run = recorded.file();
  EXPECT_EQ(run.cupti_version, 22);
  EXPECT_EQ(run.kernels.size(), 3u);
  EXPECT_EQ(run.transfers.size(), 2u);
  EXPECT_EQ(run.memory.size(), 1u);
}

TEST(Record, RefusesCuptiOfCuda11InOneLine) {
  const Recorded recorded("cupti=17 cuda kernels=3 exit=5");
  EXPECT_EQ(recorded.outcome.exit_code, 5);
  EXPECT_THAT(recorded.file().notes,
              Contains(HasSubstr("the records of CUDA 12 and 13 are known")));
}

TEST(Record, ViewsTakeIt) {
  const Recorded recorded("cuda nvtx range=forward kernels=2 end copy allocate=1048576");
  const Outcome table = tidemark("explain " + recorded.path());
  EXPECT_EQ(table.exit_code, 0) << table.errors;
  EXPECT_THAT(table.output, HasSubstr("2 kernels, 2 copies and fills"));
  EXPECT_THAT(table.output, HasSubstr("gemm<float>"));
  EXPECT_THAT(table.output, HasSubstr("copy to device (pageable)"));
  const Outcome json = tidemark("explain --format json " + recorded.path());
  const auto parsed = nlohmann::json::parse(json.output);
  EXPECT_EQ(parsed["work"][0]["time_ns"], 800);
  EXPECT_EQ(parsed["peak_bytes"], 1048576);
  EXPECT_EQ(parsed["ranges"][0]["name"], "forward");
  const Outcome diff = tidemark("diff " + recorded.path() + " " + recorded.path());
  EXPECT_EQ(diff.exit_code, 0) << diff.errors;
  EXPECT_THAT(diff.output, HasSubstr("run.timeline · recorded · measured on cuda:0"));
#ifdef TIDEMARK_HAVE_GUI
  const Outcome view =
      tidemark("view " + recorded.path() + " --screenshot " + (recorded.folder / "run.svg"));
  EXPECT_EQ(view.exit_code, 0) << view.errors;
#endif
  EXPECT_EQ(tidemark("compare " + recorded.path()).exit_code, 2);
}

TEST(Record, ExitCodesAndSignalsAreTheProgramsOwn) {
  for (const int code : {0, 1, 3, 77, 255})
    EXPECT_EQ(Recorded("cuda kernels=1 exit=" + std::to_string(code)).outcome.exit_code, code);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGABRT, SIGSEGV, SIGKILL, SIGUSR1}) {
    if (is_sanitized && signal == SIGSEGV) continue;  // the sanitizer's
    const Recorded recorded("cuda kernels=1 signal=" + std::to_string(signal));
    EXPECT_EQ(recorded.outcome.exit_code, 128 + signal) << recorded.outcome.errors;
    EXPECT_EQ(recorded.file().command.front(), target);
  }
}

TEST(Record, ASignalThatEndsTheProgramLetsItsRecordsOut) {
  for (const char* action : {"signal=15", "signal=2", "signal=6"}) {
    const RunFile run = Recorded(std::string("cuda kernels=5 ") + action).file();
    EXPECT_EQ(run.kernels.size(), 5u) << action;
    ASSERT_TRUE(run.end) << action;
    EXPECT_EQ("signal=" + std::to_string(run.end->signal), action);
    EXPECT_THAT(importers::defects(run), Contains(HasSubstr("ended by signal")));
  }
}

TEST(Record, ACrashLetsItsRecordsOut) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizer has this signal";
  const Recorded recorded("cuda kernels=5 crash");
  EXPECT_EQ(recorded.outcome.exit_code, 128 + SIGSEGV);
  EXPECT_EQ(recorded.file().kernels.size(), 5u);
  EXPECT_EQ(recorded.file().end->signal, static_cast<std::uint32_t>(SIGSEGV));
}

TEST(Record, AKilledProgramLeavesWhatWasWritten) {
  const Recorded killed("cuda kernels=5 signal=9");
  EXPECT_FALSE(killed.file().end);
  EXPECT_THAT(killed.outcome.errors, HasSubstr("was killed"));
  const Recorded left("cuda kernels=5 _exit=4");
  EXPECT_EQ(left.outcome.exit_code, 4);
  EXPECT_FALSE(left.file().end);
}

TEST(Record, AFullDiskEndsTheRecordingNotTheProgram) {
  const Recorded recorded("cuda limit=3000 kernels=500 exit=6");
  EXPECT_EQ(recorded.outcome.exit_code, 6) << recorded.outcome.errors;
  const RunFile run = recorded.file();
  ASSERT_TRUE(run.end);
  EXPECT_EQ(run.end->error, static_cast<std::uint32_t>(EFBIG));
  EXPECT_THAT(recorded.outcome.errors, HasSubstr("was cut off while the process"));
}

TEST(Record, WithoutCuptiTheFileSaysSo) {
  const Recorded recorded("cuda exit=2", with_cupti("/nowhere/libcupti.so"));
  EXPECT_EQ(recorded.outcome.exit_code, 2);
  EXPECT_THAT(recorded.file().notes, ElementsAre(HasSubstr("CUPTI cannot be loaded")));
  EXPECT_EQ(tidemark("explain " + recorded.path()).exit_code, 0);
  const Recorded off("cuda exit=2", with_cupti("off"));
  EXPECT_THAT(off.file().notes, ElementsAre("TIDEMARK_CUPTI says off"));
}

// The recording takes the place of its file: of a device it would be gone.
TEST(Record, ADeviceIsNoFileToReplace) {
  const Outcome outcome = tidemark("record -o /dev/null -- true");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("--output: '/dev/null' is no ordinary file"));
}

TEST(Record, WithoutAGpuTheFileSaysSo) {
  const Recorded recorded("exit=3");
  EXPECT_EQ(recorded.outcome.exit_code, 3);
  EXPECT_THAT(recorded.outcome.errors, testing::Not(HasSubstr("killed")));
  EXPECT_THAT(recorded.file().notes, ElementsAre(HasSubstr("nothing started CUDA")));
  EXPECT_EQ(tidemark("explain " + recorded.path()).exit_code, 0);
}

TEST(Record, AnotherClientOfCuptiIsSaidInOneLine) {
  const Recorded refused("refuse=39 cuda kernels=1");
  EXPECT_THAT(refused.file().notes,
              ElementsAre(HasSubstr("another profiler or debugger holds it")));
  const Recorded taken("cuda kernels=4 take-over kernels=4");
  EXPECT_THAT(taken.outcome.errors, HasSubstr("such as torch.profiler, took over"));
}

TEST(Record, DroppedRecordsAreCounted) {
  const Recorded recorded("cuda dropped=12 kernels=1");
  EXPECT_THAT(recorded.outcome.errors, HasSubstr("12 RECORDS WERE DROPPED"));
}

TEST(Record, AnotherInjectedProfilerKeepsItsPlace) {
  const Recorded recorded("print=CUDA_INJECTION64_PATH",
                          with_cupti("off", {"CUDA_INJECTION64_PATH=/opt/nsys.so"}));
  EXPECT_EQ(recorded.outcome.output, "/opt/nsys.so\n");
  EXPECT_THAT(recorded.outcome.errors, HasSubstr("CUDA_INJECTION64_PATH is set already"));
}

TEST(Record, AForkedChildWritesNothing) {
  const Recorded recorded("cuda nvtx kernels=1 fork kernels=1 exit=0");
  EXPECT_EQ(recorded.file().kernels.size(), 2u);
  EXPECT_THAT(recorded.file().ranges, IsEmpty());
}

TEST(Record, EachProcessThatUsesAGpuHasItsFile) {
  const Folder folder;
  const Outcome outcome =
      tidemark_with({"record", "-o", folder / "a.run", "--", "/bin/sh", "-c",
                     "\"$0\" cuda kernels=1; \"$0\" cuda kernels=2; \"$0\" exit=0; exit 9", target},
                    fake);
  EXPECT_EQ(outcome.exit_code, 9) << outcome.errors;
  EXPECT_EQ(importers::read_run_file(folder / "a.run").kernels.size(), 1u);
  EXPECT_EQ(importers::read_run_file(folder / "a.2.run").kernels.size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.3.run"));
}

// Ctrl-C goes to both, kill to whom it names: the target gets it once, and ends both.
TEST(Record, WhatKillSendsToItReachesTheProgram) {
  const Folder folder;
  std::thread sender([&] {
    for (int i = 0; i < 10'000 && !std::filesystem::exists(folder / "started"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::string pid = file_text(folder / "pid");
    ::kill(static_cast<pid_t>(std::stoi(pid)), SIGTERM);
  });
  const Outcome outcome =
      run_command({"/bin/sh", "-c", "echo $$ > " + (folder / "pid") + "; exec \"$@\"", "sh",
                   TIDEMARK_PROGRAM, "record", "-o", folder / "run.timeline", "--", target, "cuda",
                   "kernels=3", "touch=" + (folder / "started"), "sleep"},
                  fake);
  sender.join();
  EXPECT_EQ(outcome.exit_code, 128 + SIGTERM) << outcome.errors;
  EXPECT_EQ(importers::read_run_file(folder / "run.timeline").kernels.size(), 3u);
}

TEST(Record, MistakesAreSaidBeforeAnythingRuns) {
  const Outcome nothing = tidemark("record -o run.timeline");
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.errors, HasSubstr("need a program behind --"));
  EXPECT_EQ(tidemark("record python train.py").exit_code, 2);
  const Folder folder;
  const Outcome unknown = tidemark_with({"record", "-o", folder / "a", "--", "no-such-program"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.errors, HasSubstr("cannot run 'no-such-program'"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(tidemark("record -o /nowhere/run.timeline -- true").exit_code, 1);
}

TEST(Record, QuietSaysNothing) {
  const Folder folder;
  const Outcome outcome =
      tidemark_with({"record", "-q", "-o", folder / "a", "--", target, "print=HOME"}, fake);
  EXPECT_EQ(outcome.errors, "");
  EXPECT_EQ(outcome.output, "-\n");
}

}  // namespace
}  // namespace tidemark::cli::record_command_test
