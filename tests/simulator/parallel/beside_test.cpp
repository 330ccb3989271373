// Wrappers stand beside a step: what belongs to activations lives exactly as long as in the step
// of one rank alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulator/parallel/ranks.h"

namespace tidemark::beside_test {
namespace {

bool is_of_model(const Schedule& schedule, BufferId id) {
  const Buffer& buffer = schedule[id];
  return !buffer.persistent && buffer.category == Category::Activation;
}

// Bytes of activations that are there when each op runs.
std::vector<std::int64_t> activations_of(const Schedule& schedule) {
  std::vector<std::int64_t> bytes;
  std::int64_t now = 0;
  for (const Step& step : schedule.steps) {
    if (const auto* s = std::get_if<Allocate>(&step); s && is_of_model(schedule, s->buffer))
      now += schedule[s->buffer].size.count;
    if (const auto* s = std::get_if<Free>(&step); s && is_of_model(schedule, s->buffer))
      now -= schedule[s->buffer].size.count;
    const auto* run = std::get_if<tidemark::Run>(&step);
    if (run && (run->task == Task::Forward || run->task == Task::Backward)) bytes.push_back(now);
  }
  return bytes;
}

TEST(Wrappers, LeaveActivationsAsTheyAre) {
  for (const char* strategy : {"vanilla", "checkpoint", "mesa"}) {
    const auto alone = activations_of(schedule_of(of_ranks(1, "ddp"), strategy));
    for (const char* sharding : {"ddp", "ddp:bucket-view", "fsdp2", "fsdp2:no-reshard"})
      EXPECT_EQ(activations_of(schedule_of(of_ranks(4, sharding), strategy)), alone)
          << strategy << " " << sharding;
  }
}

}  // namespace
}  // namespace tidemark::beside_test
