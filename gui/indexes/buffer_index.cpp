// Indexes a recording once: first and last state, order by size, and the runs of each buffer.
#include "gui/indexes/buffer_index.h"

#include <algorithm>
#include <numeric>

namespace tidemark::gui {
namespace {

bool contains(std::span<const BufferId> buffers, BufferId wanted) {
  return std::ranges::find(buffers, wanted) != buffers.end();
}

}  // namespace

// Runs of one stream follow one another, so that most steps are sorted already.
std::vector<std::uint32_t> by_begin(const Timeline& timeline) {
  std::vector<std::uint32_t> order(timeline.runs.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto begin = [&](std::uint32_t run) { return timeline.runs[run].begin; };
  if (!std::ranges::is_sorted(order, {}, begin)) std::ranges::stable_sort(order, {}, begin);
  return order;
}

std::span<const BufferId> reads_of(const Schedule& schedule, const Step& step) {
  if (const Run* run = std::get_if<Run>(&step)) return schedule.reads(*run);
  if (const CopyOut* copy = std::get_if<CopyOut>(&step)) return {&copy->buffer, 1};
  return {};
}

std::span<const BufferId> writes_of(const Schedule& schedule, const Step& step) {
  if (const Run* run = std::get_if<Run>(&step)) return schedule.writes(*run);
  if (const CopyIn* copy = std::get_if<CopyIn>(&step)) return {&copy->buffer, 1};
  return {};
}

BufferIndex::BufferIndex(const Recording& recording) : recording_(&recording) {
  const Schedule& schedule = recording.schedule;
  const Timeline& timeline = recording.timeline;
  const std::size_t buffers = schedule.buffers.size();
  // What never appears is alive in no state; what never goes is alive to the end.
  const auto states = static_cast<std::uint32_t>(timeline.memory.size() + 1);
  first_.assign(buffers, states), last_.assign(buffers, states);
  for (std::size_t b = 0; b < buffers; ++b)
    if (schedule.buffers[b].persistent) first_[b] = 0;
  for (std::size_t i = 0; i < timeline.memory.size(); ++i) {
    const MemoryEvent& event = timeline.memory[i];
    (event.appears ? first_ : last_)[index(event.buffer)] = static_cast<std::uint32_t>(i + 1);
  }
  // Sorted once here, so that a live set is a walk and no sort.
  by_size_.resize(buffers);
  for (std::size_t b = 0; b < buffers; ++b) by_size_[b] = static_cast<BufferId>(b);
  std::ranges::stable_sort(by_size_, std::ranges::greater{},
                           [&](BufferId id) { return schedule[id].size; });
  runs_ = Groups(buffers, [&, order = by_begin(timeline)](auto emit) {
    for (const std::uint32_t run : order) {
      const Step& step = schedule.steps[timeline.runs[run].step];
      for (const BufferId buffer : reads_of(schedule, step)) emit(index(buffer), run);
      for (const BufferId buffer : writes_of(schedule, step)) emit(index(buffer), run);
    }
  });
}

std::optional<RunId> BufferIndex::first_writer(BufferId buffer) const {
  const Schedule& schedule = recording_->schedule;
  for (const std::uint32_t run : runs_of(buffer))
    if (contains(writes_of(schedule, schedule.steps[recording_->timeline.runs[run].step]), buffer))
      return RunId{run};
  return {};
}

std::optional<RunId> BufferIndex::last_reader(BufferId buffer) const {
  const Schedule& schedule = recording_->schedule;
  const auto runs = runs_of(buffer);
  for (std::size_t i = runs.size(); i-- > 0;)
    if (contains(reads_of(schedule, schedule.steps[recording_->timeline.runs[runs[i]].step]),
                 buffer))
      return RunId{runs[i]};
  return {};
}

std::optional<RunId> BufferIndex::next_use(BufferId buffer, Nanoseconds moment) const {
  const auto& runs = recording_->timeline.runs;
  const auto uses = runs_of(buffer);
  const auto next = std::ranges::lower_bound(uses, moment, {},
                                             [&](std::uint32_t run) { return runs[run].begin; });
  if (next == uses.end()) return {};
  return RunId{*next};
}

}  // namespace tidemark::gui
