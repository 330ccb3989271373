// What a deep-learning framework does beside the mathematics: which tensors it casts, copies and
// keeps. These rules are data: model builders read most, what writes gradients and updates the
// rest.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "traces/optimizer.h"

namespace tidemark {

enum class Precision : std::uint8_t { Fp32, Tf32, AmpFp16, AmpBf16, Bf16 };

inline constexpr std::array precisions = {Named{Precision::Fp32, std::string_view("fp32")},
                                          Named{Precision::Tf32, std::string_view("tf32")},
                                          Named{Precision::AmpFp16, std::string_view("amp-fp16")},
                                          Named{Precision::AmpBf16, std::string_view("amp-bf16")},
                                          Named{Precision::Bf16, std::string_view("bf16")}};
static_assert(is_in_order(precisions));
constexpr std::string_view to_string(Precision precision) {
  return precisions[static_cast<std::size_t>(precision)].name;
}
constexpr bool is_amp(Precision precision) {
  return precision == Precision::AmpFp16 || precision == Precision::AmpBf16;
}

/// What torchao's linears in eight bits do with the weight between forward and backward.
enum class Fp8Weight : std::uint8_t {
  Unknown,    ///< no such linears are known here
  Kept,       ///< its codes are kept: torchao 0.9, beside PyTorch 2.6
  MadeAgain,  ///< they are made again: torchao 0.18, beside PyTorch 2.15
};

struct Framework {
  std::string_view name;
  std::string_view title;
  std::string_view source;
  Precision default_precision = Precision::Fp32;
  bool counts_units = false;  ///< saved activations are published in units of a block's input

  // What autocast does.
  bool autocast_casts = true;    ///< casts are tensors of their own, kept if a backward needs them
  bool gelu_is_fp32 = false;     ///< gelu is on autocast's fp32 list
  bool norm_writes_fp32 = true;  ///< layer_norm under autocast returns fp32
  bool norm_reads_fp32 = false;  ///< norms upcast a 16-bit input and keep the fp32 copy
  bool autocast_emulates_bf16 = true;  ///< on devices without units for it; else it refuses
  bool picks_fused_attention = true;   ///< scaled_dot_product_attention chooses among kernels
  bool log_softmax_is_fp32 = false;    ///< of a loss; else it keeps the logits' dtype, then is cast

  // What the backward nodes keep.
  bool softmax_keeps_input = false;
  bool keeps_statistics = true;   ///< mean, 1/std, log-sum-exp, dropout masks, scalars
  bool composed_rms_norm = true;  ///< x·rstd, then ·weight, as two kernels that both keep a tensor
  bool composed_gelu_tanh = true;  ///< "gelu_new" written as eight elementwise kernels
  bool holds_locals = true;        ///< variables of a module's function live until it returns
  bool copies_heads = true;        ///< math attention copies q, k, v to [batch·heads, tokens, d]

  // What the code of a library of models does, by its version.
  bool vocabulary_loss = false;  ///< logits become fp32, and their softmax is written over them
  bool shifts_logits = true;     ///< language models copy logits[:, :-1] before the loss
  bool shifts_labels = false;  ///< they make all logits fp32, and shift a padded copy of the labels
  bool contiguous_heads = false;   ///< q, k and v are made contiguous for the fused kernel
  bool repeats_key_heads = true;   ///< grouped keys and values are repeated for it
  bool efficient_groups = false;   ///< memory-efficient attention takes grouped keys as they are
  bool masks_each_sample = false;  ///< decoders' eager scores get a mask of each sample
  bool shared_masks = false;       ///< … GPT-2's, too: masking_utils.py makes the masks of both
  bool mask_buffers = true;        ///< each of GPT-2's layers has a buffer of who may see whom
  bool packs_unmasked = false;     ///< a batch without a mask is taken for packed, and gets one
  bool one_hidden_name = false;  ///< ViT's layers call all that they make alike: a name lasts until
                                 ///< the next is made, not until the layer returns
  bool packs_vision_gate = true;     ///< one linear makes both halves of DINOv2's SwiGLU
  bool returns_weights = false;      ///< BERT's layers do, whoever asks: the encoder has a name for
                                     ///< them until the next layer returns
  bool vision_softmax_fp32 = false;  ///< probabilities of ViT's eager code are made in fp32
  bool adapters_fp32 = false;        ///< LoRA's weights are fp32 whatever the base's dtype is
  bool keeps_originals = false;      ///< beside modules that adapters' training copies: heads, too
  bool packed_experts = false;  ///< one parameter has the weights of all experts, whose rows are
                                ///< sorted for one grouped product
  /// StableLM, Qwen2-MoE, OLMoE, T5, Swin and BEiT call that of all others, too, and T5's head
  /// always shares the table of words.
  bool shared_attention = false;
  bool fuses_swiglu = false;  ///< SiLU of one half times the other is one kernel, which keeps what
                              ///< it reads alone (bias_swiglu_fusion)
  bool clears_padding = false;      ///< encoders' eager attention sets probabilities of padding to
                                    ///< zero, by a mask of pairs that each layer makes and keeps
  bool transformer_engine = false;  ///< layers are Transformer Engine's: norms keep 16 bits, heads
                                    ///< are copied that lie in no layout that its attention knows,
                                    ///< a loss in one kernel and products in 8 bits are there, and
                                    ///< products keep a workspace
  bool torchtitan = false;  ///< LLaMA's code is torchtitan's: heads turn as complex numbers, then
                            ///< keys are repeated, by token; names are given anew from block to
                            ///< block
  bool grouped_experts = false;  ///< tokens are sorted by expert, whose weights are products' one
                                 ///< operand; else one expert runs after the other

  Fp8Weight fp8_weight = Fp8Weight::Unknown;

  // How gradients and updates are stored.
  bool accumulates_in_place = true;  ///< a second gradient of one tensor is added into the first
  bool gradients_persist = false;    ///< zero_grad() keeps the gradient buffers between steps
  bool megatron = false;  ///< linears and loop are Megatron-LM's: products can add to main
                          ///< gradients, and stages name what they received last
  OptimizerForm optimizer_form = OptimizerForm::Foreach;
  bool norm_gradient_by_columns = false;  ///< dγ, dβ: one thread block per 32 columns, however
                                          ///< many rows there are
  bool blas_workspace_in_pool = true;     ///< cuBLAS workspaces come from the caching allocator
  bool blas_handle_per_thread = false;    ///< the backward's thread has a workspace of its own
  bool blas_workspace_per_call = false;   ///< … and go back to it with each call
  bool blackwell_workspace = false;  ///< they have 32 MiB on Blackwell, too, not on Hopper alone
  bool deterministic_workspace = false;  ///< CUBLAS_WORKSPACE_CONFIG=:4096:8: 32 MiB everywhere
  bool keeps_score_buffer = false;       ///< one of the largest scores stays between steps
  bool op_scratch = false;               ///< memory that kernels take while they run is known
  bool drops_idle_masks = false;  ///< all models leave out masks that fused attention needs not
  bool compiles = false;  ///< torch.compile: a compiler fuses ops and divides forward and backward
  bool compiles_blocks = false;  ///< … of each block by itself, between eager code

  bool operator==(const Framework&) const = default;
};

constexpr bool is_compiled(const Framework& framework) {
  return framework.compiles || framework.compiles_blocks;
}

const std::vector<Framework>& frameworks();

/// The row of what people install today.
inline constexpr std::string_view default_framework = "transformers-4.57";

/// By name; "torch-2" is the default row. UsageError with the known names otherwise.
const Framework& find_framework(std::string_view name);

}  // namespace tidemark
