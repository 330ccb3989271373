// What every image model starts with.
#pragma once

#include <cstdint>

#include "traces/trace_builder.h"

namespace tidemark {

/// Pixels per side: the option, or the config's. UsageError outside 1 to 2^20, below which no
/// number of tokens overflows.
std::int64_t image_size(const StepOptions& options, std::int64_t of_config);

/// UsageError if patches do not fill the image.
std::int64_t patches_per_side(std::int64_t image, std::int64_t patch);

/// A table of positions: that of `of_table`² patches, for an image of `side`².
struct PositionTable {
  std::int64_t of_table, side, prefix, width;
};

/// A parameter [1, prefix + of_table², width]; for another image its grid is stretched, in fp32
/// (transformers' interpolate_pos_encoding()). Prefix tokens keep their own rows.
TensorId stretched_positions(TraceBuilder& builder, const std::string& name,
                             const PositionTable& table);

/// The class of each image, where the head reads any.
TensorId image_targets(TraceBuilder& builder, Head head);

}  // namespace tidemark
