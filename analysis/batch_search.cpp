// Finds the ceiling by doubling and halving, then tries upwards from 1 and downwards from there.
#include "analysis/batch_search.h"

#include <algorithm>
#include <vector>

#include "base/parallel.h"

namespace tidemark {
namespace {

constexpr std::int64_t largest_batch_asked = std::int64_t{1} << 24;

// The largest batch for which `holds`, which is true up to some batch and false beyond; or 0.
std::int64_t last_where(const std::function<bool(std::int64_t)>& holds) {
  std::int64_t low = 0, high = 1;
  while (high <= largest_batch_asked && holds(high)) low = high, high *= 2;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return std::min(low, largest_batch_asked);
}

class Search {
 public:
  Search(const BatchTest& test, const BatchProgress& progress, std::int64_t ceiling)
      : test_(test), progress_(progress), ceiling_(ceiling) {}

  // So many batches fit of the first `count` above `batch`, before the first that does not.
  std::int64_t fitting_above(std::int64_t batch, std::int64_t count) {
    return first_of(count, [&](std::int64_t i) { return !test_.fits(batch + 1 + i); });
  }

  // So many do not fit of the `count` from the ceiling downwards, before the first that does.
  std::int64_t failing_below_ceiling(std::int64_t count) {
    return first_of(count, [&](std::int64_t i) { return test_.fits(ceiling_ - i); });
  }

 private:
  // The first of [0, count) for which `is` holds, or `count`. Asks a chunk of them at once.
  std::int64_t first_of(std::int64_t count, const std::function<bool(std::int64_t)>& is) {
    constexpr std::int64_t chunk = 64;
    for (std::int64_t begin = 0; begin < count; begin += chunk) {
      std::vector<char> holds(static_cast<std::size_t>(std::min(chunk, count - begin)));
      parallel_for(holds.size(),
                   [&](std::size_t i) { holds[i] = is(begin + static_cast<std::int64_t>(i)); });
      tried_ += static_cast<std::int64_t>(holds.size());
      if (progress_) progress_(tried_, ceiling_);
      const auto found = std::ranges::find(holds, 1);
      if (found != holds.end()) return begin + (found - holds.begin());
    }
    return count;
  }

  const BatchTest& test_;
  const BatchProgress& progress_;
  const std::int64_t ceiling_;
  std::int64_t tried_ = 0;
};

}  // namespace

BatchLimits find_batch_limits(const BatchTest& test, const BatchProgress& progress,
                              std::int64_t most_tried) {
  const std::int64_t ceiling = last_where(test.may_fit);
  Search search(test, progress, ceiling);
  const std::int64_t tried_up = std::min(ceiling, most_tried);
  const std::int64_t every = search.fitting_above(0, tried_up);
  const std::int64_t above = ceiling - every;
  const std::int64_t tried_down = std::min(above, most_tried);
  const std::int64_t failing = search.failing_below_ceiling(tried_down);
  const bool found_above = failing < tried_down;
  return {.every = every,
          .largest = found_above ? ceiling - failing : every,
          .cut_short =
              (every == tried_up && tried_up < ceiling) || (!found_above && tried_down < above)};
}

}  // namespace tidemark
