// Plans whose recovery runs on a second stream: the best of the bounds in which runs count with
// what they take of each resource that streams share (load.h).
#include <algorithm>

#include "simulator/planner/planner.h"

namespace tidemark {

Planner::Planner(const Planner& plain, Resource resource, OnlyBounds) : Planner(plain) {
  for (const Mode& mode : plain.modes_) modes_.push_back({mode.held, {mode.menus.front()}});
  count(resource);
  for (const BlockOperators& each : plain.operators_)
    operators_.push_back({each.components, std::shared_ptr<const Planner>(new Planner(
                                               *each.everywhere, resource, OnlyBounds()))});
}

std::int64_t Planner::lower_bound_of_streams(std::int64_t bytes, double link, bool are_joined,
                                             std::int64_t enough) const {
  std::int64_t most = 0;
  for (const Resource resource : shared_resources) {
    if (most >= enough) break;
    const Planner planner(*this, resource, OnlyBounds());
    most = std::max(most, are_joined ? planner.lower_bound_of_joined(bytes, link, enough)
                                     : planner.lower_bound(bytes, link, enough));
  }
  return most;
}

}  // namespace tidemark
