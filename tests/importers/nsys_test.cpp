// Exports of Nsight Systems: tests/reference/nsys/step.sql as a database, and what else files may
// be.
#include "importers/nsys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "importers/nsys_phases.h"
#include "tests/support/own_folder.h"
#include "tests/support/sqlite_database.h"

namespace tidemark::importers::nsys_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

RecordedTimeline read(const std::string& bytes, const std::string& name = "step.sqlite") {
  const std::string path = own_folder() + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_TRUE(is_nsys(path));
  return read_nsys(path, "step");
}

std::string problem_of(const std::string& bytes, const std::string& name = "step.sqlite") {
  try {
    read(bytes, name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(none)";
}

std::vector<std::string> runs_of(const RecordedTimeline& made) {
  std::vector<std::string> runs;
  for (const TimedRun& timed : made.timeline.runs) {
    const Run& run = std::get<Run>(made.schedule.steps[timed.step]);
    runs.push_back(fmt::format("{} {} {}-{}", index(timed.stream), (*made.trace)[run.op].name,
                               timed.begin.count(), timed.end.count()));
  }
  return runs;
}

// Of the process that ran more. Time begins with its copy, at 1000 ns of the session.
TEST(Nsys, KernelsCopiesAndFillsAreRunsOfTheirStreams) {
  const RecordedTimeline made = read(nsys_step("DROP TABLE CUDA_GPU_MEMORY_USAGE_EVENTS;"));
  EXPECT_EQ(made.device, "cuda:0");
  EXPECT_EQ(made.schedule.streams, 2U);
  EXPECT_THAT(runs_of(made),
              ElementsAre("1 copy to device (pageable) 0-400", "0 gemm<float> 200-1200",
                          "0 fill 1300-1350", "0 gemm<float> 2100-3100", "0 update 4100-4600"));
  EXPECT_EQ(made.timeline.duration, Nanoseconds(4600));
  EXPECT_EQ(made.timeline.overlap, Nanoseconds(200));
}

TEST(Nsys, OlderExportsHaveNeitherMangledNamesNorTablesOfNumbers) {
  const std::string older = nsys_step(
      "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN mangledName;"
      "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN greenContextId;"
      "DROP TABLE ENUM_CUDA_MEM_KIND; DROP TABLE ENUM_CUDA_MEMCPY_OPER;"
      "DROP TABLE META_DATA_EXPORT; DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET;"
      "DROP TABLE CUDA_GPU_MEMORY_USAGE_EVENTS;");
  EXPECT_THAT(runs_of(read(older)),
              ElementsAre("1 copy to device (pageable) 0-400", "0 gemm<float> 200-1200",
                          "0 gemm<float> 2100-3100", "0 update 4100-4600"));
}

TEST(Nsys, CudaGraphsAreRunsWhereTheirKernelsWereNotRecorded) {
  const std::string graphs = nsys_step(
      "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL; DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET;"
      "DROP TABLE CUDA_GPU_MEMORY_USAGE_EVENTS;"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER,"
      " graphId INTEGER, contextId INTEGER, streamId INTEGER, globalPid INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES"
      " (1500, 1900, 0, 5, 1, 7, 0x1000001000000);");
  EXPECT_THAT(runs_of(read(graphs)),
              ElementsAre("1 copy to device (pageable) 0-400", "0 CUDA graph 5 500-900"));
}

std::vector<std::string> phases_of(const RecordedTimeline& made) {
  std::vector<std::string> phases;
  for (const TimedRun& timed : made.timeline.runs)
    phases.emplace_back(to_string(std::get<Run>(made.schedule.steps[timed.step]).task));
  return phases;
}

// The gradient's product was launched by the autograd engine's thread, which has no range, while
// the script's was within loss.backward(); the fill between the ranges, within "step 3".
TEST(Nsys, RangesSayThePhaseOfWhatTheyLaunched) {
  EXPECT_THAT(phases_of(read(nsys_step())),
              ElementsAre("forward", "forward", "forward", "backward", "optimizer"));
  EXPECT_THAT(
      phases_of(read(nsys_step("UPDATE NVTX_EVENTS SET text = 'optimizer' WHERE start = 800;"
                               "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = NULL"
                               " WHERE correlationId = 104;"))),
      ElementsAre("optimizer", "forward", "optimizer", "backward", "forward"));
  EXPECT_THAT(phases_of(read(nsys_step("DROP TABLE NVTX_EVENTS;"))),
              testing::Each(std::string("forward")));
}

// As PyTorch and people call them.
TEST(Nsys, APhaseIsAWordOfARangesName) {
  EXPECT_EQ(phase_of("autograd::engine::evaluate_function: MmBackward0, op_id = 3"),
            Task::Backward);
  EXPECT_EQ(phase_of("Optimizer.step#AdamW.step"), Task::Optimizer);
  EXPECT_EQ(phase_of("FSDP::post_forward (layer.0)"), Task::Forward);
  EXPECT_EQ(phase_of("step_bwd"), Task::Backward);
  EXPECT_EQ(phase_of("aten::mm, seq = 4"), std::nullopt);
  EXPECT_EQ(phase_of("feedforward"), std::nullopt);
  EXPECT_EQ(phase_of(""), std::nullopt);
}

std::vector<std::string> memory_of(const RecordedTimeline& made) {
  std::vector<std::string> events;
  for (const MemoryEvent& event : made.timeline.memory) {
    const Buffer& buffer = made.schedule[event.buffer];
    events.push_back(fmt::format("{} {}{} {}", event.time.count(), event.appears ? '+' : '-',
                                 buffer.size.count, (*made.trace)[buffer.tensor].name));
    EXPECT_EQ(buffer.category, Category::Unknown);
  }
  return events;
}

// The timeline begins with the first allocation, at 500 ns of the session. Pinned memory of the
// host is left out, and so is the other process.
TEST(Nsys, WhatWasAskedOfTheDriverIsTheCurve) {
  const RecordedTimeline made = read(nsys_step());
  EXPECT_THAT(memory_of(made), ElementsAre("0 +1048576 (in use before the recording)",
                                           "0 +2097152 (from the driver)",
                                           "200 -1048576 (in use before the recording)",
                                           "600 +20971520 (from a pool of the driver)",
                                           "5200 -20971520 (from a pool of the driver)"));
  EXPECT_EQ(peak(made.schedule, made.timeline).bytes, Bytes{2097152 + 20971520});
  EXPECT_EQ(made.timeline.duration, Nanoseconds(5200));
  EXPECT_EQ(runs_of(made).front(), "1 copy to device (pageable) 500-900");
}

TEST(Nsys, WhatNumbersMeanIsSaidByTheExport) {
  const RecordedTimeline made = read(nsys_step(
      "UPDATE ENUM_CUDA_DEV_MEM_EVENT_OPER SET id = id + 14;"
      "UPDATE CUDA_GPU_MEMORY_USAGE_EVENTS SET memoryOperationType = memoryOperationType + 14;"
      "UPDATE ENUM_CUDA_MEM_KIND SET id = 72 WHERE id = 2;"
      "UPDATE CUDA_GPU_MEMORY_USAGE_EVENTS SET memKind = 72 WHERE memKind = 2;"));
  EXPECT_EQ(memory_of(made), memory_of(read(nsys_step())));
}

// As some versions write it: a list of allocations, all at the same time, 0.
TEST(Nsys, MemoryWithoutTimesIsNoCurve) {
  const RecordedTimeline made =
      read(nsys_step("UPDATE CUDA_GPU_MEMORY_USAGE_EVENTS SET start = 0;"));
  EXPECT_TRUE(made.timeline.memory.empty());
  EXPECT_EQ(made.timeline.duration, Nanoseconds(4600));
}

TEST(Nsys, WhatIsMissingOrWrongIsSaid) {
  EXPECT_THAT(problem_of(sqlite_database("CREATE TABLE moz_places (id INTEGER);")),
              AllOf(HasSubstr("step.sqlite: is a database of SQLite, but no export of Nsight"),
                    HasSubstr("nsys export --type sqlite")));
  EXPECT_THAT(problem_of(sqlite_database("CREATE TABLE StringIds (id INTEGER, value TEXT);")),
              HasSubstr("holds no kernel, copy or fill of a GPU (nsys profile --trace=cuda,nvtx)"));
  EXPECT_THAT(
      problem_of(nsys_step("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN end TO stop;")),
      HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL has no column end"));
  EXPECT_THAT(problem_of(nsys_step("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'x';")),
              HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL, row 1: start is no whole number"));
  EXPECT_THAT(problem_of(nsys_step("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET end = start - 1;")),
              HasSubstr("CUPTI_ACTIVITY_KIND_MEMCPY, row 1: end is before start"));
  EXPECT_THAT(problem_of(nsys_step("UPDATE CUPTI_ACTIVITY_KIND_MEMSET SET end = 1 << 55;")),
              HasSubstr("more than 13 days apart"));
  EXPECT_THAT(problem_of(nsys_step("UPDATE CUPTI_ACTIVITY_KIND_MEMSET SET end = 1 << 62;")),
              HasSubstr("CUPTI_ACTIVITY_KIND_MEMSET, row 1: its time is no time of a recording"));
}

TEST(Nsys, NothingOfAFileIsRun) {
  // A view and a virtual table are no tables, a generated column no column.
  EXPECT_THAT(problem_of(sqlite_database("CREATE VIEW StringIds AS SELECT 1 AS id, 'x' AS value;")),
              HasSubstr("no export of Nsight Systems"));
  EXPECT_THAT(problem_of(sqlite_database("CREATE VIRTUAL TABLE StringIds USING fts5(id, value);")),
              HasSubstr("no export of Nsight Systems"));
  EXPECT_THAT(
      problem_of(sqlite_database("CREATE TABLE StringIds (id INTEGER, value TEXT);"
                                 "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER,"
                                 " end AS (start + 1), deviceId INTEGER, streamId INTEGER);")),
      HasSubstr("CUPTI_ACTIVITY_KIND_MEMSET has no column end"));
}

// Wherever a file is cut off, and whatever byte is damaged, it is read or refused.
TEST(Nsys, DamagedFilesAreReadOrRefused) {
  const std::string whole = nsys_step();
  EXPECT_THAT(problem_of(whole.substr(0, 100)), HasSubstr("step.sqlite: "));
  EXPECT_THAT(problem_of(whole.substr(0, whole.size() / 2)),
              HasSubstr("database disk image is malformed (SQLite): export it (again)"));
  for (std::size_t i = 0; i < whole.size(); i += 31) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(~damaged[i]);
    EXPECT_THAT(problem_of(damaged), testing::Not(HasSubstr("\n"))) << i;
  }
}

// Pages of eighty pages, five deep: two rows stand there three thousand million times.
TEST(Nsys, AFileWhosePagesStandInItManyTimesIsGivenUp) {
  std::ifstream file(TIDEMARK_TESTS_DIR "/fuzz/corpus/nsys/much_work.sqlite", std::ios::binary);
  EXPECT_THAT(
      problem_of({std::istreambuf_iterator<char>(file), {}}),
      HasSubstr("takes more work than its size explains: it is damaged: export it (again)"));
}

TEST(Nsys, AFileThatIsNoExportIsToldSo) {
  EXPECT_THAT(problem_of("these are notes, and more than sixteen bytes\n", "notes.sqlite"),
              AllOf(HasSubstr("notes.sqlite: is no database of SQLite: "),
                    HasSubstr("nsys export --type sqlite")));
  EXPECT_THAT(problem_of("QDSTREAM", "report.nsys-rep"),
              AllOf(HasSubstr("is a report of Nsight Systems, which only its own programs read"),
                    HasSubstr("nsys export --type sqlite")));
  EXPECT_THAT(problem_of(nsys_step(), "a step%20#1?.db"), "(none)");
  EXPECT_FALSE(is_nsys(TIDEMARK_TESTS_DIR "/reference/nsys/step.sql"));
  EXPECT_FALSE(is_nsys(TIDEMARK_TESTS_DIR "/reference/snapshots/ring.pickle"));
}

}  // namespace
}  // namespace tidemark::importers::nsys_test
