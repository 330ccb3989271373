// Comparisons over a sweep, in every format. `points` are at least two.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/comparison.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {

std::string sweep_table(std::span<const Comparison> points, const Style& style);
std::string sweep_markdown(std::span<const Comparison> points);
/// Each point as comparison_json writes it.
std::string sweep_json(std::span<const Comparison> points);
/// One line per point and strategy, with what was swept in front.
std::string sweep_csv(std::span<const Comparison> points);
/// Memory and throughput over each group of points, each on the same axis in all of them.
std::vector<std::string> sweep_svgs(std::span<const Comparison> points, double width);

}  // namespace tidemark::cli
