// What a model is, one plain struct per family: the fields of its config file, in our words.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "traces/models/attention.h"
#include "traces/models/decoder_parts.h"
#include "traces/models/state_space.h"
#include "traces/rotary.h"
#include "traces/trace.h"

namespace tidemark {

/// Vision transformer, pre-norm (arXiv 2010.11929); DeiT (arXiv 2012.12877) is the same network,
/// DINOv2 (arXiv 2304.07193) scales each branch and classifies the mean of the patches, too.
struct VitConfig {
  std::int64_t image = 224, patch = 16, channels = 3;
  std::int64_t width = 768, depth = 12, heads = 12, mlp = 3072;
  std::int64_t classes = 1000;
  Head head = Head::ImageClassification;
  std::int64_t prefix_tokens = 1;  ///< class token, and DeiT's distillation token
  bool qkv_bias = true;
  double epsilon = 1e-6;
  double dropout = 0, attention_dropout = 0, drop_path = 0;
  bool drops_hidden = true;  ///< dropout after GELU too; Hugging Face has it after fc2 only
  bool packed_qkv = true;
  Unpacking unpacking = Unpacking::Split;
  bool scales_query = true;
  bool softmax_in_fp32 = false;  ///< and rounded to the dtype of q
  bool layer_scale = false;      ///< a weight per channel on what each branch adds
  bool gated_mlp = false;        ///< SwiGLU, gate and up in one product
  ActivationForm activation = ActivationForm::Gelu;  ///< of the other MLP
  bool pools_patches = false;  ///< the head reads the mean of the patches beside the class token
  bool mask_token = false;     ///< a parameter that a step of its own training uses, not this one
  bool stretches_positions = false;  ///< the table is the config's image's, whatever image comes
  bool ema = false;                  ///< the published recipe keeps a moving average of the weights

  bool operator==(const VitConfig&) const = default;
};

/// BEiT (arXiv 2106.08254): ViT with a bias of scores by relative places, and a weight per channel
/// on what each branch adds.
struct BeitConfig {
  std::int64_t image = 224, patch = 16, channels = 3;
  std::int64_t width = 768, depth = 12, heads = 12, mlp = 3072;
  std::int64_t classes = 2;
  bool mask_token = false;  ///< a parameter that this step does not use
  bool absolute_positions = false;
  bool biases_blocks = false;    ///< a table of relative places in each block
  bool biases_together = false;  ///< one for all blocks, looked up in each
  bool layer_scale = true;
  ActivationForm activation = ActivationForm::Gelu;
  bool pools_patches = true;  ///< their mean is normed, and the tokens are not; else class token
  double epsilon = 1e-12;
  double dropout = 0, attention_dropout = 0, drop_path = 0.1;
  Head head = Head::ImageClassification;

  bool operator==(const BeitConfig&) const = default;
};

/// Masked autoencoder (arXiv 2111.06377): an encoder of the patches that are not masked, and a
/// narrower decoder of all of them, which makes pixels.
struct VitMaeConfig {
  VitConfig encoder = {}, decoder = {};
  double mask_ratio = 0.75;
  bool norms_pixels = false;  ///< each patch of the target by itself
  Head head = Head::Pretraining;

  bool operator==(const VitMaeConfig&) const = default;
};

/// Pyramid vision transformer (arXiv 2102.12122) and its second version (arXiv 2106.13797). Keys
/// and values come out of a grid that a convolution, or a mean, has reduced.
struct PvtConfig {
  struct Stage {
    std::int64_t width = 64, depth = 2, heads = 1;
    double mlp_ratio = 8;
    std::int64_t kernel = 4, stride = 4;  ///< of the patches that it begins with
    std::int64_t reduction = 8;           ///< of the sides of the grid of keys

    bool operator==(const Stage&) const = default;
  };

  std::int64_t image = 224, channels = 3;
  std::vector<Stage> stages = {};
  bool overlaps = false;    ///< version 2: patches overlap, MLPs have a depthwise convolution
  bool pools_keys = false;  ///< version 2, linear: the keys' grid is a mean of 7 × 7
  bool qkv_bias = true;
  ActivationForm activation = ActivationForm::Gelu;
  double epsilon = 1e-6;
  double dropout = 0, attention_dropout = 0, drop_path = 0;
  std::int64_t classes = 2;
  Head head = Head::ImageClassification;

  bool operator==(const PvtConfig&) const = default;
};

/// Swin (arXiv 2103.14030): four stages, each half as wide in tokens and twice as wide in channels.
struct SwinConfig {
  std::int64_t image = 224, patch = 4, channels = 3;
  std::int64_t width = 96;  ///< of the first stage
  std::vector<std::int64_t> depths = {2, 2, 6, 2};
  std::vector<std::int64_t> heads = {3, 6, 12, 24};
  std::int64_t window = 7;  ///< tokens per side; odd blocks shift by half of it
  double mlp_ratio = 4;
  std::int64_t classes = 1000;
  Head head = Head::ImageClassification;
  bool qkv_bias = true;
  bool absolute_positions = false;
  ActivationForm activation = ActivationForm::Gelu;
  double epsilon = 1e-5;
  double dropout = 0, attention_dropout = 0, drop_path = 0.1;
  bool drops_hidden = true;   ///< as in VitConfig
  bool mlp_drop_path = true;  ///< Hugging Face drops the path of the attention half only
  bool packed_qkv = true;
  bool scales_query = true;
  bool fused_shift = true;  ///< one kernel shifts and cuts windows; otherwise roll, then copy
  bool checkpoints_stages = false;  ///< its own checkpointing wraps stages (Hugging Face)

  bool operator==(const SwinConfig&) const = default;
};

/// Multiscale vision transformer (arXiv 2104.11227) and its second version (arXiv 2112.01526).
struct MvitConfig {
  std::int64_t image = 224, channels = 3;
  std::int64_t stem_kernel = 7, stem_stride = 4, stem_padding = 3;
  std::int64_t width = 96, heads = 1;  ///< of the first stage; both double at each further stage
  std::vector<std::int64_t> depths = {1, 2, 11, 2};  ///< the first block of a later stage pools q
  std::int64_t pool_kernel = 3;
  std::int64_t key_stride = 4;  ///< pooling of keys and values in stage 1; halves at each stage
  double mlp_ratio = 4;
  std::int64_t classes = 1000;
  Head head = Head::ImageClassification;
  bool class_token = false;
  bool absolute_positions = false;
  bool relative_positions = true;   ///< decomposed: one table per axis, added to the scores
  bool pools_every_query = true;    ///< otherwise only where the grid halves
  bool residual_pooling = true;     ///< the pooled q is added to the attention's output
  bool widens_in_attention = true;  ///< otherwise in the MLP of the block before
  bool packed_qkv = true;
  double epsilon = 1e-6;
  double dropout = 0, drop_path = 0.1;

  bool operator==(const MvitConfig&) const = default;
};

/// BERT (arXiv 1810.04805), RoBERTa (1907.11692) and its kin XLM-R (1911.02116) and CamemBERT
/// (1911.03894), DistilBERT (1910.01108), ELECTRA (2003.10555) and Megatron-LM's BERT (1909.08053).
struct BertConfig {
  std::int64_t width = 768, depth = 12, heads = 12, mlp = 3072;
  std::int64_t vocabulary = 30522, positions = 512;
  std::int64_t token_types = 2;     ///< 0: no table of them
  std::int64_t first_position = 0;  ///< RoBERTa counts from its padding index + 1
  double epsilon = 1e-12;
  double dropout = 0.1, attention_dropout = 0.1;
  ActivationForm activation = ActivationForm::Gelu;
  bool scales_query = false;  ///< scale on q; otherwise on the scores
  bool drops_attention_output = true;
  bool electra = false;    ///< its own heads, and no call of fused attention
  bool distilled = false;  ///< DistilBERT, whose code names and masks otherwise
  bool megatron = false;   ///< norms before the branches and after the last block, packed q, k, v
  std::int64_t embedding_width = 0;  ///< of the tables, if a product goes from them (ELECTRA)
  bool has_pooler = true;            ///< otherwise a head that classifies brings its own layer
  bool tied_head = true;
  Head head = Head::MaskedLanguage;
  std::int64_t labels = 2;                        ///< classes of the heads that classify
  std::optional<double> classifier_dropout = {};  ///< before them; unset: the class's default
  double answer_dropout = 0;                      ///< before the head of question answering

  bool is_roberta() const { return first_position > 0; }
  bool operator==(const BertConfig&) const = default;
};

/// GPT-2 (OpenAI, 2019), pre-norm, learned positions.
struct Gpt2Config {
  std::int64_t width = 768, depth = 12, heads = 12, mlp = 3072;
  std::int64_t vocabulary = 50257, positions = 1024;
  double epsilon = 1e-5;
  double embedding_dropout = 0.1, residual_dropout = 0.1, attention_dropout = 0.1;
  ActivationForm activation = ActivationForm::GeluComposed;
  bool tied_head = true;
  Head head = Head::CausalLanguage;
  std::int64_t labels = 2;                        ///< classes of the heads that classify
  std::optional<double> classifier_dropout = {};  ///< before them; unset: the class's default

  bool operator==(const Gpt2Config&) const = default;
};

/// What has a name in a block's code until it returns. Attention: what the first norm and attention
/// give (StableLM). All: what any norm or branch gives, and parallel branches' norms come first
/// (Falcon).
enum class BlockNames : std::uint8_t { None, Attention, All };

/// What a block of one branch has.
enum class Mixer : std::uint8_t { StateSpace, Attention, Mlp, Experts };

/// Decoders, put together from the parts of decoder_parts.h and attention.h. The defaults are
/// LLaMA's (arXiv 2302.13971); Mistral (2310.06825), Qwen2 (2407.10671), Qwen3 (2505.09388), Gemma
/// (2403.08295, 2408.00118, 2503.19786), Phi (2309.05463, 2404.14219), GPT-NeoX (2204.06745), OPT
/// (2205.01068), StableLM (2402.17834), OLMo-2 and 3 (2501.00656), StarCoder2 (2402.19173),
/// Granite, Arcee, SmolLM3, Seed-OSS, EXAONE 4 (2507.11407), Hunyuan, GLM-4, ERNIE 4.5, Cohere, and
/// with experts Mixtral (2401.04088), Qwen-MoE and OLMoE (2409.02060) differ in fields only.
struct DecoderConfig {
  std::string_view family = "llama";
  std::int64_t width = 4096, depth = 32, heads = 32, mlp = 11008;
  std::int64_t key_heads = 32;  ///< fewer than heads: grouped-query attention
  std::int64_t head_width = 128;
  std::int64_t vocabulary = 32000, positions = 2048;
  std::int64_t sliding_window = 0;  ///< tokens that a token sees; 0 = all before it
  std::int64_t global_every = 0;    ///< n > 0: every n-th block has no window
  std::int64_t still_every = 0;     ///< n > 0: in every n-th block no head turns (SmolLM3)
  double epsilon = 1e-6;
  double attention_dropout = 0;
  double embedding_dropout = 0, residual_dropout = 0;
  bool drops_attention_output = true;  ///< residual_dropout after the attention, too
  bool qkv_bias = false, out_bias = false, mlp_bias = false, head_bias = false;
  NormForm norm = NormForm::Rms;
  BlockForm block = BlockForm::PreNorm;
  MlpForm mlp_form = MlpForm::Gated;
  ActivationForm activation = ActivationForm::Silu;
  ExpertsConfig experts = {};
  LatentConfig latent = {};
  std::vector<std::int64_t> dense_blocks = {};  ///< that have the plain MLP in spite of experts
  std::vector<Mixer> mixers = {};     ///< of blocks of one branch each (Nemotron-H); empty: of two
  StateSpaceConfig state_space = {};  ///< of those that have one
  std::int64_t further_tokens = 0;    ///< that Megatron-LM predicts
  std::vector<Mixer> further_mixers = {};  ///< of blocks of one branch each that predict one
  bool repeats_further = false;            ///< by the same parameters (mtp_use_repeated_layer)
  bool further_are_plain = false;          ///< by products that multiply no codes
  HeadNorm head_norm = HeadNorm::None;     ///< of q and k
  bool norms_turned = false;               ///< … once they have turned (Hunyuan)
  bool own_attention = false;              ///< calls PyTorch's attention by itself (StableLM)
  bool broadcasts_keys = false;            ///< as in AttentionConfig
  bool plain_scores = false;  ///< a mask for each sample, softmax in their own dtype (Falcon)
  bool own_loss = false;  ///< up to transformers 4.47, which calls logits in fp32 alike (Mistral)
  bool sums_from_left = false;     ///< x + F, then + G, of parallel branches (Cohere)
  bool has_sinks = false;          ///< as in AttentionConfig, whose code is not PyTorch's then
  bool tables_are_halves = false;  ///< a column per pair (gpt-oss)
  bool drops_sum = false;          ///< residual_dropout of both parallel branches together
  bool mlp_in_block = false;       ///< the block calls fc1 and fc2 itself (OPT)
  bool drops_inside = false;       ///< … of each branch before it returns (StarCoder2)
  BlockNames names = BlockNames::None;
  bool packed_qkv = false;
  Unpacking unpacking = Unpacking::Split;
  bool learned_positions = false;    ///< instead of rotation
  bool has_positions = true;         ///< else only the scans know what comes first
  std::int64_t first_position = 0;   ///< of learned ones
  std::int64_t embedding_width = 0;  ///< of the table, if products go from and to it (OPT-350M)
  std::int64_t rotary_width = 0;     ///< leading elements of a head that turn; 0 = all
  bool joins_nothing = false;        ///< as in AttentionConfig
  bool turns_pairs = false;          ///< as in AttentionConfig
  HeadTurn turn = HeadTurn::Halves;
  bool widens_rotated = false;   ///< as in AttentionConfig
  bool rotates_in_fp32 = false;  ///< the tables are fp32, q and k rounded after
  double embedding_factor = 1;   ///< of what the table holds
  bool table_scales = false;     ///< … by the table's own module (Gemma 3)
  double query_factor = 0, score_factor = 0, score_cap = 0;  ///< as in AttentionConfig
  double logit_cap = 0;                                      ///< as score_cap, of the logits
  double logit_factor = 1,
         branch_factor = 1;  ///< of the logits, and of what branches add (Granite)
  Rotary rotary = {};
  std::optional<Rotary> local_rotary = {};  ///< of blocks with a window
  bool tied_head = false;
  Head head = Head::CausalLanguage;
  std::int64_t labels = 2;                        ///< classes of the heads that classify
  std::optional<double> classifier_dropout = {};  ///< before them; unset: the class's default

  bool is_hybrid() const { return !mixers.empty(); }
  bool operator==(const DecoderConfig&) const = default;
};

/// T5 (arXiv 1910.10683) and its later version with gated MLPs, as FLAN-T5 (2210.11416) is: an
/// encoder, and a decoder that also attends to what the encoder made.
struct T5Config {
  std::int64_t width = 512, depth = 6, decoder_depth = 6, heads = 8, head_width = 64, mlp = 2048;
  std::int64_t vocabulary = 32128;
  std::int64_t buckets = 32;    ///< of differences between positions, each with a number per head
  std::int64_t farthest = 128;  ///< difference that has a bucket
  double epsilon = 1e-6, dropout = 0.1;
  MlpForm mlp_form = MlpForm::Plain;
  ActivationForm activation = ActivationForm::Relu;
  bool tied_head = true;  ///< and what goes into it is scaled by 1/√width
  Head head = Head::CausalLanguage;

  bool operator==(const T5Config&) const = default;
};

/// Megatron-LM's T5 (core/models/T5): layers of its GPT, of which the decoder's also attend to what
/// the encoder made; learned positions, the same for both.
struct MegatronT5Config {
  std::int64_t width = 768, depth = 12, decoder_depth = 12, heads = 12, head_width = 64, mlp = 3072;
  std::int64_t vocabulary = 29184, positions = 512;
  NormForm norm = NormForm::Layer;
  double epsilon = 1e-5, dropout = 0.1, attention_dropout = 0.1;
  MlpForm mlp_form = MlpForm::Plain;
  ActivationForm activation = ActivationForm::Gelu;
  bool bias = true;
  bool tied_head = true;  ///< … has a bias
  Head head = Head::CausalLanguage;

  bool operator==(const MegatronT5Config&) const = default;
};

/// BART (arXiv 1910.13461) and Whisper (2212.04356): an encoder of words or of sound, and a decoder
/// that also attends to what the encoder made; learned positions.
struct BartConfig {
  std::string_view family = "bart";
  std::int64_t width = 1024, vocabulary = 50265;
  std::int64_t depth = 12, heads = 16, mlp = 4096, positions = 1024;  ///< of the encoder
  std::int64_t decoder_depth = 12, decoder_heads = 16, decoder_mlp = 4096;
  std::int64_t decoder_positions = 1024;
  std::int64_t first_position = 2;  ///< rows of the tables that no token uses
  std::int64_t mel_bins = 0;        ///< of the sound; 0: the encoder reads words
  double dropout = 0.1, activation_dropout = 0, attention_dropout = 0;
  double embedding_factor = 1;  ///< of what the table of words holds
  ActivationForm activation = ActivationForm::Gelu;
  bool tied_head = true;
  Head head = Head::CausalLanguage;

  bool hears() const { return mel_bins > 0; }
  bool operator==(const BartConfig&) const = default;
};

/// ModernBERT (arXiv 2412.13663): an encoder of pre-norm blocks with rotation and gated MLPs, that
/// sees a window in all but every n-th of them.
struct ModernBertConfig {
  std::int64_t width = 768, depth = 22, heads = 12, mlp = 1152;
  std::int64_t vocabulary = 50368, positions = 8192;
  std::int64_t window = 128;  ///< tokens, half of them on each side
  std::int64_t global_every = 3;
  double epsilon = 1e-5;
  ActivationForm activation = ActivationForm::Gelu, head_activation = ActivationForm::Gelu;
  bool norm_bias = false, attention_bias = false, mlp_bias = false;
  bool classifier_bias = false, decoder_bias = true;
  double embedding_dropout = 0, attention_dropout = 0, mlp_dropout = 0;
  Rotary rotary = {.theta = 160'000}, local_rotary = {.theta = 10'000};
  bool tied_head = true;
  Head head = Head::MaskedLanguage;
  std::int64_t labels = 2;        ///< classes of the heads that classify
  double classifier_dropout = 0;  ///< before them
  bool pools_mean = false;        ///< a sequence's classes read the mean, not the first token

  bool operator==(const ModernBertConfig&) const = default;
};

/// DeBERTa-v2 and -v3 (arXiv 2006.03654, 2111.09543): post-norm like BERT, with scores of contents
/// and of relative places.
struct DebertaConfig {
  std::int64_t width = 1536, depth = 24, heads = 24, mlp = 6144;
  std::int64_t vocabulary = 128100, positions = 512;
  std::int64_t token_types = 0;      ///< 0: no table of them
  std::int64_t embedding_width = 0;  ///< of the tables, if a product goes from them
  std::int64_t span = 512;           ///< half the rows of the table of relative places; 0: none
  bool content_to_place = false, place_to_content = false;
  bool shares_projections = false;  ///< of contents and places
  bool norms_places = false;
  bool absolute_places = true;
  std::int64_t kernel = 0;  ///< of the convolution beside the first block; 0: none
  ActivationForm kernel_activation = ActivationForm::Gelu;
  ActivationForm activation = ActivationForm::Gelu, pooler_activation = ActivationForm::Gelu;
  double epsilon = 1e-7, dropout = 0.1, attention_dropout = 0.1;
  bool tied_head = true;
  Head head = Head::MaskedLanguage;
  std::int64_t labels = 2;                        ///< classes of the heads that classify
  std::optional<double> classifier_dropout = {};  ///< before them; unset: as elsewhere
  double pooler_dropout = 0;                      ///< of the first token

  bool operator==(const DebertaConfig&) const = default;
};

/// The towers of CLIP (arXiv 2103.00020) and SigLIP (2303.15343), of text or of images.
struct ClipConfig {
  std::string_view family = "clip";
  bool is_sigmoid = false;  ///< SigLIP
  bool sees = false;
  std::int64_t width = 512, depth = 12, heads = 8, mlp = 2048;
  std::int64_t vocabulary = 49408, positions = 77;     ///< of a tower of text
  std::int64_t image = 224, patch = 32, channels = 3;  ///< of one of images
  std::int64_t projection = 0;                         ///< what SigLIP's text ends in
  double epsilon = 1e-5, attention_dropout = 0;
  ActivationForm activation = ActivationForm::QuickGelu;
  std::int64_t classes = 2;
  Head head = Head::None;

  bool operator==(const ClipConfig&) const = default;
};

using ModelConfig =
    std::variant<VitConfig, SwinConfig, MvitConfig, BertConfig, Gpt2Config, T5Config,
                 ModernBertConfig, DebertaConfig, BeitConfig, VitMaeConfig, PvtConfig,
                 MegatronT5Config, BartConfig, ClipConfig, DecoderConfig>;

/// "vit", "swin", "mvit", "bert", "gpt2", "t5", …, or what a decoder or an encoder-decoder calls
/// itself.
std::string_view family_of(const ModelConfig& config);

/// An image has no sequence length, a text no pixels; Whisper's sound is as long as its config
/// says.
bool sees_images(const ModelConfig& config);
/// An encoder-decoder, which writes a second sequence.
bool writes_another(const ModelConfig& config);

/// As many as are read, unless it is said; of a sound as many as fit.
std::int64_t written_tokens(const BartConfig& config, const StepOptions& options);

/// The heads that a model of this kind can have; its usual one first.
std::span<const Head> heads_of(const ModelConfig& config);
Head head_of(const ModelConfig& config);

struct Model {
  std::string name;    ///< of the preset, or the path of the config file
  std::string family;  ///< family_of(config)
  std::string title;
  std::string source;
  ModelConfig config = {};
  std::string head_problem = {};  ///< why the config's own head cannot be built; "" if it can
  std::optional<Precision> precision = {};  ///< that of the config's weights, if it is not fp32
  std::vector<std::string> notes = {};      ///< what its reader should know, one line each
  std::string precision_note = {};          ///< …, where no precision is asked for; "" if nothing

  bool operator==(const Model&) const = default;
};

Trace build_vit(const std::string& model, const VitConfig& config, const StepOptions& options);
Trace build_swin(const std::string& model, const SwinConfig& config, const StepOptions& options);
Trace build_mvit(const std::string& model, const MvitConfig& config, const StepOptions& options);
Trace build_bert(const std::string& model, const BertConfig& config, const StepOptions& options);
Trace build_gpt2(const std::string& model, const Gpt2Config& config, const StepOptions& options);
Trace build_t5(const std::string& model, const T5Config& config, const StepOptions& options);
Trace build_megatron_t5(const std::string& model, const MegatronT5Config& config,
                        const StepOptions& options);
Trace build_bart(const std::string& model, const BartConfig& config, const StepOptions& options);
Trace build_modernbert(const std::string& model, const ModernBertConfig& config,
                       const StepOptions& options);
Trace build_deberta(const std::string& model, const DebertaConfig& config,
                    const StepOptions& options);
Trace build_clip(const std::string& model, const ClipConfig& config, const StepOptions& options);
Trace build_beit(const std::string& model, const BeitConfig& config, const StepOptions& options);
Trace build_vit_mae(const std::string& model, const VitMaeConfig& config,
                    const StepOptions& options);
Trace build_pvt(const std::string& model, const PvtConfig& config, const StepOptions& options);
Trace build_decoder(const std::string& model, const DecoderConfig& config,
                    const StepOptions& options);

/// The options with what the model says where they say nothing.
StepOptions completed(const Model& model, StepOptions options);

/// The model with the head that the options ask for. Throws UsageError if its kind has no such
/// head, InputError if none is asked for and the config's own is not modelled.
Model with_head(const Model& model, const StepOptions& options);

/// One training step of the model. Throws UsageError if the options contradict the config.
Trace build_trace(const Model& model, const StepOptions& options);

}  // namespace tidemark
