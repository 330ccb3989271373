// LLaMA 3 by torchtitan's own code (torchtitan/models/llama/model.py and train.py of
// pytorch/torchtitan a3e09ad7, February 2025).
#pragma once

#include "traces/models/attention.h"

namespace tidemark {

struct DecoderConfig;
struct Model;

/// Is it LLaMA 3, of any sizes?
bool is_titans_llama(const DecoderConfig& config);

/// Why torchtitan has no such network or step, or "".
std::string titan_defect(const Model& model, const StepOptions& step);

/// x [..., d] in fp32, whose neighbours are complex numbers, times waves [tokens, d].
TensorId turn_pairs(TraceBuilder& builder, const std::string& name, TensorId x, TensorId waves);

/// q and k turned, then k and v repeated for all heads of q. Called in the attention's function.
Heads titan_heads(TraceBuilder& builder, const std::string& name, const Heads& projected,
                  TensorId waves);

}  // namespace tidemark
