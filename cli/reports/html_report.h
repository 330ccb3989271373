// A report in one HTML file that needs no network: text, tables and pictures of comparisons, for a
// screen of any width and for paper.
#pragma once

#include <span>
#include <string>

#include "analysis/comparison.h"

namespace tidemark::cli {

/// One comparison, or the points of a sweep.
/// The page opens with the step of strategy `first`, if it shows that one; else with the first.
std::string html_report(std::span<const Comparison> comparisons, std::string_view first = "");

}  // namespace tidemark::cli
