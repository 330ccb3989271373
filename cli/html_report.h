// A report in one HTML file that needs no network: text, tables and pictures of comparisons, for a
// screen of any width and for paper.
#pragma once

#include <span>
#include <string>

#include "simulator/compare.h"

namespace tidemark {

/// One comparison, or the points of a sweep.
std::string html_report(std::span<const Comparison> comparisons);

}  // namespace tidemark
