// Indexes a recording once: first and last state, order by size, and the runs of each buffer.
#include "gui/indexes/buffer_index.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace tidemark::gui {
namespace {

bool contains(std::span<const BufferId> buffers, BufferId wanted) {
  return std::ranges::find(buffers, wanted) != buffers.end();
}

}  // namespace

// Millions of buffers have a few thousand sizes: they are counted. Only where sizes are many is
// sorted.
std::vector<BufferId> largest_first(const Schedule& schedule) {
  constexpr std::size_t few = std::size_t{1} << 16;
  const auto size_of = [&](BufferId id) { return schedule[id].size.count; };
  std::vector<BufferId> ids(schedule.buffers.size());
  for (std::size_t b = 0; b < ids.size(); ++b) ids[b] = static_cast<BufferId>(b);
  std::unordered_map<std::int64_t, std::uint32_t> count_of;
  for (const BufferId id : ids) {
    ++count_of[size_of(id)];
    if (count_of.size() <= few) continue;
    std::ranges::stable_sort(ids, std::ranges::greater{}, size_of);
    return ids;
  }
  std::vector<std::pair<std::int64_t, std::uint32_t>> sizes(count_of.begin(), count_of.end());
  std::ranges::sort(sizes, std::ranges::greater{});
  std::uint32_t next = 0;
  for (const auto& [size, count] : sizes) count_of[size] = next, next += count;
  std::vector<BufferId> sorted(ids.size());
  for (const BufferId id : ids) sorted[count_of[size_of(id)]++] = id;
  return sorted;
}

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
  by_size_ = largest_first(schedule);  // so that a live set is a walk and no sort
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
