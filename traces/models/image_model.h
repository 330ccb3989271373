// What every image model starts with.
#pragma once

#include <cstdint>

#include "traces/step_options.h"

namespace tidemark {

/// Pixels per side: the option, or the config's. UsageError outside 1 to 2^20, below which no
/// number of tokens overflows.
std::int64_t image_size(const StepOptions& options, std::int64_t of_config);

}  // namespace tidemark
