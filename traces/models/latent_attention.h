// DeepSeek's attention (arXiv 2405.04434): keys and values come out of a narrow tensor that all
// heads share, positions out of a part of each head.
#pragma once

#include "traces/models/attention.h"
#include "traces/models/decoder_parts.h"

namespace tidemark {

/// x [batch, tokens, width] → the same. `attention` has been settled, with its rotary tables.
TensorId latent_attention(TraceBuilder& builder, const std::string& name, TensorId x,
                          const LatentConfig& latent, const AttentionConfig& attention);

}  // namespace tidemark
