// Vector clocks per stream: a wait is emitted only where the order is not known yet.
#include "simulator/place/stream_order.h"

#include <algorithm>

namespace tidemark {

void StreamOrder::grow_uses() {
  const std::size_t room = std::max(schedule_.buffers.capacity(), written_.size() * 2);
  written_.resize(room);
  used_.resize(room);
}

void StreamOrder::before_run(StreamId stream, const std::vector<BufferId>& reads,
                             const std::vector<BufferId>& writes) {
  if (schedule_.streams == 1) return;
  make_room_for_uses();
  for (const BufferId buffer : reads) {
    const Write& last = written_[index(buffer)];
    follow(stream, last.writer, last.runs);
  }
  for (const BufferId buffer : writes)
    for (std::size_t other = 0; other < schedule_.streams; ++other)
      follow(stream, static_cast<StreamId>(other), used_[index(buffer)][other]);
  const std::uint32_t now = ++runs_[index(stream)];
  known_[index(stream)][index(stream)] = now;
  for (const BufferId buffer : reads) used_[index(buffer)][index(stream)] = now;
  for (const BufferId buffer : writes) {
    used_[index(buffer)][index(stream)] = now;
    written_[index(buffer)] = {stream, now};
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

StreamOrder::Mark StreamOrder::record(StreamId stream) {
  const auto event = static_cast<EventId>(schedule_.events++);
  schedule_.steps.emplace_back(Record{event, stream});
  known_at_.append(known_[index(stream)]);
  return marks_[index(stream)].emplace_back(Mark{runs_[index(stream)], event});
}

void StreamOrder::follow(StreamId stream, StreamId other, std::uint32_t runs) {
  if (stream == other || known_[index(stream)][index(other)] >= runs) return;
  const auto& marks = marks_[index(other)];
  auto found = std::ranges::lower_bound(marks, runs, {}, &Mark::runs);
  if (found == marks.end()) {
    mark(other);
    found = std::prev(marks.end());
  }
  wait_for(*found, stream);
}

void StreamOrder::wait_for(Mark mark, StreamId stream) {
  const Clock known = known_at_[index(mark.event)];
  if (synchronizes_host_) {
    schedule_.steps.emplace_back(Synchronize{mark.event});
    for (std::size_t s = 0; s < schedule_.streams; ++s) learn(known_[s], known);
  } else {
    schedule_.steps.emplace_back(Wait{mark.event, stream});
    learn(known_[index(stream)], known);
  }
  retry_pending(stream);
}

void StreamOrder::join(StreamId stream) {
  for (std::size_t other = 0; other < schedule_.streams; ++other)
    follow(stream, static_cast<StreamId>(other), runs_[other]);
  retry_pending(stream);
}

bool StreamOrder::is_ordered(BufferId buffer, StreamId stream) {
  make_room_for_uses();
  return follows(known_[index(stream)], used_[index(buffer)]);
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
