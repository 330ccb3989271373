// How a sweep is shown: one dimension along the columns, a group of tables or pictures for each
// combination of the others.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/comparison.h"

namespace tidemark::cli {

struct SweepGroup {
  std::string name;                       ///< "sequence 512 · h100"; "" if there is only one
  std::string dimension;                  ///< of its points: "batch", "sequence", "image", "device"
  std::vector<const Comparison*> points;  ///< in order
  std::vector<std::string> columns;       ///< "8", "16", …: one per point
};

std::vector<SweepGroup> group_sweep(std::span<const Comparison> points);

/// Strategies that apply to any point, in the order asked.
std::vector<std::string> strategies_of(const SweepGroup& group);

/// The strategy's row at a point, or null where it does not apply.
const Report* row_of(const Comparison& point, std::string_view strategy);

/// One line per strategy: "vanilla fits to batch 96 on both".
std::vector<std::string> fit_summaries(std::span<const Comparison> points);

/// Model; what was swept; what all points share.
std::vector<std::string> describe_sweep(std::span<const Comparison> points);

}  // namespace tidemark::cli
