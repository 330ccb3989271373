// BART and Whisper as in modeling_bart.py and modeling_whisper.py of Hugging Face transformers:
//   encoder: embed ─ { attention ─ add ─ norm ─ mlp ─ add ─ norm }
//   decoder: the same with { attention to the encoder's output ─ add ─ norm } in between
// is BART; Whisper norms before each branch and behind the last block, and its encoder hears.
#include <fmt/format.h>

#include <cmath>

#include "traces/models/decoder_parts.h"
#include "traces/models/language_model.h"
#include "traces/models/model_config.h"
#include "traces/models/sound.h"

namespace tidemark {
namespace {

struct Stack {
  TraceBuilder& b;
  const BartConfig& config;
  std::string name;
  std::int64_t depth, heads, mlp_width;
  TensorId memory;  ///< what the encoder made; no_tensor in the encoder itself
  AttentionConfig own = {}, cross = {};

  bool is_decoder() const { return memory != no_tensor; }

  TensorId normed(const std::string& which, TensorId x) const {
    return b.layer_norm(which, x, 1e-5);  // nn.LayerNorm's own
  }

  // Keys have no bias in Whisper, and q is scaled before the call.
  AttentionConfig attention() const {
    const std::int64_t head_width = config.width / heads;
    const double root = 1 / std::sqrt(static_cast<double>(head_width));
    return {.heads = heads,
            .head_width = head_width,
            .packed = false,
            .scales_query = false,
            .key_bias = !config.hears(),
            .dropout = b.dropout_probability(config.attention_dropout),
            .returns_weights = true,
            .by_shared_code = true,
            .masks_each_sample = true,
            .query_factor = config.hears() ? root : 0,
            .makes_dense = config.hears(),
            .score_factor = config.hears() ? 1 : root,
            .out_name = "o"};
  }

  // Scores in memory have a mask for each sample, which is made when the stack begins.
  void settle(AttentionConfig& of, const char* which, std::int64_t tokens,
              std::int64_t keys) const {
    const InputFill kind =
        of.causal ? InputFill(fill::CausalMask{}) : InputFill(fill::PaddingMask{});
    settle_attention(b, of, name + which, {1, 1, tokens, keys}, b.base_dtype(), kind);
  }

  // Whisper's sound is never padded, so that neither the encoder nor who listens to it has a mask.
  void settle(std::int64_t tokens) {
    own = cross = attention();
    cross.memory = memory;
    own.causal = is_decoder();
    own.is_unmasked = own.converts_mask = config.hears();
    if (config.hears()) cross.kernel = attention_kernel(b, cross, cross.head_width, false);
    if (config.hears() && !is_decoder())
      own.kernel = cross.kernel;
    else
      settle(own, ".mask", tokens, tokens);
    if (is_decoder() && !config.hears()) settle(cross, ".cross_mask", tokens, b.shape(memory)[1]);
  }

  // x + branch, with the norm before or behind.
  template <typename Branch>
  TensorId half(const std::string& which, TensorId x, Branch branch) const {
    const double dropout = b.dropout_probability(config.dropout);
    const bool first = config.hears();
    const TensorId read = first ? normed(which + "_norm", x) : x;
    const TensorId y = b.dropout(which + ".drop", branch(read), dropout);
    x = b.residual(which + ".add", x, y);
    return first ? x : normed(which + "_norm", x);
  }

  TensorId block(std::int64_t i, TensorId x) const {
    const std::string of_block = fmt::format("{}.blocks.{}", name, i);
    const auto attend = [&](const std::string& which, TensorId y, const AttentionConfig& with) {
      return half(which, y, [&](TensorId z) { return self_attention(b, which, z, with); });
    };
    const MlpConfig inside{.form = MlpForm::Plain,
                           .activation = config.activation,
                           .width = mlp_width,
                           .bias = true,
                           .dropout = b.dropout_probability(config.activation_dropout)};
    b.begin_block(of_block, x, is_decoder() ? -1 : 0);
    b.begin_function();  // whose names for the weights of both attentions last until it returns
    if (!is_decoder()) b.part(Part::F);
    x = attend(of_block + ".attn", x, own);
    if (is_decoder()) x = attend(of_block + ".cross", x, cross);
    if (!is_decoder()) b.part(Part::G);
    const std::string which = of_block + ".mlp";
    x = half(which, x, [&](TensorId z) { return mlp(b, which, z, inside); });
    b.end_function();
    b.end_block();
    return x;
  }

  TensorId operator()(TensorId x) {
    b.begin_function();
    settle(b.shape(x)[1]);
    for (std::int64_t i = 0; i < depth; ++i) x = block(i, x);
    if (config.hears()) x = normed(name + ".norm", x);
    b.end_function();
    return x;
  }
};

// Words and their places. BART scales what its table holds, if only by one, and norms the sum.
TensorId written(TraceBuilder& b, const std::string& name, TensorId table, TensorId ids,
                 std::int64_t rows, std::int64_t positions, const BartConfig& config) {
  const std::int64_t tokens = b.shape(ids)[1];
  const TensorId places = b.input(name + ".position_ids", {rows, tokens}, DType::Int64,
                                  fill::Positions{config.first_position});
  const TensorId places_table = b.parameter(name + ".position_embed.weight",
                                            {positions + config.first_position, config.width});
  TensorId x = b.embedding(name + ".embed", ids, table);
  if (!config.hears()) x = b.scale(name + ".embed.scale", x, config.embedding_factor);
  x = b.add(name + ".pos_add", x, b.embedding(name + ".position_embed", places, places_table));
  if (!config.hears()) x = b.layer_norm(name + ".embed_norm", x, 1e-5);
  return b.dropout(name + ".drop", x, b.dropout_probability(config.dropout));
}

TensorId heard(TraceBuilder& b, const BartConfig& config) {
  const TensorId x = sound_embedding(b, "encoder", config.mel_bins, config.positions, config.width);
  return b.dropout("encoder.drop", x, b.dropout_probability(config.dropout));
}

}  // namespace

// The length of a sound is not that of its text.
std::int64_t written_tokens(const BartConfig& config, const StepOptions& options) {
  StepOptions of_target = options;
  if (options.target_sequence) of_target.sequence = options.target_sequence;
  return sequence_length(of_target, config.decoder_positions, true);
}

Trace build_bart(const std::string& model, const BartConfig& config, const StepOptions& options) {
  TraceBuilder b(model, std::string(config.family), options);
  const std::int64_t batch = options.batch, width = config.vocabulary;
  const std::int64_t tokens = written_tokens(config, options);
  const TensorId table = b.parameter("embed.weight", {config.vocabulary, config.width});
  TensorId x = no_tensor;
  if (config.hears()) {
    x = heard(b, config);
  } else {
    const std::int64_t read = sequence_length(options, config.positions, true);
    const TensorId ids = b.input("input_ids", {batch, read}, DType::Int64, fill::Words{});
    x = written(b, "encoder", table, ids, batch, config.positions, config);
  }
  b.begin_function();  // whose name for all outputs lasts until the loss is there
  x = b.local(Stack{b, config, "encoder", config.depth, config.heads, config.mlp, no_tensor}(x));
  const TensorId targets =
      b.input("decoder_input_ids", {batch, tokens}, DType::Int64, fill::Words{});
  TensorId y = written(b, "decoder", table, targets, config.hears() ? batch : 1,
                       config.decoder_positions, config);
  y = b.local(Stack{b, config, "decoder", config.decoder_depth, config.decoder_heads,
                    config.decoder_mlp, x}(y));
  const TensorId labels = b.input("labels", {batch, tokens}, DType::Int64, fill::Words{});
  TensorId logits = vocabulary_head(b, "lm_head", y, config.tied_head ? table : no_tensor, width);
  if (!config.hears())
    logits = b.add("lm_head.bias", logits,
                   b.input("final_logits_bias", {1, 1, width}, b.base_dtype(), fill::Constant{0}));
  b.local(logits);
  const std::int64_t rows = batch * tokens;
  const TensorId loss = b.cross_entropy("loss", b.view("logits.rows", logits, {rows, width}),
                                        b.view("labels.rows", labels, {rows}));
  b.end_function();
  return b.finish(loss);
}

}  // namespace tidemark
