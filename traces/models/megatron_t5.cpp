// T5 of Megatron-LM's core (core/models/T5/t5_model.py and t5_spec.py): both stacks have its GPT's
// layers, pre-norm, with learned places, and a norm behind the last:
//   encoder: embed ─ { norm ─ attention ─ add ─ norm ─ mlp ─ add } ─ norm
//   decoder: the same with { norm ─ attention to the encoder's output ─ add } in between
// One table of words and one of places serve both; the head that shares the words has a bias.
#include <fmt/format.h>

#include "traces/models/decoder_parts.h"
#include "traces/models/language_model.h"
#include "traces/models/model_config.h"

namespace tidemark {
namespace {

struct Tables {
  TensorId words, places;
};

struct MegatronStack {
  TraceBuilder& b;
  const MegatronT5Config& config;
  std::string name;
  TensorId memory;  ///< what the encoder made; no_tensor in the encoder itself

  bool is_decoder() const { return memory != no_tensor; }
  double dropout() const { return b.dropout_probability(config.dropout); }

  TensorId normed(const std::string& which, TensorId x) const {
    return norm(b, which, x, config.norm, config.epsilon);
  }

  AttentionConfig attention() const {
    return {.heads = config.heads,
            .head_width = config.head_width,
            .unpacking = Unpacking::Slices,
            .scales_query = false,
            .qkv_bias = config.bias,
            .out_bias = config.bias,
            .dropout = b.dropout_probability(config.attention_dropout),
            .names_products = true,
            .returns_weights = true,
            .out_name = "o"};
  }

  // Transformer Engine takes which tokens are padding, its own modules which pairs hold any; the
  // decoder's own attention masks the future by itself (config_attention_mask() of t5_dataset.py).
  AttentionConfig hiding_padding(const char* which, std::int64_t queries, std::int64_t keys) const {
    AttentionConfig found = attention();
    const bool of_pairs = !b.framework().transformer_engine;
    settle_attention(b, found, name + which, {b.step().batch, 1, of_pairs ? queries : 1, keys},
                     b.base_dtype(), fill::PaddingMask{});
    found.clears_padding = b.framework().clears_padding && found.mask != no_tensor;
    return found;
  }

  AttentionConfig own_attention(std::int64_t tokens) const {
    if (!is_decoder()) return hiding_padding(".mask", tokens, tokens);
    AttentionConfig found = attention();
    found.causal = true;
    settle_attention(b, found, name + ".mask", {1, 1, tokens, tokens}, b.base_dtype(),
                     fill::CausalMask{});
    return found;
  }

  AttentionConfig cross_attention(std::int64_t tokens) const {
    AttentionConfig found = hiding_padding(".cross_mask", tokens, b.shape(memory)[1]);
    found.memory = memory;
    found.packed = false;
    found.packs_memory = true;
    return found;
  }

  template <typename Branch>
  TensorId half(const std::string& which, TensorId x, Branch branch) const {
    const TensorId y = b.dropout(which + ".drop", branch(normed(which + "_norm", x)), dropout());
    return b.residual(which + ".add", x, y);
  }

  TensorId block(std::int64_t i, TensorId x, const AttentionConfig& own,
                 const AttentionConfig& cross) const {
    const std::string of_block = fmt::format("{}.blocks.{}", name, i);
    const auto attend = [&](const std::string& which, TensorId y, const AttentionConfig& with) {
      return half(which, y, [&](TensorId z) { return self_attention(b, which, z, with); });
    };
    const MlpConfig inside{.form = config.mlp_form,
                           .activation = config.activation,
                           .width = config.mlp,
                           .bias = config.bias};
    b.begin_block(of_block, x, is_decoder() ? -1 : 0);
    b.begin_function();
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

  TensorId embedded(TensorId ids, const Tables& tables) const {
    const TensorId places = b.input(name + ".position_ids", {b.shape(ids)[0], b.shape(ids)[1]},
                                    DType::Int64, fill::Positions{0});
    TensorId x = b.embedding(name + ".embed", ids, tables.words);
    x = b.add(name + ".pos_add", x, b.embedding(name + ".position_embed", places, tables.places));
    return b.dropout(name + ".drop", x, dropout());
  }

  TensorId operator()(TensorId ids, const Tables& tables, std::int64_t depth) const {
    b.begin_function();
    const std::int64_t tokens = b.shape(ids)[1];
    TensorId x = embedded(ids, tables);
    const AttentionConfig own = own_attention(tokens);
    const AttentionConfig cross = is_decoder() ? cross_attention(tokens) : own;
    for (std::int64_t i = 0; i < depth; ++i) x = block(i, x, own, cross);
    x = normed(name + ".norm", x);
    b.end_function();
    return x;
  }
};

}  // namespace

Trace build_megatron_t5(const std::string& model, const MegatronT5Config& config,
                        const StepOptions& options) {
  TraceBuilder b(model, "megatron-t5", options);
  const std::int64_t read = sequence_length(options, config.positions, true);
  StepOptions of_target = options;
  of_target.sequence = options.target_sequence.value_or(read);
  const std::int64_t written = sequence_length(of_target, config.positions, true);
  const std::int64_t batch = options.batch, words = config.vocabulary;
  const TensorId ids = b.input("input_ids", {batch, read}, DType::Int64, fill::Words{});
  const TensorId targets =
      b.input("decoder_input_ids", {batch, written}, DType::Int64, fill::Words{});
  const TensorId labels = b.input("labels", {batch, written}, DType::Int64, fill::Words{});
  const Tables tables{b.parameter("embed.weight", {words, config.width}),
                      b.parameter("position_embed.weight", {config.positions, config.width})};
  b.begin_function();  // whose name for all outputs lasts until the loss is there
  const TensorId memory =
      b.local(MegatronStack{b, config, "encoder", no_tensor}(ids, tables, config.depth));
  const TensorId x =
      b.local(MegatronStack{b, config, "decoder", memory}(targets, tables, config.decoder_depth));
  const TensorId logits =
      b.local(config.tied_head ? vocabulary_head(b, "lm_head", x, tables.words, words,
                                                 b.parameter("lm_head.bias", {words}))
                               : vocabulary_head(b, "lm_head", x, no_tensor, words));
  const std::int64_t rows = batch * written;
  const TensorId loss = b.cross_entropy("loss", b.view("logits.rows", logits, {rows, words}),
                                        b.view("labels.rows", labels, {rows}));
  b.end_function();
  return b.finish(loss);
}

}  // namespace tidemark
