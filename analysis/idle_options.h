// Options that say how ranks work together where there is one of them.
#pragma once

#include <string>
#include <vector>

#include "traces/step_options.h"

namespace tidemark {

/// A line for each option that is set and changes nothing with the step's mesh.
std::vector<std::string> idle_options(const StepOptions& step);

}  // namespace tidemark
