// Each update asks for its parameter's states on the device (prefetch_state() of bitsandbytes 0.50
// optim/optimizer.py, cudaMemPrefetchAsync), and nothing sends them back (GlobalPageManager's
// prefetch_all() has no caller): they stay until the driver needs their room. If all find room
// beside what PyTorch asks for, none move. If not, all do: updates go through them in one order,
// and the driver takes room from those that were used the longest ago, which are the ones that the
// next step needs first.
//   two of three fit:   update a   update b   update c, a leaves   │   update a, b leaves   …
#include "analysis/paged_states.h"

#include <variant>

#include "simulator/allocator/allocator_replay.h"
#include "simulator/parallel/shards.h"
#include "traces/optimizer_of.h"

namespace tidemark {

Bytes paged_states(const Trace& trace, const Schedule& schedule) {
  Bytes sum;
  if (!row_of(trace.step.optimizer).is_paged) return sum;
  const std::vector<std::int64_t> updated = updated_elements(trace);
  for (const Step& step : schedule.steps) {
    const Run* const run = std::get_if<Run>(&step);
    if (!run || run->task != Task::Optimizer) continue;
    for (const BufferId id : schedule.writes(*run)) {
      const Buffer& buffer = schedule[id];
      if (buffer.role != Role::Value && buffer.role != Role::Shard) continue;
      const std::int64_t elements = updated.empty()
                                        ? buffer.size.count / size_of(trace[buffer.tensor].dtype)
                                        : updated[index(buffer.tensor)];
      sum += paged_state_bytes(optimizer_of(trace, buffer.tensor), elements);
    }
  }
  return sum;
}

bool moves_paged_states(const Trace& trace, const Schedule& schedule, const Device& device) {
  const Bytes states = paged_states(trace, schedule);
  if (states == Bytes{}) return false;
  const Bytes asked =
      allocator::requested_peak(schedule, find_framework(trace.step.framework), device);
  return asked + states + device.context.value_or(Bytes{}) > device.capacity;
}

}  // namespace tidemark
