// What a config file does not say: batch, precision, what is trained and how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/expert_load.h"
#include "traces/framework.h"
#include "traces/head.h"
#include "traces/mesh.h"
#include "traces/optimizer.h"
#include "traces/sharding.h"

namespace tidemark {

enum class Attention : std::uint8_t { Sdpa, Math, Flash, MemoryEfficient };

inline constexpr std::array attentions = {
    Named{Attention::Sdpa, std::string_view("sdpa")},
    Named{Attention::Math, std::string_view("math")},
    Named{Attention::Flash, std::string_view("flash")},
    Named{Attention::MemoryEfficient, std::string_view("mem-efficient")}};
static_assert(is_in_order(attentions));

/// Which parameters are trained. LoRA adds A [r, in] and B [out, r] beside each target linear
/// (arXiv 2106.09685); LoRA-FA freezes A too (arXiv 2308.03303).
struct Tuning {
  enum class Kind : std::uint8_t {
    Full,
    Lora,
    LoraFa,
    Frozen,
    Prompt,  ///< embeddings of tokens in front of all others (arXiv 2104.08691)
    Prefix,  ///< keys and values in front of those of each block (arXiv 2101.00190)
  };
  Kind kind = Kind::Full;
  std::int64_t rank = 8;
  std::int64_t tokens = 0;      ///< that are learned: of Prompt and Prefix
  std::int64_t projection = 0;  ///< width inside of the MLP that makes a Prefix; 0: no MLP
  double dropout = 0;           ///< of what an adapter reads
  bool base_dtype = false;  ///< adapters have the base's dtype, whatever the framework's rule is
  bool magnitudes = false;  ///< DoRA: one is trained per output, too (arXiv 2402.09353)
  std::vector<std::string> targets =
      {};  ///< names of linears ("q", "v", "fc1", "all") or frozen globs
  std::vector<std::string> whole = {};  ///< modules trained as copies: peft's modules_to_save

  bool operator==(const Tuning&) const = default;
};

/// "full", "lora:r=4,targets=q,v", "lora:r=4,dropout=0.1,dtype=base,targets=all",
/// "prompt:tokens=20", "prefix:tokens=20,projection=512", "lora-fa:r=4,targets=all",
/// "lora:r=4,dora,targets=q,v,save=embed_tokens,lm_head", "frozen:embed*,blocks.0.*".
Tuning parse_tuning(std::string_view text);
std::string to_text(const Tuning& tuning);

/// Tokens per sample that run through the model beside its words.
constexpr std::int64_t prompt_tokens(const Tuning& tuning) {
  return tuning.kind == Tuning::Kind::Prompt ? tuning.tokens : 0;
}
/// Tokens per sample that only attention sees.
constexpr std::int64_t prefix_tokens(const Tuning& tuning) {
  return tuning.kind == Tuning::Kind::Prefix ? tuning.tokens : 0;
}

/// How a language model's logits are scored, where they never lie in memory as a whole.
struct TokenLoss {
  enum class Kind : std::uint8_t {
    Chunked,      ///< so many chunks of rows, each checkpointed
    FusedLinear,  ///< Liger's: gradients are made chunk by chunk while the loss is
    Dpo,          ///< of pairs, beside what a frozen reference says of them (arXiv 2305.18290)
    Fused,        ///< Transformer Engine's: the gradient is written over the logits
    Native,       ///< Megatron-LM's own in kernels that torch.compile makes: a bf16 gradient
  };
  static constexpr std::int64_t most_chunks = 16;
  Kind kind = Kind::FusedLinear;
  std::int64_t chunks = 0;   ///< of Chunked
  bool precomputed = false;  ///< of Dpo: what the reference says is data of the step

  bool operator==(const TokenLoss&) const = default;
};

/// "chunked:8", "fused-linear", "dpo", "dpo:precomputed", "fused", "native".
TokenLoss parse_token_loss(std::string_view text);
std::string to_text(const TokenLoss& loss);

/// What frozen linears of the base are stored as: bitsandbytes' formats (QLoRA, arXiv 2305.14314),
/// and torchao's.
enum class BaseWeights : std::uint8_t {
  Nf4,        ///< two elements per byte, an fp32 factor per block of 64
  Nf4Double,  ///< the factors in eight bits, too, with an fp32 factor per 256 of them
  Int8,       ///< a byte per element, an fp32 factor per row (arXiv 2208.07339)
  Fp8,        ///< a float of eight bits (e4m3) per element, an fp32 factor per row; torchao's
};

inline constexpr std::array base_weights = {
    Named{BaseWeights::Nf4, std::string_view("nf4")},
    Named{BaseWeights::Nf4Double, std::string_view("nf4-double")},
    Named{BaseWeights::Int8, std::string_view("int8")},
    Named{BaseWeights::Fp8, std::string_view("fp8")}};

/// Do they have linears of their own (bitsandbytes), or plain ones that read a weight made again?
constexpr bool has_own_linears(BaseWeights base) { return base != BaseWeights::Fp8; }

static_assert(is_in_order(base_weights));

/// What linears multiply in: codes that share factors, made anew at each cast. All but the first
/// are Transformer Engine's.
enum class LinearMath : std::uint8_t {
  Fp8,           ///< eight bits and a factor per tensor; also torchao's convert_to_float8_training
  Fp8Blockwise,  ///< … per 128 numbers, of weights per 128 × 128 (arXiv 2412.19437)
  MxFp8,         ///< … of eight bits per 32 numbers (OCP Microscaling 1.0; arXiv 2310.10537)
  NvFp4,         ///< four bits, a factor of eight bits per 16 numbers (arXiv 2509.25149)
};

inline constexpr std::array linear_maths = {
    Named{LinearMath::Fp8, std::string_view("fp8")},
    Named{LinearMath::Fp8Blockwise, std::string_view("fp8-blockwise")},
    Named{LinearMath::MxFp8, std::string_view("mxfp8")},
    Named{LinearMath::NvFp4, std::string_view("nvfp4")}};
static_assert(is_in_order(linear_maths));

struct CodedLinears {
  LinearMath math{};
  std::int64_t first = 0, last = 0;  ///< blocks at either end multiply in the precision's dtype

  bool operator==(const CodedLinears&) const = default;
};

/// "fp8", "nvfp4:first=1,last=14".
CodedLinears parse_coded_linears(std::string_view text);
std::string to_text(const CodedLinears& linears);
constexpr std::string_view to_string(LinearMath math) {
  return linear_maths[static_cast<std::size_t>(math)].name;
}

/// How context ranks, which have some tokens each, come to attend to all.
enum class ContextForm : std::uint8_t {
  AllGather,  ///< each gathers the keys and values of all tokens for its own queries
  AllToAll,   ///< ranks exchange heads: each has all tokens of some (arXiv 2309.14509)
  Ring,       ///< keys and values go from rank to rank beside the attention to those that came
};

inline constexpr std::array context_forms = {
    Named{ContextForm::AllGather, std::string_view("all-gather")},
    Named{ContextForm::AllToAll, std::string_view("all-to-all")},
    Named{ContextForm::Ring, std::string_view("ring")}};
static_assert(is_in_order(context_forms));

/// How ranks that share experts come to the tokens that visit theirs.
enum class ExpertForm : std::uint8_t {
  AllToAll,   ///< each sends visits to the ranks of their experts
  AllGather,  ///< each has all tokens, and adds up what all experts say of its own
};

inline constexpr std::array expert_forms = {
    Named{ExpertForm::AllToAll, std::string_view("all-to-all")},
    Named{ExpertForm::AllGather, std::string_view("all-gather")}};
static_assert(is_in_order(expert_forms));

/// Gradient accumulation: so many micro-batches add to the gradients before the optimizer updates.
struct MicroBatches {
  static constexpr std::int64_t most = 1024;
  std::int64_t count = 1;

  bool operator==(const MicroBatches&) const = default;
};

struct StepOptions {
  std::int64_t batch = 1;  ///< samples of one micro-batch
  MicroBatches accumulate = {};
  std::optional<std::int64_t> sequence = {};  ///< tokens per sample of a language model
  /// Tokens per sample that an encoder-decoder writes; unset: as many as it reads.
  std::optional<std::int64_t> target_sequence = {};
  std::optional<std::int64_t> image = {};       ///< pixels per side of a vision model
  std::optional<Head> head = {};                ///< unset: the model's own
  std::optional<Precision> precision = {};      ///< unset: the framework's default
  std::optional<Attention> attention = {};      ///< unset: sdpa, where the model's code calls it
  std::optional<std::int64_t> capability = {};  ///< 75, 80, …: whose kernels; unset: 80
  bool padded = false;  ///< batches hold padding, so that language models take a mask
  std::optional<TokenLoss> loss = {};          ///< unset: all logits at once
  std::optional<ExpertLoad> expert_load = {};  ///< of routers; unset: even
  bool liger = false;  ///< Liger's kernels where transformers composes, its loss among them
  Tuning tuning = {};
  std::optional<BaseWeights> base = {};      ///< unset: the precision's dtype
  std::optional<CodedLinears> linears = {};  ///< unset: the precision's dtype
  Optimizer optimizer = Optimizer::AdamW;
  std::optional<OptimizerForm> optimizer_form = {};  ///< unset: the optimizer's or the framework's
  bool update_in_backward = false;       ///< each weight as soon as its gradient is complete
  bool l2_decay = false;                 ///< weight decay is a term of the gradient
  bool master_weights = false;           ///< 16-bit weights have fp32 copies, and moments in fp32
  bool keep_gradients = false;           ///< zero_grad(set_to_none=False)
  std::optional<double> dropout = {};    ///< overrides every dropout probability of the config
  std::optional<double> drop_path = {};  ///< overrides its stochastic depth, that of the last block
  std::string framework = std::string(default_framework);
  std::optional<bool> ema = {};  ///< keep a moving average of the weights; unset: recipe
  bool ddp = false;              ///< one gradient bucket copy, as data-parallel wrappers
  Mesh mesh = {};                ///< of the job; the step is that of one rank
  std::optional<ContextForm> context_form = {};  ///< of its context ranks; unset: all-gather
  std::optional<ExpertForm> expert_form = {};    ///< of ranks that share experts; unset: all-to-all
  bool sequence_parallel = false;  ///< between the parts of a tensor-parallel block, too
  bool tp_overlap = false;  ///< exchanges between these parts run beside products (user buffers)
  std::optional<PipelineSchedule> schedule = {};  ///< of pipeline stages; unset: 1f1b
  std::optional<RankClass> rank = {};  ///< whose step it is; unset: the one that needs most
  std::optional<Sharding> shard = {};  ///< how its data-parallel ranks share; unset: ddp

  bool operator==(const StepOptions&) const = default;
};

/// Is the gradient of the logits written over them (--loss fused)?
bool has_fused_loss(const StepOptions& options);
bool has_native_loss(const StepOptions& options);
/// Are the samples pairs, of which one is preferred (--loss dpo)?
bool scores_pairs(const StepOptions& options);
/// Sequences of tokens that run through the model: a pair is two.
std::int64_t sequences_of(const StepOptions& options);

/// The precision that the options ask for, or the framework's default.
Precision precision_of(const StepOptions& options);

/// How the step's data-parallel ranks share what belongs to parameters; nothing if there is one.
std::optional<Sharding> sharing_of(const StepOptions& options);
/// Why no step of such a mesh is simulated, or "".
std::string mesh_defect(const StepOptions& options);
/// Why experts get their tokens otherwise than asked, or "".
std::string expert_form_defect(const StepOptions& options);
/// Why ranks do not share as asked in such a step, or "".
std::string sharing_defect(const StepOptions& options);

}  // namespace tidemark
