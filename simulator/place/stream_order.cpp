// Vector clocks per stream: a wait is emitted only where the order is not known yet.
#include "simulator/place/stream_order.h"

#include <algorithm>

namespace tidemark {

StreamOrder::Use& StreamOrder::use_of(BufferId buffer) {
  if (uses_.size() <= index(buffer))
    uses_.resize(std::max(schedule_.buffers.size(), uses_.size() * 2));
  return uses_[index(buffer)];
}

void StreamOrder::before_run(StreamId stream, const std::vector<BufferId>& reads,
                             const std::vector<BufferId>& writes) {
  if (schedule_.streams == 1) return;
  for (const BufferId buffer : reads) {
    const Use& use = use_of(buffer);
    follow(stream, use.writer, use.written);
  }
  for (const BufferId buffer : writes)
    for (std::size_t other = 0; other < schedule_.streams; ++other)
      follow(stream, static_cast<StreamId>(other), use_of(buffer).used[other]);
  const std::uint32_t now = ++runs_[index(stream)];
  known_[index(stream)][index(stream)] = now;
  for (const BufferId buffer : reads) use_of(buffer).used[index(stream)] = now;
  for (const BufferId buffer : writes) {
    Use& use = use_of(buffer);
    use.used[index(stream)] = use.written = now;
    use.writer = stream;
  }
}

StreamOrder::Point StreamOrder::mark(StreamId stream) {
  auto& marks = marks_[index(stream)];
  const std::uint32_t runs = runs_[index(stream)];
  const Point here{stream, runs};
  if (schedule_.streams == 1 || (!marks.empty() && marks.back().runs == runs)) return here;
  record(stream);
  return here;
}

const StreamOrder::Mark& StreamOrder::record(StreamId stream) {
  const auto event = static_cast<EventId>(schedule_.events++);
  schedule_.steps.emplace_back(Record{event, stream});
  return marks_[index(stream)].emplace_back(
      Mark{runs_[index(stream)], event, known_[index(stream)]});
}

void StreamOrder::follow(StreamId stream, StreamId other, std::uint32_t runs) {
  if (stream == other || known_[index(stream)][index(other)] >= runs) return;
  auto& marks = marks_[index(other)];
  auto found = std::ranges::lower_bound(marks, runs, {}, &Mark::runs);
  if (found == marks.end()) {
    mark(other);
    found = std::prev(marks.end());
  }
  wait_for(*found, stream);
}

void StreamOrder::wait_for(const Mark& mark, StreamId stream) {
  if (synchronizes_host_) {
    schedule_.steps.emplace_back(Synchronize{mark.event});
    for (Clock& known : known_) learn(known, mark.clock);
  } else {
    schedule_.steps.emplace_back(Wait{mark.event, stream});
    learn(known_[index(stream)], mark.clock);
  }
  retry_pending(stream);
}

void StreamOrder::join(StreamId stream) {
  for (std::size_t other = 0; other < schedule_.streams; ++other)
    follow(stream, static_cast<StreamId>(other), runs_[other]);
  retry_pending(stream);
}

bool StreamOrder::is_ordered(BufferId buffer, StreamId stream) {
  return follows(known_[index(stream)], use_of(buffer).used);
}

void StreamOrder::free(BufferId buffer, StreamId stream) {
  if (schedule_.streams == 1 || is_ordered(buffer, stream)) {
    schedule_.steps.emplace_back(Free{buffer, stream});
  } else {
    pending_.push_back({buffer, {}});
  }
}

void StreamOrder::free_only_on(BufferId buffer, StreamId stream) {
  if (schedule_.streams == 1 || is_ordered(buffer, stream)) {
    schedule_.steps.emplace_back(Free{buffer, stream});
  } else {
    pending_.push_back({buffer, stream});
  }
}

void StreamOrder::retry_pending(StreamId stream) {
  std::erase_if(pending_, [&](const Pending& pending) {
    const bool may_be_here = !pending.only_on || *pending.only_on == stream;
    if (!may_be_here || !is_ordered(pending.buffer, stream)) return false;
    schedule_.steps.emplace_back(Free{pending.buffer, stream});
    return true;
  });
}

}  // namespace tidemark
