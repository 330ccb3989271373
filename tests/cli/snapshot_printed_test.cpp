// What is printed of a memory snapshot: counts, pools, the stacks of its peak, and what is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/reports/print_snapshot.h"

namespace tidemark::cli::snapshot_printed_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::int64_t mib = 1 << 20;

importers::PoolState pool(std::int64_t reserved, std::int64_t active, std::size_t gaps,
                          std::int64_t largest_gap, std::int64_t unused) {
  importers::PoolState state;
  state.reserved = {reserved};
  state.active = {active};
  state.gaps = gaps;
  state.largest_gap = {largest_gap};
  state.unused = {unused};
  state.segments = 2;
  state.blocks = 1;
  return state;
}

/// Three stacks of 12, 4 and 4 MiB at a peak of 20.
struct Snapshot {
  importers::MemorySnapshot file;
  importers::SnapshotTimeline made;
  importers::SnapshotReport report;

  Snapshot() {
    file.frames = {{"forward", "model.py", 31}, {"main", "train.py", 7}, {"step", "train.py", 9}};
    file.stack_frames = {0, 1, 2, 1, 1};
    file.stack_ends = {0, 2, 4, 5};
    made.trace = std::make_shared<const Trace>();
    made.timeline.duration = Nanoseconds{8'000'000};
    report.events = 2;
    report.duration = Nanoseconds{8'000'000};
    report.peak_time = Nanoseconds{6'000'000};
    report.active_peak = {20 * mib};
    report.allocated_peak = {19 * mib};
    report.reserved_peak = {32 * mib};
    report.requested_at_peak = {18 * mib};
    report.at_peak = pool(32 * mib, 20 * mib, 3, 8 * mib, 2 * mib);
    report.at_end = pool(32 * mib, 32 * mib, 0, 0, 0);
    report.alive = {{importers::StackId{1}, 1, {12 * mib}},
                    {importers::StackId{2}, 3, {4 * mib}},
                    {importers::StackId{3}, 1, {4 * mib}}};
  }
  SnapshotFacts facts() const { return {"s.pickle", file, made, report}; }
  std::string table(std::size_t top = 9) const { return snapshot_table(facts(), Style(), top); }
};

TEST(SnapshotTable, CountsWhatItHas) {
  Snapshot snapshot;
  EXPECT_THAT(snapshot.table(),
              AllOf(StartsWith("s.pickle: memory snapshot of cuda:0, 2 events in 8.00 ms, 0 blocks "
                               "in use before the first\npeak: active 20.00 MiB · allocated 19.00 "
                               "· reserved 32.00 MiB\n"),
                    HasSubstr("The peak, 20.0 MiB, is at 6.00 ms of 8.00 ms; 18.0 MiB of it were "
                              "asked for.\n"),
                    Not(HasSubstr("allocator:"))));
  snapshot.report.events = snapshot.report.blocks_before = 1;
  snapshot.file.settings_text = "expandable_segments:True";
  EXPECT_THAT(snapshot.table(), AllOf(HasSubstr(", 1 event in 8.00 ms, 1 block in use"),
                                      HasSubstr("\nallocator: expandable_segments:True\n"),
                                      Not(HasSubstr("It has no events"))));
  snapshot.report.events = 0;
  EXPECT_THAT(snapshot.table(), HasSubstr("\nIt has no events (call torch.cuda.memory."));
}

TEST(SnapshotTable, AddsUpThePools) {
  EXPECT_THAT(Snapshot().table(),
              AllOf(HasSubstr("The pool at the peak:\n  reserved 32.00 MiB in 2 segments = 20.00 "
                              "MiB in 1 block + 12.00 MiB free (37.5 %), in 3 gaps, the largest "
                              "8.00 MiB; 2.00 MiB in segments with nothing in them\n"),
                    HasSubstr("The pool at the end:\n  reserved 32.00 MiB in 2 segments = 32.00 "
                              "MiB in 1 block + 0.00 MiB free\n")));
}

TEST(SnapshotTable, SharesThePeakAmongItsStacks) {
  const std::string all = Snapshot().table();
  EXPECT_THAT(all, AllOf(HasSubstr("\n12.00  60.0 %       1  forward (model.py:31)\n"),
                         HasSubstr("\n 4.00  20.0 %       3  step (train.py:9)\n"),
                         HasSubstr("\n 4.00  20.0 %       1  main (train.py:7)\n"),
                         HasSubstr("by 3 stacks that allocated it:"), Not(HasSubstr(" more"))));
  const std::string one = Snapshot().table(1);
  EXPECT_THAT(one, AllOf(HasSubstr("… and 2 more, 8.00 MiB (--top N shows more)\n"),
                         Not(HasSubstr("train.py"))));
}

TEST(SnapshotTable, TellsWhatFailed) {
  Snapshot snapshot;
  EXPECT_THAT(snapshot.table(), Not(HasSubstr("Out of memory")));
  snapshot.report.failures = {{Nanoseconds{7'000'000},
                               {64 * mib},
                               {5 * mib},
                               importers::StackId{2},
                               pool(16 * mib, 12 * mib, 1, 4 * mib, 0)}};
  EXPECT_THAT(
      snapshot.table(),
      HasSubstr("\nOut of memory at 7.00 ms: 64.0 MiB were asked for by step (train.py:9); "
                "the device had 5.00 MiB left.\n  reserved 16.00 MiB in 2 segments = 12.00 "
                "MiB in 1 block + 4.00 MiB free (25.0 %), in 1 gap, the largest 4.00 MiB\n"));
}

TEST(SnapshotTable, NotesWhatItLeavesOut) {
  Snapshot snapshot;
  snapshot.report.devices_with_events = 1;
  EXPECT_THAT(snapshot.table(), Not(HasSubstr("note:")));
  snapshot.report.devices_with_events = 2;
  snapshot.report.unknown_events = 1;
  snapshot.report.contradictions = 2;
  EXPECT_THAT(
      snapshot.table(),
      AllOf(HasSubstr("note: 2 devices were recorded; this is the one with most events\n"),
            HasSubstr("note: 1 event of a kind that a newer PyTorch has brought were left out\n"),
            HasSubstr("note: 2 events of what is not there were left out (the recording has "
                      "holes)\n")));
}

TEST(SnapshotStacks, BeginAtTheOutermostFrame) {
  Snapshot snapshot;
  snapshot.report.alive.push_back({importers::no_stack, 1, {5}});
  snapshot.file.frames[2].function = "st\nep";
  const std::string stacks = snapshot_stacks(snapshot.facts());
  EXPECT_THAT(stacks, StartsWith("main (train.py:7);forward (model.py:31) 12582912\n"
                                 "main (train.py:7);st?ep (train.py:9) 4194304\n"
                                 "main (train.py:7) 4194304\n"));
  EXPECT_EQ(std::ranges::count(stacks, '\n'), 4);
  EXPECT_TRUE(stacks.ends_with(" 5\n")) << stacks;
}

TEST(SnapshotJson, IsExact) {
  Snapshot snapshot;
  snapshot.file.settings_text = "expandable_segments:True";
  snapshot.report.device = 1;
  snapshot.report.devices_with_events = 3;
  snapshot.report.unknown_events = 4;
  snapshot.report.contradictions = 5;
  snapshot.report.blocks_before = 6;
  snapshot.report.failures = {{Nanoseconds{7'000'000},
                               {64 * mib},
                               {5 * mib},
                               importers::StackId{2},
                               pool(16 * mib, 12 * mib, 1, 4 * mib, 0)}};
  nlohmann::json json = nlohmann::json::parse(snapshot_json(snapshot.facts()));
  EXPECT_EQ(json.at("at_peak"), nlohmann::json::parse(R"({"reserved_bytes": 33554432,
      "active_bytes": 20971520, "free_bytes": 12582912, "largest_gap_bytes": 8388608,
      "unused_segment_bytes": 2097152, "segments": 2, "blocks": 1, "gaps": 3})"));
  EXPECT_EQ(json.at("at_end").at("active_bytes"), 32 * mib);
  ASSERT_EQ(json.at("alive").size(), 3u);
  EXPECT_EQ(json.at("alive").at(1), nlohmann::json::parse(R"json({"site": "step (train.py:9)",
      "bytes": 4194304, "blocks": 3,
      "frames": [{"function": "step", "file": "train.py", "line": 9},
                 {"function": "main", "file": "train.py", "line": 7}]})json"));
  ASSERT_EQ(json.at("out_of_memory").size(), 1u);
  const nlohmann::json failure = json.at("out_of_memory").at(0);
  EXPECT_EQ(failure.at("time_ns"), 7'000'000);
  EXPECT_EQ(failure.at("requested_bytes"), 64 * mib);
  EXPECT_EQ(failure.at("device_free_bytes"), 5 * mib);
  EXPECT_EQ(failure.at("pool").at("reserved_bytes"), 16 * mib);
  EXPECT_EQ(failure.at("frames").size(), 2u);
  for (const char* key : {"at_peak", "at_end", "alive", "out_of_memory", "tidemark"})
    json.erase(key);
  EXPECT_EQ(json, nlohmann::json::parse(R"({"format": "tidemark-snapshot-1", "file": "s.pickle",
      "device": 1, "devices_with_events": 3, "allocator_settings": "expandable_segments:True",
      "events": 2, "unknown_events": 4, "contradictions": 5, "blocks_before": 6,
      "duration_ns": 8000000, "active_peak_bytes": 20971520, "allocated_peak_bytes": 19922944,
      "reserved_peak_bytes": 33554432, "requested_at_peak_bytes": 18874368,
      "peak_time_ns": 6000000,
      "measured": {"allocated_peak_bytes": 19922944, "reserved_peak_bytes": 33554432}})"));
}

}  // namespace
}  // namespace tidemark::cli::snapshot_printed_test
