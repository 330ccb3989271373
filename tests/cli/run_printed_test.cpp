// What is printed of a recorded run: what it was, what took the GPU's time, and what is left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/print_run.h"

namespace tidemark::cli::run_printed_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A run of 10 ms with a stream idle for 4 ms, two busy for 1, three kernels and two ranges.
struct Recorded {
  importers::RunFile file;
  importers::RunTimeline made;

  Recorded() {
    file.command = {"python", "train.py"};
    file.kernels.resize(3);
    file.transfers.resize(2);
    made.recorded.device = "NVIDIA A100";
    made.recorded.timeline.duration = Nanoseconds{10'000'000};
    made.recorded.timeline.idle = Nanoseconds{4'000'000};
    made.recorded.timeline.overlap = Nanoseconds{1'000'000};
    made.work = {{"gemm", 2, Nanoseconds{6'000'000}, {}},
                 {"copy to the host", 1, Nanoseconds{3'000'000}, {Bytes{2048}}},
                 {"relu", 1, Nanoseconds{1'000'000}, {}}};
    made.ranges = {{"forward", 3, Nanoseconds{5'000'000}, Nanoseconds{4'000'000}},
                   {"data", 1, Nanoseconds{2'000'000}, {}}};
  }
  std::string table(std::size_t top = 9) const {
    return run_table({"run.timeline", file, made}, Style(), top);
  }
};

TEST(RunTable, SaysWhatRanAndHowBusyTheDeviceWas) {
  EXPECT_THAT(Recorded().table(),
              StartsWith("run.timeline: python train.py\n"
                         "NVIDIA A100, 10.0 ms: 3 kernels, 2 copies and fills, a stream busy for "
                         "60.0 %, two or more for 10.0 %\n"));
}

TEST(RunTable, OfNothingHasNoShares) {
  Recorded run;
  run.file.command.clear();
  run.made = {};
  EXPECT_THAT(run.table(), HasSubstr(": an unknown program\n"));
  EXPECT_THAT(run.table(), HasSubstr("a stream busy for 0.0 %, two or more for 0.0 %\n"));
  EXPECT_THAT(run.table(), Not(HasSubstr("Where the GPU's time went")));
  EXPECT_THAT(run.table(), Not(HasSubstr("Ranges")));
  EXPECT_THAT(run.table(), Not(HasSubstr("Memory")));
}

TEST(RunTable, HasTheSharesOfTheTimeOfAllWork) {
  const std::string table = Recorded().table();
  EXPECT_THAT(table, HasSubstr("\n6.00 ms  60.0 %      2            gemm\n"));
  EXPECT_THAT(table, HasSubstr("\n3.00 ms  30.0 %      1  2.00 KiB  copy to the host\n"));
  EXPECT_THAT(table, HasSubstr("\n1.00 ms  10.0 %      1            relu\n"));
  EXPECT_THAT(table, HasSubstr("\n4.00 ms  5.00 ms      3  forward\n"));
  EXPECT_THAT(table, Not(HasSubstr("… and")));
}

TEST(RunTable, SaysWhatItLeavesOut) {
  const std::string one = Recorded().table(1);
  EXPECT_THAT(one, HasSubstr("\n… and 2 more, 4.00 ms (--top N shows more)\n"));
  EXPECT_THAT(one, HasSubstr("forward\n… and 1 more (--top N shows more)\n"));
  EXPECT_THAT(one, Not(HasSubstr("relu")));
  EXPECT_THAT(one, Not(HasSubstr("data")));
  EXPECT_THAT(Recorded().table(2), HasSubstr("\n… and 1 more, 1.00 ms (--top N shows more)\n"));
  EXPECT_THAT(Recorded().table(2), HasSubstr("data\n"));
}

TEST(RunTable, NotesWhatTheRecordingLacks) {
  Recorded run;
  run.made.lacks = {"it has no end", "2 kernels have no times"};
  EXPECT_THAT(run.table(), HasSubstr("\nnote: it has no end\nnote: 2 kernels have no times\n"));
}

// Beside PyTorch's own memory, what goes past it; without, what the driver was asked for.
TEST(RunTable, SaysWhoseMemoryItIs) {
  Recorded run;
  run.made.memory.emplace();
  EXPECT_THAT(run.table(), Not(HasSubstr("Memory")));
  run.made.outside = Bytes{3 << 20};
  EXPECT_THAT(run.table(),
              EndsWith("\nMemory that is not of PyTorch's allocator: 3.00 MiB at most\n"));
}

// --- for programs -------------------------------------------------------------------------------

nlohmann::json json_of(const Recorded& run) {
  return nlohmann::json::parse(run_json({"run.timeline", run.file, run.made}));
}

TEST(RunJson, IsExact) {
  Recorded run;
  run.file.pid = 17;
  run.file.cupti_version = 130001;
  run.made.outside = Bytes{5};
  run.made.lacks = {"it has no end"};
  run.made.marks = {Nanoseconds{7}, Nanoseconds{9}};
  nlohmann::json json = json_of(run);
  EXPECT_EQ(json.at("work").size(), 3u);
  EXPECT_EQ(json.at("work").at(1), nlohmann::json::parse(R"({"name": "copy to the host",
      "count": 1, "time_ns": 3000000, "bytes": 2048})"));
  EXPECT_EQ(json.at("ranges").at(0), nlohmann::json::parse(R"({"name": "forward", "count": 3,
      "host_ns": 5000000, "gpu_ns": 4000000})"));
  for (const char* key : {"work", "ranges", "tidemark"}) json.erase(key);
  EXPECT_EQ(json, nlohmann::json::parse(R"({"format": "tidemark-run-1", "file": "run.timeline",
      "command": ["python", "train.py"], "pid": 17, "cupti": 130001, "device": "NVIDIA A100",
      "duration_ns": 10000000, "idle_ns": 4000000, "overlap_ns": 1000000, "kernels": 3,
      "transfers": 2, "peak_bytes": 0, "outside_bytes": 5, "notes": ["it has no end"],
      "marks_ns": [7, 9]})"));
}

// Arguments and names of files are bytes: what is no UTF-8 is shown as U+FFFD.
TEST(RunJson, ReplacesWhatIsNoUtf8) {
  Recorded run;
  run.file.command = {"train", "caf\xe9"};
  EXPECT_EQ(json_of(run).at("command").at(1), "caf\uFFFD");
}

}  // namespace
}  // namespace tidemark::cli::run_printed_test
