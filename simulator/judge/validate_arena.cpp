// The judge of places. It walks over the steps with a map of addresses: each stretch knows the
// buffer that had it last.
//   1  A place is aligned and inside of the arena.
//   2  A buffer gets an address when the one before is freed, and all that used that one is ordered
//      before the point at which the new one's stream gets it. Then so is all that came earlier.
#include <fmt/format.h>

#include <map>

#include "simulator/judge/validate.h"
#include "simulator/judge/validate_clock.h"

namespace tidemark {
namespace {

constexpr std::uint32_t nobody = 0xffffffff;

class Places {
 public:
  Places(const Schedule& schedule, const Arena& arena)
      : schedule_(schedule),
        arena_(arena),
        clocks_(schedule.streams, schedule.events),
        uses_(schedule.buffers.size(), judge::Moment(schedule.streams)),
        is_present_(schedule.buffers.size()) {
    owner_[0] = nobody;
  }

  std::vector<std::string> check();

 private:
  bool check_ranges();
  void take(BufferId buffer);
  void use(BufferId buffer, StreamId stream) {
    uses_[index(buffer)][index(stream)] = clocks_[stream][index(stream)];
  }
  void run(const Run& run);
  void step(const Step& step);

  const Schedule& schedule_;
  const Arena& arena_;
  judge::Clocks clocks_;
  std::vector<judge::Moment> uses_;  // what must be over before the next owner
  std::vector<bool> is_present_;
  std::map<std::int64_t, std::uint32_t> owner_;  // from this address on: a buffer, or nobody
  std::vector<std::string> complaints_;
};

bool Places::check_ranges() {
  const std::size_t buffers = schedule_.buffers.size();
  if (arena_.offsets.size() != buffers) {
    complaints_.push_back(fmt::format("{} places for {} buffers", arena_.offsets.size(), buffers));
    return false;
  }
  for (std::size_t b = 0; b < buffers; ++b) {
    const std::int64_t begin = arena_.offsets[b], bytes = schedule_.buffers[b].size.count;
    if (begin % arena_alignment != 0)
      complaints_.push_back(fmt::format("buffer {} begins at {}, not aligned", b, begin));
    if (begin < 0 || begin > arena_.size.count - bytes)
      complaints_.push_back(fmt::format("buffer {} is at [{}, {}) of {} bytes", b, begin,
                                        begin + bytes, arena_.size.count));
  }
  return complaints_.empty();
}

// The new buffer's addresses become its own, and the stretch behind them stays what it was.
void Places::take(BufferId id) {
  const Buffer& buffer = schedule_[id];
  if (buffer.size.count == 0) return;
  const judge::Moment& now = clocks_[buffer.stream];
  const std::int64_t begin = arena_.offsets[index(id)], end = begin + buffer.size.count;
  auto stretch = std::prev(owner_.upper_bound(begin));
  std::uint32_t last = nobody;
  for (; stretch != owner_.end() && stretch->first < end; ++stretch) {
    last = stretch->second;
    if (last == nobody) continue;
    if (is_present_[last])
      complaints_.push_back(fmt::format("buffer {} is over buffer {}", index(id), last));
    else if (!judge::follows(now, uses_[last]))
      complaints_.push_back(fmt::format(
          "buffer {} is over buffer {}, which another stream may still use", index(id), last));
  }
  owner_.erase(owner_.upper_bound(begin), owner_.lower_bound(end));
  owner_.try_emplace(end, last);
  owner_[begin] = static_cast<std::uint32_t>(index(id));
  uses_[index(id)] = now;
  is_present_[index(id)] = true;
}

void Places::run(const Run& run) {
  clocks_.count(run.stream);
  for (const BufferId read : schedule_.reads(run)) use(read, run.stream);
  for (const BufferId write : schedule_.writes(run)) use(write, run.stream);
}

void Places::step(const Step& step) {
  const auto copy = [&](BufferId buffer, StreamId stream) {
    clocks_.count(stream);
    use(buffer, stream);
  };
  std::visit(
      Overload{[&](const Allocate& s) { take(s.buffer); },
               [&](const Free& s) { is_present_[index(s.buffer)] = false; },
               [&](const Run& s) { run(s); }, [&](const CopyOut& s) { copy(s.buffer, s.stream); },
               [&](const CopyIn& s) { copy(s.buffer, s.stream); },
               [&](const Record& s) { clocks_.record(s); }, [&](const Wait& s) { clocks_.wait(s); },
               [&](const Synchronize& s) { clocks_.synchronize(s); }},
      step);
}

std::vector<std::string> Places::check() {
  if (!check_ranges()) return std::move(complaints_);
  for (std::size_t b = 0; b < schedule_.buffers.size(); ++b)
    if (schedule_.buffers[b].persistent) take(static_cast<BufferId>(b));
  for (const Step& s : schedule_.steps) step(s);
  return std::move(complaints_);
}

}  // namespace

std::vector<std::string> validate(const Schedule& schedule, const Arena& arena) {
  return Places(schedule, arena).check();
}

}  // namespace tidemark
