// Multi-head self-attention as the frameworks really run it: packed or separate projections,
// head-wise copies, where the scale is applied, materialized or fused scores.
#pragma once

#include "traces/models/sdpa.h"
#include "traces/trace_builder.h"

namespace tidemark {

/// How q, k and v come out of a packed projection. Each Select's gradient is a zero-filled tensor
/// of the packed size; a Split's is one concatenation.
enum class Unpacking : std::uint8_t {
  Split,
  Select,
  Slices,        ///< side by side, each selected; keys and values may have fewer heads (Phi-3)
  ByHead,        ///< each head's q, k and v beside each other, split (GPT-NeoX)
  SelectByHead,  ///< the same, selected (Falcon)
  OneKeyHead,    ///< q, then one head of keys and one of values, which are copied (Falcon 7B)
  Grouped,       ///< q, k and v of each group of heads, each copied for all of them (Falcon 40B)
};

/// Norms of q and k.
enum class HeadNorm : std::uint8_t {
  None,
  PerHead,          ///< of each head
  WholeWidth,       ///< of all heads together, before they are split (OLMo-2)
  LayerPerHead,     ///< LayerNorm of each head (Phi; Megatron-LM, unless its norms are RMSNorm)
  LayerOfEachHead,  ///< … with a weight of its own for each, and no bias (StableLM 2 12B)
  LayerComposed,    ///< the same in one call, op by op in fp32 (Cohere)
};

/// What turns together in a head.
enum class HeadTurn : std::uint8_t {
  Halves,            ///< elements half a head apart
  Neighbours,        ///< elements beside each other (Cohere)
  SpreadNeighbours,  ///< … by a number per pair, which a layer spreads over both (GLM-4, ERNIE)
};

struct AttentionConfig {
  std::int64_t heads = 1;
  std::int64_t key_heads = 0;    ///< 0 = heads
  std::int64_t head_width = 0;   ///< 0 = width / heads
  std::int64_t value_width = 0;  ///< of a head; 0 = as wide as q's (DeepSeek)
  std::int64_t window = 0;       ///< sliding window in tokens; 0 = none
  bool packed = true;            ///< one linear makes q, k and v
  Unpacking unpacking = Unpacking::Split;
  bool scales_query = true;  ///< scale on q; otherwise on the scores
  bool causal = false;
  bool qkv_bias = true;
  bool key_bias = true;  ///< if the others have one (Whisper's keys have none)
  bool out_bias = true;
  bool softmax_in_fp32 = false;                ///< scores upcast, as in LLaMA's eager code
  bool probabilities_as_query = false;         ///< probabilities are cast to the dtype of q
  double dropout = 0;                          ///< of the probabilities
  bool names_scores = false;                   ///< scaled scores stay until the attention returns
  bool names_products = false;                 ///< … before masks, until there are probabilities
  bool returns_weights = false;                ///< to a block that names them until it returns
  bool block_returns_weights = false;          ///< … and returns them, too
  bool calls_sdpa = true;                      ///< the code can call PyTorch's fused attention
  std::optional<AttentionKernel> kernel = {};  ///< what runs, if it is settled already
  bool by_shared_code = false;  ///< through transformers' sdpa_attention.py, not by the model's own
  bool dense_beside_mask = false;  ///< q, k and v become contiguous where there is a mask
  bool repeats_key_heads =
      false;  ///< the code repeats them whatever the framework's shared code does
  bool masks_each_sample = false;  ///< materialized scores have a mask of each sample
  bool clears_padding = false;     ///< of materialized probabilities, by the framework's code
  bool is_unmasked = false;        ///< nobody hands the model a mask (Whisper's decoder)
  bool converts_mask = false;      ///< a mask of booleans, which each call turns into numbers
  bool is_always_masked = false;   ///< fused kernels get a mask that hides nothing but later tokens
  TensorId memory = no_tensor;     ///< keys and values are made of it: cross-attention
  bool packs_memory = false;       ///< … by one product
  bool scales_scores = true;       ///< unless scales_query; T5's are left as they are
  bool adds_in_place = false;   ///< the bias to the scores, of which softmax reads an fp32 copy: T5
  TensorId bias = no_tensor;    ///< [1 or batch, heads, tokens, tokens], learned
  TensorId mask = no_tensor;    ///< constant, broadcast over the scores; or [windows, 1, tokens,
                                ///< tokens] where the batch is that of an image times its windows
  Prefix prefix = {};           ///< in front of keys and values
  TensorId cosine = no_tensor;  ///< rotary tables; no_tensor = none
  TensorId sine = no_tensor;
  std::int64_t rotary_width = 0;  ///< leading elements of a head that turn; 0 = all
  bool turns_pairs = false;       ///< neighbours are complex numbers, in fp32, by a table of both
                                  ///< waves (torchtitan)
  bool joins_nothing = false;     ///< a head that turns whole is joined with an empty rest (Phi-3)
  bool rounds_rotated = false;    ///< to the dtype before (OLMo-2)
  bool widens_rotated = false;    ///< q and k are cast to fp32 first (Cohere)
  HeadTurn turn = HeadTurn::Halves;
  HeadNorm head_norm = HeadNorm::None;
  bool norms_turned = false;  ///< q and k are normed behind the rotation, not before (Hunyuan)
  RmsGain head_gain = RmsGain::Rounded;
  double head_norm_epsilon = 1e-6;
  double query_factor = 0;       ///< of the projected q; 0 = none (OPT)
  bool has_sinks = false;        ///< a learned score of each head beside those of keys (gpt-oss)
  bool broadcasts_keys = false;  ///< one head of keys serves all in a product of its own (Falcon)
  bool makes_dense = false;      ///< separate q, k and v are copied head by head at once (Whisper)
  double score_factor = 0;       ///< of the scores; 0 = 1 / √d
  double out_dropout = 0;        ///< of what comes out, before the attention returns (StarCoder2)
  double score_cap = 0;  ///< c > 0: materialized scores become c · tanh(scores / c) (Gemma 2)
  std::string_view out_name = "proj";
};

/// What is added to scores that nobody may see: a number in fp32 of any distance between tokens.
inline constexpr double far_below = -1e9;

struct Heads {
  TensorId q, k, v;
};

/// A mask [1, 1, tokens, keys], once per sample of the batch.
TensorId for_all_samples(TraceBuilder& builder, const std::string& name, TensorId mask);

/// What runs where the mask is `masked` tensor or none: the model's eager code, or a kernel.
AttentionKernel attention_kernel(const TraceBuilder& builder, const AttentionConfig& config,
                                 std::int64_t head_width, bool masked);

/// x [batch, tokens, width] → q [batch, heads, tokens, d], k and v [batch, key heads, tokens, d].
Heads project_heads(TraceBuilder& builder, const std::string& name, TensorId x,
                    const AttentionConfig& config);

/// x [batch, tokens, width] → [batch, tokens, width]. Parameters are named
/// `name`.qkv (or .q, .k, .v) and `name`.`out_name`.
TensorId self_attention(TraceBuilder& builder, const std::string& name, TensorId x,
                        const AttentionConfig& config);

/// Scores, softmax and weighted sum of projected heads q [batch, heads, tokens, d], k and v
/// [batch, key heads, keys, d] → [batch, tokens, heads·d].
TensorId attention_core(TraceBuilder& builder, const std::string& name, TensorId q, TensorId k,
                        TensorId v, const AttentionConfig& config);

}  // namespace tidemark
