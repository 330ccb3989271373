// ViTMAE as in modeling_vit_mae.py of Hugging Face transformers: an encoder of the patches that a
// random order leaves, a decoder of all of them, and the squared error of pixels that were masked.
// What sorts, gathers and compares are opaque ops.
#include <fmt/format.h>

#include "traces/models/image_model.h"
#include "traces/models/model_config.h"
#include "traces/models/vit_block.h"

namespace tidemark {
namespace {

struct MaskedAutoencoder {
  TraceBuilder& b;
  const VitMaeConfig& config;
  std::int64_t patches, kept;

  TensorId opaque(const std::string& name, std::span<const TensorId> inputs, const Shape& shape,
                  DType dtype, OpaqueRow row) const {
    const OutputSpec made{"", shape, dtype};
    return b.opaque(name, inputs, std::span(&made, 1), std::move(row));
  }

  // Rows of x [batch, n, width]; each element of the result has a place of its own.
  TensorId gathered(const std::string& name, TensorId x, TensorId order, std::int64_t rows) const {
    const Shape shape = {b.shape(x)[0], rows, b.shape(x)[2]};
    const TensorId places = opaque(name + ".places", std::array{order}, shape, DType::Int64,
                                   {.operation = "aten::repeat"});
    return opaque(
        name, std::array{x, places}, shape, b[x].dtype,
        {.operation = "aten::gather", .gradients = 1, .saved = input_bit(0) | input_bit(1)});
  }

  TensorId fixed_positions(const std::string& name, std::int64_t width) const {
    return b.parameter(name, {1, patches + 1, width}, ParameterRole::Fixed);
  }

  TensorId blocks(const std::string& name, TensorId x, const VitConfig& of, int stack) const {
    for (std::int64_t i = 0; i < of.depth; ++i)
      x = vit_block(b, fmt::format("{}.{}", name, i), x, of, 0, stack);
    return b.layer_norm(name + ".norm", x, of.epsilon);
  }

  struct Order {
    TensorId shuffled, restored, mask;
  };

  Order random_order() const {
    const Shape all = {b.step().batch, patches};
    const TensorId noise = b.input("noise", all, DType::Float32);
    const auto sorted = [&](const std::string& name, TensorId x) {
      const std::array both = {OutputSpec{"", all, DType::Int64},
                               OutputSpec{"values", all, b[x].dtype}};
      return b.opaque(name, std::array{x}, both, {.operation = "aten::sort"});
    };
    Order order{sorted("order", noise), no_tensor, no_tensor};
    order.restored = b.local(sorted("order.restored", order.shuffled));
    order.mask = b.local(opaque("mask", std::array{order.restored}, all, DType::Float32,
                                {.operation = "aten::gather"}));
    return order;
  }

  TensorId encoded(TensorId images, const Order& order) const {
    const VitConfig& of = config.encoder;
    const std::int64_t batch = b.step().batch, side = of.image / of.patch, width = of.width;
    TensorId x =
        b.conv2d("patch_embed", images, {batch, width, side, side}, of.patch, of.patch, 0, 1, true);
    x = b.view("patch_embed.tokens", x, {batch, patches, width}, LayoutTransform::ChannelsLast);
    const TensorId table = fixed_positions("pos_embed", width);
    const TensorId of_patches =
        b.select("pos_embed.patches", table, {1, patches, width}, LayoutTransform::Slice, 1);
    x = gathered("kept", b.add("pos_add", x, of_patches), order.shuffled, kept);
    const TensorId first = b.add("class_token.placed", b.parameter("class_token", {1, 1, width}),
                                 b.select("pos_embed.class", table, {1, 1, width}));
    b.begin_function();  // ViTMAEModel names what its encoder begins with
    x = b.local(b.concat("tokens", std::array{first, x}, {batch, kept + 1, width}));
    x = blocks("blocks", x, of, 0);
    b.end_function();
    return x;
  }

  // Each masked patch is the same token, before its position is added.
  TensorId decoded(TensorId x, const Order& order) const {
    const VitConfig& of = config.decoder;
    const std::int64_t batch = b.step().batch, width = of.width;
    const Shape all = {batch, patches, width};
    b.begin_function();
    x = b.linear("decoder_embed", x, width);
    const TensorId token = b.parameter("mask_token", {1, 1, width});
    const TensorId masked =
        b.local(opaque("masked", std::array{token}, {batch, patches - kept, width}, b[token].dtype,
                       {.operation = "aten::repeat", .gradients = 1}));
    const TensorId seen = b.select("seen", all_samples(b, "seen", x), {batch, kept, width},
                                   LayoutTransform::Slice, 1);
    const TensorId whole = b.local(gathered(
        "restored", b.concat("joined", std::array{seen, masked}, all), order.restored, patches));
    const TensorId first =
        b.select("class_output", all_samples(b, "class_output", x), {batch, 1, width});
    x = b.local(b.concat("decoder_tokens", std::array{first, whole}, {batch, patches + 1, width}));
    x = b.add("decoder_pos_add", x, fixed_positions("decoder_pos_embed", width));
    x = blocks("decoder_blocks", x, of, 1);
    x = b.linear("decoder_pred", x, of.patch * of.patch * of.channels);
    b.end_function();
    return b.local(x);
  }

  // Pixels by patch; einsum() is on autocast's list of 16 bits. The vision code of transformers 5,
  // whose rows have one name for what layers make, permutes pixels instead, which is on none.
  TensorId target(TensorId images) const {
    const VitConfig& of = config.encoder;
    const Shape shape = {b.step().batch, patches, of.patch * of.patch * of.channels};
    const TensorId read = b.framework().one_hidden_name ? images : b.to_compute(images);
    const TensorId pixels =
        opaque("target", std::array{read}, shape, b[read].dtype, {.operation = "aten::clone"});
    if (!config.norms_pixels) return b.local(pixels);
    const bool widens = is_amp(precision_of(b.step()));  // pow() is on its list of fp32
    const DType dtype = widens ? DType::Float32 : b[pixels].dtype;
    const Bytes centred = size(b[pixels]);
    return b.local(opaque("target.normed", std::array{pixels}, shape, dtype,
                          {.operation = "aten::div", .forward = {.workspace = centred}}));
  }

  TensorId loss(TensorId predicted, TensorId images, TensorId mask) const {
    const Shape s = b.shape(predicted), all = {s[0], patches, s[2]}, by_patch = {s[0], patches};
    const TensorId logits =
        b.select("logits", all_samples(b, "logits", predicted), all, LayoutTransform::Slice, 1);
    const TensorId wanted = target(images);
    const bool wide = is_amp(precision_of(b.step())) || b[wanted].dtype == DType::Float32;
    const DType widest = b[wanted].dtype == DType::Float32 ? DType::Float32 : b[logits].dtype;
    TensorId y = opaque("loss.difference", std::array{logits, wanted}, all, widest,
                        {.operation = "aten::sub", .gradients = 1});
    if (wide) y = b.cast("loss.difference.float", y, DType::Float32);
    const Bytes whole = size(b[y]);
    y = opaque("loss.squares", std::array{y}, all, b[y].dtype,
               {.operation = "aten::pow",
                .gradients = 1,
                .saved = input_bit(0),
                .backward = {.workspace = whole + whole}});
    y = opaque("loss.means", std::array{y}, by_patch, b[y].dtype,
               {.operation = "aten::mean", .gradients = 1});
    const OutputSpec weighted{"", by_patch, DType::Float32};
    y = b.opaque("loss.masked", std::array{y, mask}, std::span(&weighted, 1),
                 {.operation = "aten::mul", .gradients = 1, .saved = input_bit(1)});
    y = opaque("loss.sum", std::array{y}, {}, DType::Float32,
               {.operation = "aten::sum", .gradients = 1});
    const TensorId count =
        opaque("loss.count", std::array{mask}, {}, DType::Float32, {.operation = "aten::sum"});
    return opaque("loss", std::array{y, count}, {}, DType::Float32,
                  {.operation = "aten::div", .gradients = 1, .saved = input_bit(1)});
  }
};

}  // namespace

Trace build_vit_mae(const std::string& model, const VitMaeConfig& config,
                    const StepOptions& options) {
  TraceBuilder b(model, "vit-mae", options);
  const VitConfig& of = config.encoder;
  const std::int64_t image = image_size(options, of.image), side = of.image / of.patch;
  if (image != of.image)
    throw UsageError(fmt::format("image size {}: this model takes {} only", image, of.image));
  const auto kept =
      static_cast<std::int64_t>(static_cast<double>(side * side) * (1 - config.mask_ratio));
  const MaskedAutoencoder mae{b, config, side * side, kept};
  const TensorId images =
      b.input("images", {options.batch, of.channels, image, image}, b.base_dtype(), fill::Pixels{});
  b.begin_function();
  const MaskedAutoencoder::Order order = mae.random_order();
  const TensorId latent = b.local(mae.encoded(images, order));
  const TensorId loss = mae.loss(mae.decoded(latent, order), images, order.mask);
  b.end_function();
  return b.finish(loss);
}

}  // namespace tidemark
