// An explanation, or what is known about one tensor or op, for people and for programs.
#pragma once

#include <string>

#include "analysis/explanation.h"
#include "analysis/item_facts.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {

/// Lists the `top` largest tensors at the peak.
std::string explanation_table(const Explanation& explanation, const Style& style, std::size_t top);
/// Lists all of them.
std::string explanation_json(const Explanation& explanation);

std::string item_table(const Explanation& explanation, const ItemFacts& facts, const Style& style);
std::string item_json(const Explanation& explanation, const ItemFacts& facts);

/// Headlines: the scenario, the strategy, and what it gains against vanilla.
std::string explanation_head(const Explanation& explanation, const Style& style);

}  // namespace tidemark::cli
