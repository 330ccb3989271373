// Collectives on the clock: they share a link with each other, and the device with what computes.
#include "analysis/communication.h"

#include <gtest/gtest.h>

#include "simulator/simulate.h"
#include "tests/simulator/cost/toy_device.h"
#include "tests/simulator/parallel/ranks.h"

namespace tidemark::communication_test {
namespace {

// 8 GPUs that are joined by a millionth of what memory moves, so that links decide.
Device toy_cluster() {
  Device device = toy_device();
  device.bytes_per_second = 1e15;
  device.interconnect = Interconnect{};
  device.interconnect->gpus_per_node = 8;
  device.interconnect->link_bytes_per_second = 1e9;
  device.interconnect->channels = 0;
  return device;
}

// An all-gather of so many bytes on each of these streams, all issued at once.
Schedule gathers(std::int64_t bytes, std::size_t streams) {
  Schedule schedule;
  schedule.streams = streams;
  for (std::size_t s = 0; s < streams; ++s) {
    schedule.buffers.push_back({.size = {bytes},
                                .role = Role::Temporary,
                                .category = Category::Communication,
                                .persistent = true});
    schedule.operands.push_back(static_cast<BufferId>(s));
    schedule.steps.emplace_back(tidemark::Run{Task::AllGather, static_cast<StreamId>(s), OpId{0},
                                              static_cast<std::uint32_t>(s), 0, 1});
  }
  return schedule;
}

std::int64_t duration(const Schedule& schedule) {
  return simulate(trace_of(of_ranks(8, "ddp")), schedule, toy_cluster()).duration.count();
}

TEST(Links, AreSharedByCollectives) {
  const std::int64_t bytes = 8'000'000'000;  // 7 s on a link of 1 GB/s
  EXPECT_NEAR(static_cast<double>(duration(gathers(bytes, 1))), 7e9, 1e6);
  EXPECT_NEAR(static_cast<double>(duration(gathers(bytes, 2))), 14e9, 2e6);
  EXPECT_NEAR(static_cast<double>(duration(gathers(bytes, 3))), 21e9, 3e6);
}

TEST(Communication, IsExposedWhereNothingComputes) {
  const Schedule alone = gathers(8'000'000'000, 1);
  const Trace trace = trace_of(of_ranks(8, "ddp"));
  const Timeline timeline = simulate(trace, alone, toy_cluster());
  const Communication all = communication_of(trace, alone, timeline);
  EXPECT_EQ(all.alone, timeline.duration);
  EXPECT_EQ(all.exposed, timeline.duration);
}

TEST(Communication, HidesBehindTheBackwardInPart) {
  const Trace trace = trace_of(of_ranks(8, "fsdp2"));
  const Schedule schedule = schedule_of(of_ranks(8, "fsdp2"));
  const Timeline timeline = simulate(trace, schedule, toy_cluster());
  const Communication all = communication_of(trace, schedule, timeline);
  EXPECT_GT(all.exposed, Nanoseconds{});
  EXPECT_LT(all.exposed, all.alone);
  EXPECT_LT(all.exposed, timeline.duration);
}

TEST(Communication, OfOneRankIsNone) {
  const Trace trace = trace_of(of_ranks(1, "fsdp2"));
  const Schedule schedule = schedule_of(of_ranks(1, "fsdp2"));
  const Timeline timeline = simulate(trace, schedule, toy_device());
  EXPECT_EQ(communication_of(trace, schedule, timeline), Communication());
}

}  // namespace
}  // namespace tidemark::communication_test
