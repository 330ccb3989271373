// Recorded runs made by hand: what a reader takes, what it refuses, and the timeline that comes of
// it.
#include "importers/run_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "importers/run_append.h"
#include "importers/run_timeline.h"
#include "importers/stack_category.h"
#include "importers/timeline_window.h"
#include "tests/support/own_folder.h"

namespace tidemark::importers::run_file_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t start = 1'700'000'000'000'000'000;  // in November 2023

std::string bytes_of(const auto& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string chunk(std::uint32_t kind, const std::string& bytes) {
  return bytes_of(ChunkHead{kind, static_cast<std::uint32_t>(bytes.size())}) + bytes;
}
std::string name(const std::string& text) {
  return bytes_of(static_cast<std::uint32_t>(text.size())) + text;
}
std::string kernel(std::uint64_t begin, std::uint64_t end, std::uint32_t name_number,
                   std::uint32_t stream = 7, std::uint32_t correlation = 0) {
  KernelRow row;
  row.begin = start + begin, row.end = start + end;
  row.name = name_number, row.stream = stream, row.correlation = correlation;
  return bytes_of(row);
}
std::string memory(std::uint64_t time, std::uint8_t operation, std::uint64_t address,
                   std::uint64_t bytes) {
  MemoryRow row;
  row.time = start + time, row.address = address, row.bytes = bytes;
  row.operation = operation, row.memory = 3;
  return bytes_of(row);
}

const std::string magic(run_magic);
const std::string two_kernels =
    magic +
    chunk(chunk_process, R"({"pid": 17, "start_ns": 1, "command": ["python", "train.py"]})") +
    chunk(chunk_names, name("_Z4gemmIfEvPT_") + name("forward")) +
    chunk(chunk_kernels, kernel(1000, 1400, 0, 7, 1) + kernel(1300, 2000, 0, 9, 2)) +
    chunk(chunk_memory, memory(0, 1, 4096, 512) + memory(1500, 2, 4096, 0)) +
    chunk(chunk_ranges, bytes_of(RangeRow{start + 500, start + 900, 1, 33})) +
    chunk(chunk_launches, bytes_of(LaunchRow{start + 600, start + 610, 33, 1}) +
                              bytes_of(LaunchRow{start + 950, start + 960, 33, 2})) +
    chunk(chunk_end, bytes_of(EndRow{.time = start + 3000}));

RunFile read(const std::string& bytes) {
  std::istringstream file(bytes);
  return read_run_file(file, "run.timeline");
}

std::string problem_of(const std::string& bytes) {
  try {
    timeline_of(read(bytes), "run");
  } catch (const InputError& error) {
    return error.what();
  }
  return "(none)";
}

TEST(RunFile, RowsComeBackAsTheyWereWritten) {
  const RunFile run = read(two_kernels);
  EXPECT_EQ(run.pid, 17);
  EXPECT_THAT(run.command, ElementsAre("python", "train.py"));
  ASSERT_EQ(run.kernels.size(), 2u);
  EXPECT_EQ(run.kernels[1].end, start + 2000);
  EXPECT_EQ(run.names[run.ranges[0].name], "forward");
  EXPECT_TRUE(run.end);
  EXPECT_THAT(defects(run), IsEmpty());
}

TEST(RunFile, ATimelineBeginsWithTheFirstThingThatHappened) {
  const RunTimeline made = timeline_of(read(two_kernels), "run");
  const Timeline& timeline = made.recorded.timeline;
  ASSERT_EQ(timeline.runs.size(), 2u);
  EXPECT_EQ(timeline.runs[0].begin, Nanoseconds{1000});
  EXPECT_EQ(timeline.runs[1].end, Nanoseconds{2000});
  EXPECT_NE(timeline.runs[0].stream, timeline.runs[1].stream);
  EXPECT_EQ(timeline.duration, Nanoseconds{2000});
  EXPECT_EQ(timeline.idle, Nanoseconds{1000});
  EXPECT_EQ(timeline.overlap, Nanoseconds{100});  // from 1300 to 1400
  EXPECT_EQ(peak(made.recorded.schedule, timeline).bytes, Bytes{512});
  EXPECT_EQ(made.recorded.trace->ops.front().name, "gemm<float>");
  EXPECT_EQ(made.recorded.device, "cuda:0");
}

TEST(RunFile, KernelsBelongToTheRangeThatLaunchedThem) {
  const RunTimeline made = timeline_of(read(two_kernels), "run");
  ASSERT_EQ(made.ranges.size(), 1u);
  EXPECT_EQ(made.ranges[0].host, Nanoseconds{400});
  EXPECT_EQ(made.ranges[0].gpu, Nanoseconds{400});  // the second was launched after its end
}

// Two ranges of one name are one row; those with most time on the GPU stand first, then on the
// host.
TEST(RunFile, RangesAreInTheOrderOfTheirTime) {
  const auto range = [](std::uint64_t begin, std::uint64_t end, std::uint32_t name_number) {
    return bytes_of(RangeRow{start + begin, start + end, name_number, 33});
  };
  const auto launch = [](std::uint64_t at, std::uint32_t correlation) {
    return bytes_of(LaunchRow{start + at, start + at + 5, 33, correlation});
  };
  KernelRow elsewhere;  // a GPU that does less
  elsewhere.begin = start + 1000, elsewhere.end = start + 1001;
  elsewhere.device = 1, elsewhere.correlation = 3;
  const std::string run =
      magic + chunk(chunk_process, R"({"pid": 17, "start_ns": 1, "command": []})") +
      chunk(chunk_names,
            name("kernel") + name("short") + name("long") + name("idle") + name("none")) +
      chunk(chunk_kernels,
            kernel(1000, 1100, 0, 7, 1) + kernel(1200, 1500, 0, 7, 2) + bytes_of(elsewhere)) +
      chunk(chunk_ranges, range(0, 50, 1) + range(100, 120, 2) + range(200, 290, 3) +
                              range(300, 330, 4) + range(400, 405, 1)) +
      chunk(chunk_launches, launch(10, 1) + launch(110, 2) + launch(310, 3)) +
      chunk(chunk_end, bytes_of(EndRow{.time = start + 3000}));
  const RunTimeline made = timeline_of(read(run), "run");
  std::vector<std::string> rows;
  for (const RunRange& one : made.ranges)
    rows.push_back(
        fmt::format("{} {} {} {}", one.name, one.count, one.host.count(), one.gpu.count()));
  EXPECT_THAT(rows, ElementsAre("long 1 20 300", "short 2 55 100", "idle 1 90 0", "none 1 30 0"));
  EXPECT_EQ(made.devices, 2u);
}

// A process may be killed at any moment, and so may the disk be full.
TEST(RunFile, CutOffAnywhereItIsStillRead) {
  for (std::size_t size = magic.size(); size < two_kernels.size(); ++size) {
    const RunFile run = read(two_kernels.substr(0, size));
    EXPECT_FALSE(run.end);
    EXPECT_EQ(problem_of(two_kernels.substr(0, size)), "(none)") << size;
    EXPECT_THAT(defects(run), Contains(HasSubstr("was killed")));
  }
}

TEST(RunFile, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_THAT(problem_of("TIDEMARK-RUN-99\n"),
              HasSubstr("byte 0: does not begin as a recorded run"));
  EXPECT_THAT(problem_of(magic + chunk(chunk_kernels, "12345")),
              HasSubstr("byte 16: rows of 72 bytes in a chunk of 5"));
  EXPECT_THAT(problem_of(magic + chunk(chunk_kernels, kernel(1, 2, 3))),
              HasSubstr("a kernel has name 3, of 0 that the file holds"));
  EXPECT_THAT(problem_of(magic + chunk(chunk_names, bytes_of(std::uint32_t{99}) + "short")),
              HasSubstr("a name of 99 bytes in a chunk that ends before"));
  EXPECT_THAT(problem_of(magic + bytes_of(ChunkHead{chunk_note, 1 << 30})),
              HasSubstr("a chunk of 1073741824 bytes; need at most 1048576"));
  EXPECT_THAT(problem_of(magic + chunk(chunk_process, "{\"pid\": ")), HasSubstr("run.timeline"));
  EXPECT_THAT(problem_of(magic + chunk(chunk_memory, memory(0, 1, 1, 1) +
                                                         memory(std::uint64_t{1} << 51, 1, 2, 1))),
              HasSubstr("need at most 13 days"));
}

TEST(RunFile, WhatIsMissingIsSaid) {
  const EndRow end{
      .time = 0, .dropped = 3, .names_left = 1, .outstanding = 2, .signal = 15, .error = ENOSPC};
  const RunFile run =
      read(magic + chunk(chunk_names, name("k")) + chunk(chunk_kernels, bytes_of(KernelRow{})) +
           chunk(chunk_kind("NEWS"), "?") + chunk(chunk_end, bytes_of(end)));
  EXPECT_THAT(defects(run), ElementsAre(HasSubstr("signal 15"), HasSubstr("No space left"),
                                        HasSubstr("3 RECORDS"), HasSubstr("torch.profiler"),
                                        HasSubstr("1 ranges"),
                                        HasSubstr("1 kernels and copies could not be timed"),
                                        HasSubstr("1 chunks of a later version")));
}

TEST(RunFile, OfSeveralDevicesTheBusiestIsShown) {
  KernelRow other;
  other.begin = start, other.end = start + 5, other.device = 1;
  const std::string bytes =
      magic + chunk(chunk_names, name("k")) +
      chunk(chunk_kernels, kernel(1, 2, 0) + bytes_of(other) + bytes_of(other));
  const RunTimeline made = timeline_of(read(bytes), "run");
  EXPECT_EQ(made.recorded.device, "cuda:1");
  EXPECT_EQ(made.recorded.timeline.runs.size(), 2u);
  EXPECT_THAT(made.lacks, Contains(HasSubstr("2 devices ran something")));
}

// The snapshot's first event is of a segment, its second, 9 µs later, of a block in it.
TEST(RunFile, PytorchsBlocksAndKernelsAreOnOneClock) {
  const std::string path = TIDEMARK_TESTS_DIR "/reference/snapshots/two_streams.pickle";
  const MemorySnapshot snapshot = read_memory_snapshot(path);
  const std::uint64_t first = static_cast<std::uint64_t>(snapshot.events[0].front().time_us) * 1000;
  KernelRow row;
  row.begin = first + 5000, row.end = first + 6000;
  MemoryRow own;  // of the driver, and not of PyTorch
  own.time = first + 1000, own.address = 99, own.bytes = 4096, own.operation = 1, own.memory = 3;
  MemoryRow segment = own;
  segment.address = static_cast<std::uint64_t>(snapshot.segments.front().address);
  const std::string text = read_file(path, FileKind::Recording);
  const RunFile run =
      read(magic + chunk(chunk_names, name("k")) + chunk(chunk_kernels, bytes_of(row)) +
           chunk(chunk_memory, bytes_of(own) + bytes_of(segment)) +
           chunk(chunk_snapshot, text.substr(0, 1000)) + chunk(chunk_snapshot, text.substr(1000)));
  const RunTimeline made = timeline_of(run, "run");
  ASSERT_TRUE(made.memory);
  EXPECT_EQ(made.recorded.timeline.runs.front().begin, Nanoseconds{5000});
  EXPECT_EQ(made.recorded.timeline.memory[0].time, Nanoseconds{1000});
  EXPECT_EQ(made.recorded.timeline.memory[1].time, Nanoseconds{9000});  // of its second event
  EXPECT_EQ(made.outside, Bytes{4096});
  EXPECT_EQ(peak(made.recorded.schedule, made.recorded.timeline).bytes,
            Bytes{20985344 + 4096});  // two_streams.expected.json, and what is beside it
}

TEST(RunFile, AStackSaysWhatABlockIsFor) {
  MemorySnapshot snapshot;
  const auto stack_of = [&](std::vector<Frame> frames) {
    for (Frame& frame : frames) {
      snapshot.stack_frames.push_back(static_cast<std::uint32_t>(snapshot.frames.size()));
      snapshot.frames.push_back(std::move(frame));
    }
    snapshot.stack_ends.push_back(snapshot.stack_frames.size());
    return static_cast<StackId>(snapshot.stack_ends.size() - 1);
  };
  const Frame user{"<module>", "/me/train.py", 3};
  const std::string site = "/site-packages/torch/";
  EXPECT_EQ(category_of(snapshot, no_stack), Category::Unknown);
  EXPECT_EQ(category_of(snapshot, stack_of({user})), Category::Unknown);
  EXPECT_EQ(category_of(snapshot, stack_of({{"<lambda>", site + "nn/modules/module.py", 1},
                                            {"_apply", site + "nn/modules/module.py", 2},
                                            user})),
            Category::Parameter);
  EXPECT_EQ(category_of(snapshot, stack_of({{"_init_group", site + "optim/adamw.py", 1},
                                            {"step", site + "optim/adamw.py", 2},
                                            user})),
            Category::OptimizerState);
  EXPECT_EQ(category_of(snapshot, stack_of({{"_multi_tensor_adamw", site + "optim/adamw.py", 1},
                                            {"step", site + "optim/adamw.py", 2},
                                            user})),
            Category::Temporary);
  EXPECT_EQ(category_of(snapshot, stack_of({{"forward", site + "nn/modules/linear.py", 1},
                                            {"_call_impl", site + "nn/modules/module.py", 2},
                                            user})),
            Category::Activation);
}

// A run from 1000 to 1400 and one from 1300 to 2000; 512 bytes from 0 to 1500.
TEST(RunFile, AWindowIsATimelineOfItsOwn) {
  const RecordedTimeline all = timeline_of(read(two_kernels), "run").recorded;
  const RecordedTimeline part = window_of(all, Nanoseconds{1200}, Nanoseconds{1700});
  EXPECT_EQ(part.timeline.duration, Nanoseconds{500});
  ASSERT_EQ(part.timeline.runs.size(), 1u);
  EXPECT_EQ(part.timeline.runs[0].begin, Nanoseconds{100});
  EXPECT_EQ(part.timeline.runs[0].end, Nanoseconds{500});
  ASSERT_EQ(part.timeline.memory.size(), 2u);
  EXPECT_EQ(part.timeline.memory[0].time, Nanoseconds{0});
  EXPECT_EQ(part.timeline.memory[1].time, Nanoseconds{300});
  const RecordedTimeline early = window_of(all, Nanoseconds{100}, Nanoseconds{900});
  EXPECT_TRUE(early.timeline.runs.empty());
  EXPECT_TRUE(early.timeline.memory.empty());
  EXPECT_EQ(peak(early.schedule, early.timeline).bytes, Bytes{512});  // all the time
  const RecordedTimeline late = window_of(all, Nanoseconds{1500}, Nanoseconds{2000});
  EXPECT_EQ(peak(late.schedule, late.timeline).bytes, Bytes{0});
}

TEST(RunFile, ABrokenHistoryLeavesTheRest) {
  const RunTimeline made =
      timeline_of(read(two_kernels + chunk(chunk_snapshot, "\x80\x04no pickle")), "run");
  EXPECT_FALSE(made.memory);
  EXPECT_EQ(made.recorded.timeline.runs.size(), 2u);
  EXPECT_THAT(made.lacks, Contains(HasSubstr("PyTorch's memory history")));
}

TEST(RunFile, AddingCutsWhatAKilledProcessLeft) {
  const std::filesystem::path folder = own_folder();
  const std::string path = folder / "run";
  const std::string marks = folder / "marks";
  std::ofstream(path, std::ios::binary) << two_kernels.substr(0, two_kernels.size() - 10);
  std::ofstream(marks, std::ios::binary) << bytes_of(MarkRow{start + 1200}) << "cut";
  EXPECT_EQ(append_to_run(path, {.notes = {"a note"}, .marks_file = marks}), "");
  const RunFile run = read_run_file(path);
  EXPECT_THAT(run.notes, ElementsAre("a note"));
  EXPECT_EQ(run.kernels.size(), 2u);
  EXPECT_EQ(run.cut_bytes, 0u);
  EXPECT_THAT(timeline_of(run, "run").marks, ElementsAre(Nanoseconds{1200}));
  EXPECT_TRUE(has_records(path));
  EXPECT_EQ(append_to_run(folder / "new", {.notes = {"nothing"}}), "");
  EXPECT_TRUE(is_run_file(folder / "new"));
  EXPECT_FALSE(has_records(folder / "new"));
}

}  // namespace
}  // namespace tidemark::importers::run_file_test
