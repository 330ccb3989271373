// What every image model starts with.
#pragma once

#include <cstdint>

#include "traces/trace_builder.h"

namespace tidemark {

/// Pixels per side: the option, or the config's. UsageError outside 1 to 2^20, below which no
/// number of tokens overflows.
std::int64_t image_size(const StepOptions& options, std::int64_t of_config);

/// The class of each image, where the head reads any.
TensorId image_targets(TraceBuilder& builder, Head head);

}  // namespace tidemark
