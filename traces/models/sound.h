// What an encoder of sound reads: a spectrogram, made to tokens by two convolutions.
#pragma once

#include <string>

#include "traces/trace_builder.h"

namespace tidemark {

/// An input [batch, bins, 2·tokens] → [batch, tokens, width], with a table of positions, sines and
/// cosines that are not trained, added to it. Convolutions along one axis are opaque ops.
TensorId sound_embedding(TraceBuilder& builder, const std::string& name, std::int64_t bins,
                         std::int64_t tokens, std::int64_t width);

}  // namespace tidemark
