// The towers of CLIP and SigLIP as in modeling_clip.py and modeling_siglip.py of Hugging Face
// transformers: pre-norm blocks on words or on patches, and one vector for the whole.
#include <fmt/format.h>

#include "traces/models/attention_pool.h"
#include "traces/models/decoder_parts.h"
#include "traces/models/image_model.h"
#include "traces/models/language_model.h"
#include "traces/models/masks.h"
#include "traces/models/model_config.h"
#include "traces/models/task_head.h"

namespace tidemark {
namespace {

struct Tower {
  TraceBuilder& b;
  const ClipConfig& config;

  TensorId normed(const std::string& name, TensorId x) const {
    return b.layer_norm(name, x, config.epsilon);
  }

  TensorId feed(const std::string& name, TensorId x) const {
    return mlp(b, name, x,
               {.form = MlpForm::Plain,
                .activation = config.activation,
                .width = config.mlp,
                .bias = true});
  }

  // CLIP's text adds its causal mask to that of padding, in every call of each block up to
  // transformers 4.57. SigLIP's sees all, and has a mask where something is padded.
  struct Masked {
    AttentionConfig attention;
    TensorId causal = no_tensor;  ///< to be added to the other mask in each block
  };

  Masked masked_attention(std::int64_t tokens) const {
    AttentionConfig of{.heads = config.heads,
                       .head_width = config.width / config.heads,
                       .packed = false,
                       .scales_query = false,
                       .softmax_in_fp32 = true,
                       .probabilities_as_query = true,
                       .dropout = b.dropout_probability(config.attention_dropout),
                       .by_shared_code = true,
                       .out_name = "o"};
    const bool is_causal = !config.sees && !config.is_sigmoid;
    const bool is_padded = !config.sees && b.step().padded;
    of.causal = is_causal && !is_padded && b.framework().drops_idle_masks;
    const bool masked = is_padded || (is_causal && !of.causal);
    of.kernel = attention_kernel(b, of, of.head_width, masked);
    const bool is_fused =
        *of.kernel == AttentionKernel::Flash || *of.kernel == AttentionKernel::MemoryEfficient;
    if (!masked && (is_fused || !is_causal)) return {of};
    const InputFill kind =
        is_causal ? InputFill(fill::CausalMask{}) : InputFill(fill::PaddingMask{});
    const Shape pairs = {1, 1, tokens, tokens};
    const bool is_made = makes_masks(b) && !b.framework().compiles;
    const bool is_newest = b.framework().drops_idle_masks;
    if (is_made && is_newest && is_fused) {
      of.mask = b.local(hidden_pairs(b, "attention_mask", pairs, kind));
      return {of};
    }
    if (is_made && !(is_causal && is_newest))
      of.mask = b.local(padding_of_pairs(b, "padding_mask", pairs, b.base_dtype()));
    if (is_made && !is_causal) return {of};
    const TensorId causal = b.local(made_mask(b, "attention_mask", pairs, b.base_dtype(), kind));
    if (of.mask != no_tensor) return {of, causal};
    of.mask = b.local(for_all_samples(b, "attention_mask.samples", causal));
    return {of};
  }

  TensorId attend(const std::string& name, TensorId x, const Masked& masked) const {
    AttentionConfig with = masked.attention;
    b.begin_function();
    if (masked.causal != no_tensor)
      with.mask = b.local(b.add(name + ".both_masks", with.mask, masked.causal));
    const TensorId y = self_attention(b, name, x, with);
    b.end_function();
    return y;
  }

  // Who calls the encoder has a name for what it begins with.
  TensorId blocks(TensorId x) const {
    b.begin_function();
    b.local(x);
    const Masked masked = masked_attention(b.shape(x)[1]);
    for (std::int64_t i = 0; i < config.depth; ++i) {
      const std::string name = fmt::format("blocks.{}", i);
      b.begin_block(name, x, 0);
      b.part(Part::F);
      TensorId y = attend(name + ".attn", normed(name + ".norm1", x), masked);
      x = b.residual(name + ".add1", x, y);
      b.part(Part::G);
      y = feed(name + ".mlp", normed(name + ".norm2", x));
      x = b.residual(name + ".add2", x, y);
      b.end_block();
    }
    b.end_function();
    return x;
  }

  TensorId with_places(TensorId x) const {
    const std::int64_t tokens = b.shape(x)[1];
    const TensorId places = b.input("position_ids", {1, tokens}, DType::Int64, fill::Positions{});
    const std::int64_t rows = config.sees ? tokens : config.positions;
    const TensorId table = b.parameter("position_embed.weight", {rows, config.width});
    return b.add("pos_add", x, b.embedding("position_embed", places, table));
  }

  // Which token stands for the whole is looked up: CLIP's the end of the text, SigLIP's the last.
  TensorId of_text() const {
    const std::int64_t tokens = sequence_length(b.step(), config.positions, true);
    const TensorId ids =
        b.input("input_ids", {b.step().batch, tokens}, DType::Int64, fill::Words{});
    const TensorId table = b.parameter("embed.weight", {config.vocabulary, config.width});
    TensorId x = blocks(with_places(b.embedding("embed", ids, table)));
    x = normed("norm", x);
    const Shape row = {b.step().batch, config.width};
    TensorId pooled = b.copy("pooled", x, row, LayoutTransform::Slice,
                             {{AttributeKey::Offset, static_cast<double>(tokens - 1)}});
    if (config.is_sigmoid) {
      pooled = b.select("pooled.last", x, row, LayoutTransform::Slice, tokens - 1);
      pooled = b.linear("head", pooled, config.projection);
    }
    return mean_loss(b, std::array{x, pooled});
  }

  TensorId pooled_image(TensorId x) const {
    const Shape row = {b.step().batch, config.width};
    if (!config.is_sigmoid) return normed("post_norm", b.select("class_output", x, row));
    TensorId y = attention_pool(b, "pool.attn", x, config.heads);
    y = b.add("pool.add", y, feed("pool.mlp", normed("pool.norm", y)));
    return b.select("pool.output", y, row);
  }

  TensorId of_images() const {
    const std::int64_t image = image_size(b.step(), config.image), batch = b.step().batch;
    if (image != config.image)
      throw UsageError(fmt::format("image size {}: this tower takes {} only", image, config.image));
    const std::int64_t side = image / config.patch, width = config.width;
    const TensorId images =
        b.input("images", {batch, config.channels, image, image}, b.base_dtype(), fill::Pixels{});
    TensorId x = b.conv2d("patch_embed", images, {batch, width, side, side}, config.patch,
                          config.patch, 0, 1, config.is_sigmoid);
    x = b.view("patch_embed.tokens", x, {batch, side * side, width}, LayoutTransform::ChannelsLast);
    if (!config.is_sigmoid) {
      const TensorId first =
          b.view("class_token.row", b.parameter("class_token", {width}), {1, 1, width});
      x = b.concat("tokens", std::array{first, x}, {batch, side * side + 1, width});
    }
    x = with_places(x);
    if (!config.is_sigmoid) x = normed("pre_norm", x);
    x = blocks(x);
    if (config.is_sigmoid) x = normed("norm", x);
    return mean_loss(b, std::array{x, pooled_image(x)});
  }
};

}  // namespace

Trace build_clip(const std::string& model, const ClipConfig& config, const StepOptions& options) {
  TraceBuilder b(model, std::string(config.family), options);
  const Tower tower{b, config};
  return b.finish(config.sees ? tower.of_images() : tower.of_text());
}

}  // namespace tidemark
