// A plan within a budget, for people and for programs.
#pragma once

#include <string>

#include "analysis/export/pictures.h"
#include "analysis/planning/planning.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {

/// What was found, what it decides by blocks, and how far from the best it can be.
std::string planning_table(const Planning& planning, const Style& style);

/// The same as a page: the fronts as a picture, and a slider along each of them.
std::string planning_html(const Planning& planning);

/// The fronts, in the request's measure.
exports::FrontsPicture fronts_picture(const Planning& planning);

/// "tidemark-plan-1": docs/planning.md lists the keys.
std::string planning_json(const Planning& planning);

/// A Python file that wraps a PyTorch model's blocks as a plan of blocks or calls says.
std::string checkpoint_script(const Planning& planning);

/// The proof, or why there is no plan, and what would help.
std::string planning_words(const Planning& planning);

/// " Operators are those of approx-bp in every block (…)."; "" if they are the step's own.
std::string operators_text(const PlannedStep& planned);
/// "quantize, 4 bits", and the tensors or calls that it is about.
struct GroupLine {
  std::string decision, tensors;
};
/// All that is decided about the group; "keep", "all" where nothing is.
std::vector<GroupLine> group_lines(const Planning& planning, const PlanGroup& group);

/// "blocks.3", "blocks.0 to blocks.17 (18)", "norm to loss".
std::string group_name(const PlanGroup& group);

}  // namespace tidemark::cli
