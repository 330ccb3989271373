// T5 as in modeling_t5.py of Hugging Face transformers, which has no attention but its own up to
// version 4:
//   encoder: embed ─ { norm ─ attention ─ add ─ norm ─ mlp ─ add } ─ norm
//   decoder: the same with { norm ─ attention to the encoder's output ─ add } in between
// A bias for each head and each difference of positions is made once per stack, and added to the
// scores of all its blocks. Fused attention takes one tensor to add, so that each block makes that
// of bias and mask (create_position_bias_mask() of sdpa_attention.py).
#include <cmath>

#include "traces/models/attention.h"
#include "traces/models/decoder_parts.h"
#include "traces/models/language_model.h"
#include "traces/models/masks.h"
#include "traces/models/model_config.h"

namespace tidemark {
namespace {

struct T5Stack {
  TraceBuilder& b;
  const T5Config& config;
  std::string name;
  double dropout;

  TensorId normed(const std::string& which, TensorId x) const {
    return b.rms_norm(which, x, config.epsilon, RmsGain::KeepsInput);
  }

  TensorId dropped(const std::string& which, TensorId x) const {
    return b.dropout(which + ".drop", x, dropout);
  }

  // What the shared attention of transformers 5 adds to scores apart.
  bool adds_masks_apart() const { return b.framework().shared_attention; }

  // Nobody says of a decoder's words which are padding. Fused attention takes booleans.
  TensorId mask_of(const char* which, const Shape& shape, const InputFill& kind) const {
    if (!adds_masks_apart()) return no_tensor;
    AttentionConfig of;
    of.kernel = attention_kernel(b, of, config.head_width, true);
    of.masks_each_sample = true, of.calls_sdpa = false;
    if (*of.kernel == AttentionKernel::Eager) {
      settle_attention(b, of, name + which, shape, b.base_dtype(), kind);
      return of.mask;
    }
    const bool is_causal = std::holds_alternative<fill::CausalMask>(kind);
    if (!is_causal && !b.step().padded) return no_tensor;
    if (*of.kernel == AttentionKernel::Composed || !makes_masks(b))
      return b.local(made_mask(b, name + which, shape, b.compute_dtype(), kind));
    return b.local(is_causal ? later_pairs(b, name + which, shape)
                             : hidden_pairs(b, name + which, shape, kind));
  }

  // One for each query and key: the first block's code makes them, of each step, and they last as
  // long as the table's gradient needs them. All rows of them are pieces of one line of distances,
  // each a place before the last: rows of 2 · tokens, read as rows of one less.
  TensorId buckets(std::int64_t tokens, const fill::RelativeBuckets& kind) const {
    const std::string which = name + ".buckets";
    const Shape pairs = {tokens * tokens};
    if (!makes_masks(b)) return b.input(which, pairs, DType::Int64, kind);
    const std::int64_t count = tokens * (2 * tokens - 1);
    const TensorId line = b.input(which + ".line", {1, 2 * tokens}, DType::Int64, kind);
    const TensorId lines = b.concat(which + ".lines", std::array{line}, {tokens, 2 * tokens});
    const TensorId shifted =
        b.select(which + ".shifted", b.view(which + ".all", lines, {2 * tokens * tokens}), {count},
                 LayoutTransform::Slice, tokens);
    const TensorId rows = b.view(which + ".rows", shifted, {tokens, 2 * tokens - 1});
    return b.view(which, b.copy(which + ".pairs", rows, {tokens, tokens}, LayoutTransform::Slice),
                  pairs);
  }

  // Of each sample, whether anything is padded or not.
  TensorId own_mask(std::int64_t tokens, bool is_causal) const {
    const std::string which = name + ".mask";
    const std::int64_t batch = b.step().batch;
    const DType dtype = b.base_dtype();
    if (!makes_masks(b))
      return is_causal ? b.input(which, {batch, 1, tokens, tokens}, dtype, fill::CausalMask{})
                       : b.input(which, {batch, 1, 1, tokens}, dtype, fill::PaddingMask{});
    if (!is_causal) return b.local(padding_of_pairs(b, which, {batch, 1, 1, tokens}, dtype));
    const TensorId of_one = made_mask(b, which, {1, 1, tokens, tokens}, dtype, fill::CausalMask{});
    return b.local(for_all_samples(b, which + ".samples", of_one));
  }

  // [batch, heads, tokens, tokens]: the mask of padding is part of it, for each sample.
  TensorId self_bias(std::int64_t tokens, bool is_causal) const {
    const std::string table_name = name + ".relative_bias";
    const TensorId places = buckets(tokens, {config.buckets, config.farthest, !is_causal});
    const TensorId table = b.parameter(table_name + ".weight", {config.buckets, config.heads});
    const TensorId biases =
        b.view(table_name + ".heads", b.embedding(table_name, places, table),
               {1, config.heads, tokens, tokens}, LayoutTransform::ChannelsFirst);
    if (adds_masks_apart()) return b.local(biases);
    return b.local(b.add(name + ".bias", biases, own_mask(tokens, is_causal)));
  }

  // Zeros, and the mask of the encoder's padding. Beside the model's own checkpointing zeros have a
  // gradient (simulator/strategies/input_gradients.cpp).
  TensorId cross_bias(std::int64_t tokens, TensorId memory) const {
    const std::string which = name + ".cross_bias";
    const std::int64_t keys = b.shape(memory)[1], batch = b.step().batch;
    const auto zeros = [&](const std::string& of, std::int64_t samples, DType dtype) {
      const OutputSpec made{"", {samples, config.heads, tokens, keys}, dtype};
      return b.opaque(of, std::array{memory}, std::span(&made, 1),
                      {.operation = "aten::zeros", .computes = Formula::Zeros});
    };
    if (adds_masks_apart()) return b.local(zeros(which, 1, b.compute_dtype()));
    if (!makes_masks(b)) return b.local(zeros(which, batch, b.base_dtype()));
    const TensorId mask =
        b.local(padding_of_pairs(b, name + ".cross_mask", {batch, 1, 1, keys}, b.base_dtype()));
    const TensorId unmasked = zeros(which + ".zeros", 1, b.compute_dtype());
    return b.local(b.add(which, b.cast(which + ".wide", unmasked, b.base_dtype()), mask));
  }

  /// What is added to scores.
  struct Added {
    TensorId bias, mask;
  };

  TensorId attend(const std::string& which, TensorId x, const Added& added, TensorId memory) const {
    const bool is_own = !adds_masks_apart();
    const AttentionConfig attention{.heads = config.heads,
                                    .head_width = config.head_width,
                                    .packed = false,
                                    .scales_query = false,
                                    .qkv_bias = false,
                                    .out_bias = false,
                                    .softmax_in_fp32 = is_own,
                                    .probabilities_as_query = is_own,
                                    .dropout = dropout,
                                    .names_scores = is_own,
                                    .returns_weights = !is_own,
                                    .calls_sdpa = !is_own,
                                    .by_shared_code = !is_own,
                                    .memory = memory,
                                    .scales_scores = !is_own,
                                    .adds_in_place = is_own,
                                    .bias = added.bias,
                                    .mask = added.mask,
                                    .score_factor = 1,
                                    .out_name = "o"};
    const TensorId y = self_attention(b, which, normed(which + "_norm", x), attention);
    return b.residual(which + ".add", x, dropped(which, y));
  }

  TensorId feed(const std::string& which, TensorId x) const {
    const MlpConfig inside{.form = config.mlp_form,
                           .activation = config.activation,
                           .width = config.mlp,
                           .dropout = dropout,
                           .reads_as_weights = true};
    const TensorId y = mlp(b, which, normed(which + "_norm", x), inside);
    return b.residual(which + ".add", x, dropped(which, y));
  }

  // A decoder's block has three branches, so no coupling inverts it.
  TensorId block(std::int64_t i, TensorId x, const Added& own, const Added& cross,
                 TensorId memory) const {
    const std::string of_block = name + ".blocks." + std::to_string(i);
    const bool is_decoder = memory != no_tensor;
    b.begin_block(of_block, x, is_decoder ? -1 : 0);
    b.begin_function();  // which names what its attentions return
    if (!is_decoder) b.part(Part::F);
    x = attend(of_block + ".attn", x, own, no_tensor);
    if (is_decoder) x = attend(of_block + ".cross", x, cross, memory);
    if (!is_decoder) b.part(Part::G);
    x = feed(of_block + ".mlp", x);
    b.end_function();
    b.end_block();
    return x;
  }

  TensorId operator()(TensorId ids, TensorId table, std::int64_t depth, TensorId memory) const {
    b.begin_function();
    const std::int64_t tokens = b.shape(ids)[1];
    const bool is_decoder = memory != no_tensor;
    TensorId x = dropped(name + ".embed", b.local(b.embedding(name + ".embed", ids, table)));
    const InputFill kind =
        is_decoder ? InputFill(fill::CausalMask{}) : InputFill(fill::PaddingMask{});
    Added own{no_tensor, mask_of(".mask", {1, 1, tokens, tokens}, kind)};
    Added cross{no_tensor, no_tensor};
    own.bias = self_bias(tokens, is_decoder);
    if (is_decoder) {
      cross.mask = mask_of(".cross_mask", {1, 1, tokens, b.shape(memory)[1]}, fill::PaddingMask{});
      cross.bias = cross_bias(tokens, memory);
    }
    for (std::int64_t i = 0; i < depth; ++i) x = block(i, x, own, cross, memory);
    x = dropped(name + ".norm", normed(name + ".norm", x));
    b.end_function();
    return x;
  }
};

}  // namespace

Trace build_t5(const std::string& model, const T5Config& config, const StepOptions& options) {
  constexpr std::int64_t usual_tokens = 512;  // that it was trained with
  TraceBuilder b(model, "t5", options);
  const std::int64_t tokens = sequence_length(options, usual_tokens, false);
  StepOptions of_target = options;
  of_target.sequence = options.target_sequence.value_or(tokens);
  const std::int64_t written = sequence_length(of_target, usual_tokens, false);
  const double dropout = b.dropout_probability(config.dropout);
  const TensorId ids = b.input("input_ids", {options.batch, tokens}, DType::Int64, fill::Words{});
  const TensorId targets =
      b.input("decoder_input_ids", {options.batch, written}, DType::Int64, fill::Words{});
  const TensorId labels = b.input("labels", {options.batch, written}, DType::Int64, fill::Words{});
  const TensorId table = b.parameter("embed.weight", {config.vocabulary, config.width});
  b.begin_function();  // whose name for all outputs lasts until the loss is there
  const TensorId memory =
      b.local(T5Stack{b, config, "encoder", dropout}(ids, table, config.depth, no_tensor));
  TensorId x =
      b.local(T5Stack{b, config, "decoder", dropout}(targets, table, config.decoder_depth, memory));
  if (config.tied_head)
    x = b.scale("head.scale", x, 1 / std::sqrt(static_cast<double>(config.width)));
  // The config's field says whether x is scaled; transformers 5 shares the table in any case.
  const bool is_shared = config.tied_head || b.framework().shared_attention;
  const TensorId logits =
      b.local(vocabulary_head(b, "lm_head", x, is_shared ? table : no_tensor, config.vocabulary));
  const std::int64_t rows = options.batch * written;
  const TensorId loss =
      b.cross_entropy("loss", b.view("logits.rows", logits, {rows, config.vocabulary}),
                      b.view("labels.rows", labels, {rows}));
  b.end_function();
  return b.finish(loss);
}

}  // namespace tidemark
