// The parts that decoders are put together from: norms, activations, feed-forward halves, and the
// ways in which a block puts them around its shortcut.
#pragma once

#include <optional>

#include "traces/trace_builder.h"

namespace tidemark {

enum class NormForm : std::uint8_t {
  Rms,         ///< LLaMA and most others
  RmsFp32,     ///< the weight multiplies before rounding: OLMo-2
  RmsOnePlus,  ///< so does 1 + the weight: Gemma
  RmsWide,     ///< so does an fp32 copy of the weight: NVIDIA's own file of Nemotron-H
  Layer,
  LayerNoBias,
  LayerComposed,  ///< without a bias, op by op in fp32: Cohere
};
constexpr RmsGain gain_of(NormForm form) {
  return form == NormForm::RmsOnePlus ? RmsGain::OnePlus
         : form == NormForm::RmsFp32  ? RmsGain::Fp32
         : form == NormForm::RmsWide  ? RmsGain::WideWeight
                                      : RmsGain::Rounded;
}

enum class ActivationForm : std::uint8_t {
  Silu,
  Gelu,
  GeluTanh,      ///< "gelu_pytorch_tanh": one kernel
  GeluComposed,  ///< "gelu_new": eight elementwise kernels
  QuickGelu,     ///< x · sigmoid(1.702 x), three elementwise kernels
  Relu,
  SquaredRelu,  ///< "relu2"
};

enum class MlpForm : std::uint8_t {
  Gated,        ///< down(f(gate(x)) · up(x))
  GatedPacked,  ///< the same, gate and up halves of one product (Phi-3)
  Plain,        ///< fc2(f(fc1(x)))
};

/// x + branch(…), for the attention, then for the MLP; N are norms.
enum class BlockForm : std::uint8_t {
  PreNorm,          ///< x + F(N(x))
  PostNorm,         ///< N(x + F(x))
  BranchNorm,       ///< x + N(F(x))
  SandwichNorm,     ///< x + N(F(N(x)))
  Parallel,         ///< x + F(N₁(x)) + G(N₂(x)), at once
  ParallelOneNorm,  ///< x + F(N(x)) + G(N(x))
};
constexpr bool is_parallel(BlockForm form) { return form >= BlockForm::Parallel; }

/// f(x), whose operators are called `name` and what they do.
TensorId activation(TraceBuilder& builder, const std::string& name, TensorId x,
                    ActivationForm form);

TensorId norm(TraceBuilder& builder, const std::string& name, TensorId x, NormForm form,
              double epsilon);

struct MlpConfig {
  MlpForm form = MlpForm::Gated;
  ActivationForm activation = ActivationForm::Silu;
  std::int64_t width = 0;  ///< inside
  bool bias = false;
  double dropout = 0;             ///< of what the last product reads
  bool reads_as_weights = false;  ///< … which is cast to the dtype of the weights, autocast or not
  double out_dropout = 0;         ///< of what comes out, before the MLP returns
  bool is_in_block = false;       ///< whose code gives fc1's output the name of what it reads
};

/// x [..., width] → [..., width]
TensorId mlp(TraceBuilder& builder, const std::string& name, TensorId x, const MlpConfig& config);

enum class RouterForm : std::uint8_t {
  Softmax,
  SigmoidOfGroups,  ///< each expert by itself, of the groups with the best two (DeepSeek-V3)
  SoftmaxOfPicked,  ///< softmax of the best scores, which have a bias (gpt-oss)
  SoftmaxSorted,    ///< tokens are sorted by expert, and weighted when all have answered (V2)
};

/// How the parts of heads turn that have positions.
enum class LatentTurn : std::uint8_t {
  Sorted,   ///< pairs lie beside each other and are sorted first (DeepSeek-V3)
  Complex,  ///< pairs are complex numbers in fp32 (DeepSeek-V2)
  Called,   ///< as Sorted, by Megatron-LM's code, which makes its tables in each call
  Fused,    ///< by Megatron-LM's kernels, which write whole keys, and values apart from them
};

/// Attention whose keys and values come out of a narrow tensor that all heads share
/// (arXiv 2405.04434).
struct LatentConfig {
  std::int64_t query_rank = 0;  ///< of q's narrow tensor; 0: q comes out of one product
  std::int64_t key_rank = 0;    ///< of that of keys and values; 0: not this attention
  std::int64_t plain_width = 128, rotary_width = 64;  ///< of a head of q and k
  std::int64_t value_width = 128;
  LatentTurn turn = LatentTurn::Sorted;
  std::optional<NormForm> norm = NormForm::Rms;  ///< of the narrow tensors, if they have any
  double epsilon = 1e-6;                         ///< of these; DeepseekV3RMSNorm's default

  bool operator==(const LatentConfig&) const = default;
};

/// A mixture of experts in the place of the MLP. Each token goes to the few that a router picks.
struct ExpertsConfig {
  std::int64_t count = 0;  ///< 0: no mixture
  std::int64_t per_token = 0;
  std::int64_t width = 0;         ///< inside of one
  std::int64_t shared_width = 0;  ///< inside of one that all tokens go to, behind a gate; 0 = none
  std::int64_t every = 1;         ///< n: in every n-th block
  bool renormalizes = false;      ///< the weights of those picked sum to 1
  bool gates_shared = true;       ///< the shared one stands behind a gate (Qwen2-MoE)
  bool float_shares = false;      ///< the weights stay fp32 (Mixtral's since transformers 5)
  bool is_grouped = true;         ///< Megatron-LM's are products of all (--moe-grouped-gemm)
  bool is_gated = true;           ///< … the MLP of each; else plain (Nemotron 3)
  bool wide_router = false;       ///< … its router computes in fp32 (--moe-router-dtype)
  std::int64_t latent = 0;        ///< width of what experts read and write; 0: the model's
  bool is_clamped = false;        ///< gate and up lie beside each other, are clamped, and have
                                  ///< biases, as all products do (gpt-oss)
  RouterForm router = RouterForm::Softmax;
  std::int64_t groups = 1, best_groups = 1;  ///< experts are picked from the best groups

  bool operator==(const ExpertsConfig&) const = default;
};

/// Tokens [rows, width] as experts read them, and what they answer as the block adds it: of another
/// width where `latent` is.
TensorId latent_in(TraceBuilder& builder, const std::string& name, TensorId tokens,
                   const ExpertsConfig& config);
TensorId latent_out(TraceBuilder& builder, const std::string& name, TensorId answers,
                    std::int64_t width, const ExpertsConfig& config);

/// x [batch, tokens, width] → the same, each expert with an equal share of the tokens.
TensorId mixture_of_experts(TraceBuilder& builder, const std::string& name, TensorId x,
                            const ExpertsConfig& config, ActivationForm activation);

/// The same as Megatron-LM's core runs it: `inside` says what one expert is, but for its width.
TensorId grouped_experts(TraceBuilder& builder, const std::string& name, TensorId x,
                         const ExpertsConfig& config, const MlpConfig& inside);

/// The same as transformers 5 runs it, with any router.
TensorId packed_experts(TraceBuilder& builder, const std::string& name, TensorId x,
                        const ExpertsConfig& config, ActivationForm activation);

/// The same with RouterForm::SoftmaxSorted.
TensorId sorted_experts(TraceBuilder& builder, const std::string& name, TensorId x,
                        const ExpertsConfig& config, ActivationForm activation);

}  // namespace tidemark
