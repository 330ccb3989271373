// Losses of pairs of which one is preferred, beside what a frozen reference says of them.
#pragma once

#include "traces/models/task_head.h"

namespace tidemark {

/// Direct preference optimization (arXiv 2305.18290, equation 7). `model` builds the decoder anew;
/// the second time as the reference, unless what that says is data. UsageError if the step trains
/// what the reference would need to be without and is not known.
TensorId preference_loss(TraceBuilder& builder, const std::function<HiddenWords()>& model,
                         const DecoderHead& head);

/// True for the op that scores them.
bool is_preference_loss(const OpaqueRow& row);

}  // namespace tidemark
