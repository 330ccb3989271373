// How unevenly a router deals out visits: each token visits so many experts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

struct ExpertLoad {
  /// Visits of the busiest, times the average of all; unset: all tokens visit the same experts.
  std::optional<double> factor = {};

  bool operator==(const ExpertLoad&) const = default;
};

/// "even" (1), "worst", or the factor, as "1.5". UsageError if it is below 1 or no number.
ExpertLoad parse_expert_load(std::string_view text);
/// parse_expert_load() reads it back.
std::string to_text(const ExpertLoad& load);

/// A layer's router, and the tokens that it sees.
struct Routing {
  std::int64_t tokens = 0;
  std::int64_t per_token = 0;  ///< experts that each token visits
  std::int64_t experts = 0;
};

/// Visits of the busiest of so many equal groups of experts. No more than there are: all tokens
/// visit a group at most as often as it has experts.
std::int64_t busiest_visits(const ExpertLoad& load, const Routing& routing, std::int64_t groups);

/// Visits by expert, the busiest first. Each has one at least, as long as there are as many visits,
/// so that each has a gradient.
std::vector<std::int64_t> visits_by_expert(const ExpertLoad& load, const Routing& routing);

}  // namespace tidemark
