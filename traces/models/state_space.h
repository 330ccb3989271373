// Mamba-2's layer (arXiv 2405.21060), in the place of attention.
#pragma once

#include "traces/trace_builder.h"

namespace tidemark {

struct StateSpaceConfig {
  std::int64_t heads = 0;  ///< 0: no such layers
  std::int64_t head_width = 64;
  std::int64_t groups = 8;   ///< of heads that share B and C, and of columns of the norm
  std::int64_t state = 128;  ///< numbers per column of a head
  std::int64_t kernel = 4;   ///< tokens that the convolution reads
  std::int64_t chunk = 128;  ///< tokens that a product of the scan serves at once

  std::int64_t inner() const { return heads * head_width; }
  bool operator==(const StateSpaceConfig&) const = default;
};

/// x [batch, tokens, width] → the same. Throws UsageError where the options ask for what its
/// kernels are not known to do.
TensorId state_space(TraceBuilder& builder, const std::string& name, TensorId x,
                     const StateSpaceConfig& config);

}  // namespace tidemark
