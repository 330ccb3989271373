// Keeps regions sorted.
#include "simulator/strategies/regions.h"

#include <algorithm>

namespace tidemark {

void add_region(Plan& plan, Region region) {
  std::erase_if(plan.regions, [&](const Region& old) {
    return old.begin >= region.begin && old.end <= region.end;
  });
  const auto after = std::ranges::lower_bound(plan.regions, region.begin, {}, &Region::begin);
  plan.regions.insert(after, region);
}

void number_chains(Plan& plan) {
  std::int32_t chain = 0;
  for (std::size_t i = 0; i < plan.regions.size(); ++i) {
    if (i > 0 && plan.regions[i].begin != plan.regions[i - 1].end) ++chain;
    plan.regions[i].chain = chain;
  }
}

}  // namespace tidemark
