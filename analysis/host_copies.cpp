// A walk backwards finds each copy's last copy in, a walk forwards adds and subtracts.
#include "analysis/host_copies.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tidemark {
namespace {

using Key = std::pair<TensorId, Role>;

Key key_of(const Schedule& schedule, BufferId id) {
  return {schedule[id].tensor, schedule[id].role};
}

// By step: a copy in after which nothing is copied in any more until the next copy out.
std::vector<bool> find_last_copies_in(const Schedule& schedule) {
  std::vector<bool> is_last(schedule.steps.size());
  std::set<Key> comes_again;
  for (std::size_t i = schedule.steps.size(); i-- > 0;) {
    if (const auto* out = std::get_if<CopyOut>(&schedule.steps[i]))
      comes_again.erase(key_of(schedule, out->buffer));
    if (const auto* in = std::get_if<CopyIn>(&schedule.steps[i]))
      is_last[i] = comes_again.insert(key_of(schedule, in->buffer)).second;
  }
  return is_last;
}

}  // namespace

Bytes host_copies_peak(const Schedule& schedule) {
  const auto is_copy = [](const Step& step) { return std::holds_alternative<CopyOut>(step); };
  if (std::ranges::none_of(schedule.steps, is_copy)) return {};
  const std::vector<bool> is_last = find_last_copies_in(schedule);
  Bytes now, most;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    if (const auto* out = std::get_if<CopyOut>(&schedule.steps[i]))
      most = std::max(most, now += schedule[out->buffer].size);
    if (is_last[i]) now -= schedule[std::get<CopyIn>(schedule.steps[i]).buffer].size;
  }
  return most;
}

}  // namespace tidemark
