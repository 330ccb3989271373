// One walk finds each copy's last copy in, a second one adds and subtracts.
#include "simulator/host_copies.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tidemark {

Bytes host_copies_peak(const Schedule& schedule) {
  const auto key_of = [&](BufferId id) {
    return std::pair{schedule[id].tensor, schedule[id].role};
  };
  std::map<std::pair<TensorId, Role>, std::size_t> last_in;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i)
    if (const auto* in = std::get_if<CopyIn>(&schedule.steps[i])) last_in[key_of(in->buffer)] = i;
  Bytes now, most;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    if (const auto* out = std::get_if<CopyOut>(&schedule.steps[i]))
      most = std::max(most, now += schedule[out->buffer].size);
    const auto* in = std::get_if<CopyIn>(&schedule.steps[i]);
    if (in && last_in.at(key_of(in->buffer)) == i) now -= schedule[in->buffer].size;
  }
  return most;
}

}  // namespace tidemark
