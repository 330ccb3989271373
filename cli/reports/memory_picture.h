// Live memory over the step, drawn with characters:
//
//   6.3 GiB │      ▃▆█▅
//           │   ▂▅██████▆▃
//         0 │▄█████████████▇▆▅▅
//           └forward─┴backward─┴optimizer
#pragma once

#include <string>

#include "analysis/explanation.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {

std::string memory_picture(const Explanation& explanation, const Style& style);

/// The same of any timeline, without phases.
std::string memory_picture(const Schedule& schedule, const Timeline& timeline, const Style& style);

}  // namespace tidemark::cli
