// Snapshots of PyTorch's own allocator (scripts/record_snapshots) against its own statistics.
#include "importers/memory_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "importers/snapshot_timeline.h"

namespace tidemark::importers::memory_snapshot_test {
namespace {

using testing::HasSubstr;

const std::string folder = TIDEMARK_TESTS_DIR "/reference/snapshots/";

std::string bytes_of(const std::string& name) {
  std::ifstream file(folder + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

nlohmann::json expected_of(const std::string& name) {
  std::ifstream file(folder + name + ".expected.json");
  return nlohmann::json::parse(file);
}

MemorySnapshot read(const std::string& name) { return read_memory_snapshot(folder + name); }

std::string problem_of(std::string_view bytes) {
  try {
    PickleInput input(bytes, "file");
    timeline_of(read_memory_snapshot(input), "file");
  } catch (const InputError& error) {
    return error.what();
  }
  return "(none)";
}

class Sample : public testing::TestWithParam<const char*> {};

TEST_P(Sample, SumsOfItsSegmentsAreTheStatisticsAtItsEnd) {
  const MemorySnapshot snapshot = read(GetParam() + std::string(".pickle"));
  const auto expected = expected_of(GetParam());
  Bytes allocated, active, requested, reserved;
  for (const SnapshotSegment& segment : snapshot.segments) {
    reserved += segment.size;
    Bytes blocks;
    for (const SnapshotBlock& block : segment.blocks) {
      blocks += block.size;
      if (block.state == BlockState::Allocated) allocated += block.size;
      if (block.state != BlockState::Inactive) active += block.size, requested += block.requested;
    }
    EXPECT_EQ(blocks, segment.size);
  }
  EXPECT_EQ(allocated.count, expected["allocated_bytes.all.current"]);
  EXPECT_EQ(active.count, expected["active_bytes.all.current"]);
  EXPECT_EQ(reserved.count, expected["reserved_bytes.all.current"]);
  EXPECT_EQ(requested.count, expected["requested_bytes.all.current"]);
  EXPECT_EQ(snapshot.segments.size(), expected["segments"]);
}

TEST_P(Sample, EventsAreCounted) {
  const MemorySnapshot snapshot = read(GetParam() + std::string(".pickle"));
  std::map<std::string, int> actions;
  for (const SnapshotEvent& event : snapshot.events.at(0))
    ++actions[std::string(snapshot_actions[static_cast<std::size_t>(event.action)].name)];
  const std::map<std::string, int> expected = expected_of(GetParam())["events"];
  EXPECT_EQ(actions, expected);
}

// The events say what was requested only: that block sizes, and so every peak, come out as the
// allocator counted them shows that splits are understood.
TEST_P(Sample, PeaksAndEndAreTheAllocatorsOwn) {
  const MemorySnapshot snapshot = read(GetParam() + std::string(".pickle"));
  const SnapshotTimeline made = timeline_of(snapshot, GetParam());
  const SnapshotReport report = report_of(snapshot, made);
  const auto expected = expected_of(GetParam());
  EXPECT_EQ(report.active_peak.count, expected["active_bytes.all.peak"]);
  EXPECT_EQ(report.allocated_peak.count, expected["allocated_bytes.all.peak"]);
  EXPECT_EQ(report.reserved_peak.count, expected["reserved_bytes.all.peak"]);
  EXPECT_EQ(report.at_end.active.count, expected["active_bytes.all.current"]);
  EXPECT_EQ(report.at_end.reserved.count, expected["reserved_bytes.all.current"]);
  EXPECT_EQ(report.at_peak.active, report.active_peak);
  EXPECT_EQ(report.contradictions, 0U);
  Bytes alive;
  for (const StackGroup& group : report.alive) alive += group.size;
  EXPECT_EQ(alive, report.active_peak);
}

INSTANTIATE_TEST_SUITE_P(Recorded, Sample, testing::Values("two_streams", "ring", "out_of_memory"),
                         [](const auto& name) { return std::string(name.param); });

// Walks the steps with a set of blocks: nothing appears twice, or where something else is.
TEST(SnapshotTimeline, BlocksNeverOverlap) {
  for (const char* name : {"two_streams.pickle", "ring.pickle", "out_of_memory.pickle"}) {
    const SnapshotTimeline made = timeline_of(read(name), name);
    std::map<std::int64_t, std::int64_t> present;  // offset → end
    const auto put = [&](BufferId id) {
      const std::int64_t begin = made.offsets[index(id)];
      const std::int64_t end = begin + made.schedule[id].size.count;
      EXPECT_LE(end, made.extent.count);
      const auto next = present.lower_bound(begin);
      EXPECT_TRUE(next == present.end() || next->first >= end);
      EXPECT_TRUE(next == present.begin() || std::prev(next)->second <= begin);
      present.emplace(begin, end);
    };
    for (std::size_t b = 0; b < made.schedule.buffers.size(); ++b)
      if (made.schedule.buffers[b].persistent) put(static_cast<BufferId>(b));
    for (const MemoryEvent& event : made.timeline.memory)
      if (event.appears)
        put(event.buffer);
      else
        EXPECT_EQ(present.erase(made.offsets[index(event.buffer)]), 1U);
    EXPECT_EQ(made.offsets.size(), made.schedule.buffers.size());
  }
}

TEST(SnapshotTimeline, AllProtocolsSayTheSame) {
  const SnapshotTimeline first = timeline_of(read("ring.pickle"), "ring");
  for (const char* name :
       {"ring_protocol_2.pickle", "ring_protocol_3.pickle", "ring_protocol_5.pickle"}) {
    const SnapshotTimeline other = timeline_of(read(name), "ring");
    EXPECT_EQ(*other.trace, *first.trace) << name;
    EXPECT_EQ(other.schedule.buffers, first.schedule.buffers) << name;
    EXPECT_EQ(other.offsets, first.offsets) << name;
    EXPECT_EQ(other.stacks, first.stacks) << name;
  }
}

// Of its events only the last 20 were kept: what was there before is in use from the beginning.
TEST(SnapshotTimeline, ARingBeginsWithWhatWasThere) {
  const MemorySnapshot snapshot = read("ring.pickle");
  const SnapshotTimeline made = timeline_of(snapshot, "ring");
  const SnapshotReport report = report_of(snapshot, made);
  EXPECT_EQ(report.events, 20U);
  EXPECT_GT(report.blocks_before, 4U);
  EXPECT_GT(total(made.timeline.baseline).count, 0);
}

TEST(SnapshotTimeline, WhoMadeThePeakIsNamedByTheUsersOwnFrame) {
  const MemorySnapshot snapshot = read("two_streams.pickle");
  const SnapshotReport report = report_of(snapshot, timeline_of(snapshot, "two_streams"));
  ASSERT_FALSE(report.alive.empty());
  EXPECT_THAT(site_of(snapshot, report.alive.front().stack), HasSubstr("two_streams (record.py:"));
}

TEST(SnapshotTimeline, AFailureSaysWhatWasFreeAndInWhatPieces) {
  using namespace literals;
  const MemorySnapshot snapshot = read("out_of_memory.pickle");
  const SnapshotReport report = report_of(snapshot, timeline_of(snapshot, "out_of_memory"));
  ASSERT_EQ(report.failures.size(), 1U);
  const OutOfMemory& failure = report.failures.front();
  EXPECT_EQ(failure.requested, 30_MiB);
  EXPECT_EQ(failure.pool.reserved, 40_MiB);
  EXPECT_EQ(failure.pool.free(), 20_MiB);
  EXPECT_EQ(failure.pool.largest_gap, 5_MiB);
  EXPECT_EQ(failure.pool.gaps, 4U);
  EXPECT_EQ(failure.pool.unused, 0_B);
  EXPECT_THAT(site_of(snapshot, failure.stack), HasSubstr("out_of_memory (record.py:"));
}

/// A segment of 22 MiB in which `size` bytes are asked for and given back.
Bytes handed_out(Bytes size, std::optional<Bytes> max_split_size = {}, bool is_expandable = false) {
  using namespace literals;
  constexpr std::int64_t address = 1 << 24;
  MemorySnapshot snapshot;
  snapshot.settings.max_split_size = max_split_size;
  snapshot.segments = {
      {address, 22_MiB, 0, 0, is_expandable, {{address, 22_MiB, {}, no_stack, {}}}}};
  snapshot.segments[0].blocks[0].state = BlockState::Inactive;
  std::vector<SnapshotEvent>& events = snapshot.events.emplace_back();
  for (const SnapshotAction action :
       {SnapshotAction::Alloc, SnapshotAction::FreeRequested, SnapshotAction::FreeCompleted})
    events.push_back({address, size, 0, std::ssize(events), no_stack, action});
  return report_of(snapshot, timeline_of(snapshot, "made")).active_peak;
}

// split() in PyTorch 2.6's allocator: what is left of a large block is a block of its own above
// 1 MiB, or from 512 B on where segments grow; never of blocks that must stay whole.
TEST(SnapshotTimeline, ABlockIsCutFromAFreeOneWhereTheAllocatorWould) {
  using namespace literals;
  EXPECT_EQ(handed_out(20_MiB), 20_MiB);
  EXPECT_EQ(handed_out(20_MiB + 1_B), 20_MiB + 512_B);
  EXPECT_EQ(handed_out(21_MiB - 512_B), 21_MiB - 512_B);
  EXPECT_EQ(handed_out(21_MiB), 22_MiB);  // 1 MiB would be left
  EXPECT_EQ(handed_out(1_B), 512_B);
  EXPECT_EQ(handed_out(20_MiB, 20_MiB), 22_MiB);
  EXPECT_EQ(handed_out(20_MiB - 512_B, 20_MiB), 20_MiB - 512_B);
  EXPECT_EQ(handed_out(22_MiB - 512_B, {}, true), 22_MiB - 512_B);
  EXPECT_EQ(handed_out(22_MiB, {}, true), 22_MiB);
  EXPECT_EQ(handed_out(23_MiB), 23_MiB);  // a contradiction: the request says more
}

TEST(MemorySnapshot, EqualStacksAreOne) {
  const MemorySnapshot snapshot = read("two_streams.pickle");
  std::vector<std::vector<std::uint32_t>> stacks;
  for (std::size_t i = 0; i < snapshot.stack_ends.size(); ++i) {
    const auto frames = snapshot.stack(static_cast<StackId>(i));
    stacks.emplace_back(frames.begin(), frames.end());
  }
  EXPECT_GT(stacks.size(), 4U);
  std::ranges::sort(stacks);
  EXPECT_EQ(std::ranges::adjacent_find(stacks), stacks.end());
}

/// Pieces of a pickle of protocol 4.
std::string text(const std::string& words) {
  return "\x8c" + std::string(1, static_cast<char>(words.size())) + words;
}
std::string number(std::int32_t value) {
  const auto bits = static_cast<std::uint32_t>(value);
  std::string bytes = "J";
  for (const unsigned shift : {0U, 8U, 16U, 24U}) bytes += static_cast<char>(bits >> shift & 0xFF);
  return bytes;
}
std::string dict(const std::string& members) { return "}(" + members + "u"; }

allocator::AllocatorSettings settings_of(const std::string& settings) {
  const std::string bytes = "\x80\x04" +
                            dict(text("segments") + "]" + text("device_traces") + "]" +
                                 text("allocator_settings") + dict(settings)) +
                            ".";
  PickleInput input(bytes, "file");
  return read_memory_snapshot(input).settings;
}

TEST(MemorySnapshot, HasTheAllocatorsSettings) {
  using namespace literals;
  const allocator::AllocatorSettings usual;
  EXPECT_EQ(settings_of(text("expandable_segments") + "\x88").expandable_segments, true);
  EXPECT_EQ(settings_of(text("expandable_segments") + "\x89").expandable_segments, false);
  EXPECT_EQ(settings_of(text("max_split_size") + number(1 << 25)).max_split_size, 32_MiB);
  EXPECT_EQ(settings_of(text("max_split_size") + number(1)).max_split_size, 1_B);
  for (const std::string& none : {number(0), number(-1), text("32")})  // -1 is PyTorch's "none"
    EXPECT_EQ(settings_of(text("max_split_size") + none).max_split_size, usual.max_split_size);
}

// By the first size in MiB that they are for.
TEST(MemorySnapshot, HasTheAllocatorsDivisionsBySize) {
  const auto divisions = [](const std::string& size, const std::string& count) {
    return settings_of(text("roundup_power2_divisions") + dict(text(size) + count))
        .roundup_divisions;
  };
  auto expected = allocator::AllocatorSettings().roundup_divisions;
  EXPECT_EQ(settings_of("").roundup_divisions, expected);
  EXPECT_EQ(divisions("2", number(0)), expected);
  EXPECT_EQ(divisions("2", number((1 << 20) + 1)), expected);
  EXPECT_EQ(divisions("2", text("4")), expected);
  EXPECT_EQ(divisions("3", number(4)), expected);
  for (const int count : {1, 4, 1 << 20}) {
    expected[1] = count;
    EXPECT_EQ(divisions("2", number(count)), expected);
  }
}

TEST(MemorySnapshot, EveryCutOffFileIsRefused) {
  const std::string whole = bytes_of("ring.pickle");
  ASSERT_EQ(problem_of(whole), "(none)");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(problem_of(std::string_view(whole).substr(0, size)), HasSubstr("file: byte "));
}

TEST(MemorySnapshot, OtherPicklesAreRefused) {
  using namespace std::string_literals;
  EXPECT_THAT(problem_of("\x80\x04N."s), HasSubstr("is no memory snapshot"));
  EXPECT_THAT(problem_of("\x80\x04}."s), HasSubstr("is no memory snapshot"));
  const std::string empty =
      "\x80\x04}(\x8c\x08segments]\x8c\x0d"
      "device_traces]u."s;
  EXPECT_THAT(problem_of(empty), HasSubstr("has neither events nor segments"));
}

TEST(MemorySnapshot, IsKnownByItsFirstBytes) {
  EXPECT_TRUE(is_memory_snapshot(folder + "ring.pickle"));
  EXPECT_TRUE(is_memory_snapshot(folder + "ring_protocol_2.pickle"));
  EXPECT_FALSE(is_memory_snapshot(folder + "ring.expected.json"));
  EXPECT_FALSE(is_memory_snapshot(folder));
  EXPECT_FALSE(is_memory_snapshot(folder + "nothing.pickle"));
}

}  // namespace
}  // namespace tidemark::importers::memory_snapshot_test
