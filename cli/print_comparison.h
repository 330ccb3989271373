// A comparison in four formats. Printers format the numbers of the reports; they compute none.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "simulator/compare.h"

namespace tidemark {

/// For people. `shows_units`: also what a middle block saves by kind of op.
std::string comparison_table(const Comparison& comparison, const Style& style, bool shows_units);

/// For programs: docs/tidemark.1 lists the keys.
std::string comparison_json(const Comparison& comparison);

/// One line per strategy, with the keys of the JSON rows that are single values.
std::string comparison_csv(const Comparison& comparison);

/// For pull requests and notes.
std::string comparison_markdown(const Comparison& comparison);

// What both texts for people say.

/// The step as it runs: what was left to the framework or the model is filled in.
StepOptions resolved_step(const Comparison& comparison);

/// Model, step and card, one line each.
std::vector<std::string> describe_question(const Comparison& comparison);
std::string fits_text(const Report& row);
/// The reason, without the name of the strategy in front where that stands beside it.
std::string refusal_text(std::string_view strategy, std::string_view reason);

}  // namespace tidemark
