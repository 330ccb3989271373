// What Transformer Engine's attention does beside its kernels
// (pytorch/attention/dot_product_attention of TransformerEngine 2).
#pragma once

#include "traces/models/attention.h"

namespace tidemark {

/// q, k and v as its kernels take them: interleaved in one piece, as many heads of keys as of
/// queries, keys and values so beside q, or each in a piece of its own. Else each that is a part of
/// a larger piece is copied (get_qkv_layout() of utils.py). Other frameworks take them as they are.
Heads in_engine_layout(TraceBuilder& builder, const std::string& name, const Heads& heads);

/// Does its fused attention hand heads to flash-attn with the samples first, where the layers have
/// the tokens first? That copies q, k and v, and what comes out. cuDNN's attention, which it
/// prefers from compute capability 9.0 on, takes them as they are; with --deterministic-mode that
/// may not run on Blackwell (get_attention_backend() of utils.py, FlashAttention of backends.py
/// in 2.8 to 2.11).
bool puts_samples_first(const TraceBuilder& builder);
Heads with_samples_first(TraceBuilder& builder, const std::string& name, const Heads& heads);

/// UnfusedDotProductAttention's probabilities [batch, heads, tokens, keys], zero where the mask of
/// padding hides a key: which pairs those are is found anew in each layer (get_full_mask()), and
/// masked_fill() keeps it.
TensorId without_padding(TraceBuilder& builder, const std::string& name, TensorId weights,
                         TensorId mask);

}  // namespace tidemark
