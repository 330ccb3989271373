// Comparisons over ranges of batch, input size and device.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/comparison.h"

namespace tidemark {

/// A sweep of more points than this is a mistake in typing.
inline constexpr std::size_t most_points = 10'000;

/// "8", "8,16,32", "8:256:x2" (times 2 while not above 256), "8:64:8" (in steps of 8), or several
/// of them between commas. Ascending, each once. UsageError naming `what` for all else.
std::vector<std::int64_t> parse_range(std::string_view text, std::string_view what,
                                      std::int64_t max);

/// Each scenario's comparison, in order, on all cores. `progress` is told how many are done, by one
/// thread at a time.
std::vector<Comparison> sweep(std::span<const Scenario> scenarios,
                              const std::function<void(std::size_t done)>& progress = {});

/// What tells each point from the others: "batch 8", "batch 8 · h100". With one point "".
std::vector<std::string> point_names(std::span<const Comparison> points);

/// Row `strategy` of each point, or null where it does not apply.
std::vector<const Report*> rows_of(std::span<const Comparison> points, std::string_view strategy);

}  // namespace tidemark
