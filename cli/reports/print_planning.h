// A plan within a budget, for people and for programs.
#pragma once

#include <string>

#include "analysis/planning/planning.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {

/// What was found, what it decides by blocks, and how far from the best it can be.
std::string planning_table(const Planning& planning, const Style& style);

/// "tidemark-plan-1": docs/planning.md lists the keys.
std::string planning_json(const Planning& planning);

/// A Python file that wraps a PyTorch model's blocks as a plan of blocks or calls says.
std::string checkpoint_script(const Planning& planning);

/// "blocks.3", "blocks.0 to blocks.17 (18)", "norm to loss".
std::string group_name(const PlanGroup& group);

}  // namespace tidemark::cli
