// DeBERTa's attention (arXiv 2006.03654): to the scores of contents are added those of contents
// with relative places, looked up by distance.
#pragma once

#include <string>

#include "traces/models/model_config.h"
#include "traces/trace_builder.h"

namespace tidemark {

/// Data of the step that all blocks read.
struct DebertaShared {
  TensorId mask;       ///< [batch, 1, tokens, tokens]
  TensorId distances;  ///< [1, tokens, tokens]
  TensorId places;     ///< the table of relative places [2·span, width]
};

/// x [batch, tokens, width] → the same, before the last product. Parameters are `name`.q, .k, .v,
/// and where contents and places do not share them .place_q and .place_k.
TensorId disentangled_attention(TraceBuilder& builder, const std::string& name, TensorId x,
                                const DebertaConfig& config, const DebertaShared& shared);

}  // namespace tidemark
