// Example, 8 tokens that visit 2 of 4 experts each, 16 visits:
//   even   4 4 4 4      1.5   6 4 3 3      worst   7 7 1 1
#include "traces/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/number_in.h"
#include "base/quoted.h"

namespace tidemark {
namespace {

// The i-th of so many equal shares, the larger ones first.
std::int64_t share(std::int64_t total, std::int64_t parts, std::int64_t i) {
  return (total - i + parts - 1) / parts;
}

}  // namespace

ExpertLoad parse_expert_load(std::string_view text) {
  if (text == "worst") return {};
  if (text == "even") return {1};
  const std::optional<double> factor = number_in<double>(text);
  if (factor && *factor >= 1 && std::isfinite(*factor)) return {*factor};
  throw UsageError(fmt::format(
      "--expert-load: {} is not even, worst, or a number from 1 (the busiest gets so many times "
      "what all get on average)",
      quoted(text)));
}

std::string to_text(const ExpertLoad& load) {
  if (!load.factor) return "worst";
  return *load.factor == 1 ? "even" : fmt::format("{}", *load.factor);
}

std::int64_t busiest_visits(const ExpertLoad& load, const Routing& routing, std::int64_t groups) {
  const std::int64_t inside = std::min(routing.per_token, routing.experts / groups);
  const std::int64_t most = routing.tokens * inside;
  if (!load.factor) return most;
  const double average =
      static_cast<double>(routing.tokens * routing.per_token) / static_cast<double>(groups);
  const double wanted = std::min(*load.factor * average, static_cast<double>(most));
  return std::llround(wanted);
}

std::vector<std::int64_t> visits_by_expert(const ExpertLoad& load, const Routing& routing) {
  const std::int64_t visits = routing.tokens * routing.per_token;
  const std::int64_t visited = std::min(routing.experts, visits);
  std::vector<std::int64_t> shares;
  if (load.factor == 1) {
    for (std::int64_t i = 0; i < visited; ++i) shares.push_back(share(visits, routing.experts, i));
    return shares;
  }
  const std::int64_t busy = load.factor ? 1 : std::min(routing.per_token, visited);
  const std::int64_t quiet = visited - busy;
  const std::int64_t of_busy = std::clamp(busy * busiest_visits(load, routing, routing.experts),
                                          busy * share(visits, visited, 0), visits - quiet);
  for (std::int64_t i = 0; i < busy; ++i) shares.push_back(share(of_busy, busy, i));
  for (std::int64_t i = 0; i < quiet; ++i) shares.push_back(share(visits - of_busy, quiet, i));
  return shares;
}

}  // namespace tidemark
