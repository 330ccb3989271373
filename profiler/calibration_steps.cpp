// Sizes of networks by family and precision, measured or held out, as traces.
#include "profiler/calibration_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "traces/models/model_config.h"

namespace tidemark::profiler {
namespace {

struct Size;

/// A family of models: what its sizes mean, and how it is built from them.
struct Family {
  ModelConfig (*config_of)(const Size& size);
  bool takes_images;
};

/// Sizes of a network of one family, and its batch.
struct Size {
  const Family& family;
  std::int64_t width, depth, tokens_or_image, batch;
  std::optional<Attention> attention = {};
  std::int64_t classes = 100, vocabulary = 2000;

  static constexpr std::int64_t head_width = 64;
  std::int64_t heads() const { return std::max<std::int64_t>(1, width / head_width); }
  std::int64_t mlp() const { return 4 * width; }
};

ModelConfig vit_of(const Size& s) {
  return VitConfig{.patch = 16,
                   .width = s.width,
                   .depth = s.depth,
                   .heads = s.heads(),
                   .mlp = s.mlp(),
                   .classes = s.classes,
                   .drop_path = 0.1};
}

ModelConfig swin_of(const Size& s) {
  return SwinConfig{.width = s.width,
                    .depths = {2, s.depth},
                    .heads = {s.heads(), 2 * s.heads()},
                    .classes = s.classes};
}

ModelConfig mvit_of(const Size& s) {
  return MvitConfig{
      .width = s.width, .heads = s.heads(), .depths = {1, s.depth}, .classes = s.classes};
}

/// BERT and GPT-2 name the same sizes alike.
template <typename Config>
ModelConfig named_alike(const Size& s) {
  return Config{.width = s.width,
                .depth = s.depth,
                .heads = s.heads(),
                .mlp = s.mlp(),
                .vocabulary = s.vocabulary};
}

ModelConfig llama_of(const Size& s) {
  return DecoderConfig{.width = s.width,
                       .depth = s.depth,
                       .heads = s.heads(),
                       .mlp = 3 * s.width,
                       .key_heads = std::max<std::int64_t>(1, s.heads() / 2),
                       .head_width = Size::head_width,
                       .vocabulary = s.vocabulary};
}

// A window, for its mask.
ModelConfig windowed_of(const Size& s) {
  DecoderConfig config = std::get<DecoderConfig>(llama_of(s));
  config.sliding_window = s.tokens_or_image / 2;
  return config;
}

// ReLU, and caps for the tanh.
ModelConfig capped_of(const Size& s) {
  return DecoderConfig{.family = "decoder",
                       .width = s.width,
                       .depth = s.depth,
                       .heads = s.heads(),
                       .mlp = s.mlp(),
                       .key_heads = s.heads(),
                       .head_width = Size::head_width,
                       .vocabulary = s.vocabulary,
                       .mlp_form = MlpForm::Plain,
                       .activation = ActivationForm::Relu,
                       .score_cap = 50,
                       .logit_cap = 30};
}

constexpr Family vit{vit_of, true}, swin{swin_of, true}, mvit{mvit_of, true},
    bert{named_alike<BertConfig>, false}, gpt2{named_alike<Gpt2Config>, false},
    llama{llama_of, false}, windowed{windowed_of, false}, capped{capped_of, false};

CalibrationStep step_of(const Size& s, Precision precision) {
  Model model{.name = "", .family = "", .title = "", .source = "", .config = s.family.config_of(s)};
  model.name = model.family = family_of(model.config);
  StepOptions options{.batch = s.batch, .precision = precision, .attention = s.attention};
  (s.family.takes_images ? options.image : options.sequence) = s.tokens_or_image;
  return {fmt::format("{} of width {}, {} block{}, batch {}, {}", model.family, s.width, s.depth,
                      s.depth == 1 ? "" : "s", s.batch, to_string(precision)),
          build_trace(model, options)};
}

// Fused attention reads repeated heads where they are; the other kind copies them.
constexpr std::array sizes = {Size{vit, 64, 1, 64, 1},
                              Size{vit, 128, 1, 128, 2},
                              Size{vit, 256, 1, 224, 2},
                              Size{vit, 384, 1, 224, 8},
                              Size{swin, 64, 2, 112, 2},
                              Size{swin, 128, 2, 224, 2},
                              Size{mvit, 64, 2, 64, 1},
                              Size{mvit, 64, 2, 128, 2},
                              Size{bert, 128, 1, 64, 2},
                              Size{bert, 256, 1, 256, 4},
                              Size{gpt2, 128, 1, 64, 2},
                              Size{gpt2, 256, 1, 256, 4},
                              Size{llama, 128, 1, 64, 2, Attention::Math},
                              Size{llama, 256, 1, 256, 4},
                              Size{capped, 64, 1, 64, 2, Attention::Math},
                              Size{windowed, 128, 1, 64, 2}};

// The mixed precisions share nearly all kernels with the pure ones: one size of each family will
// do.
constexpr std::array mixed_sizes = {sizes[1],  sizes[4],  sizes[6], sizes[8],
                                    sizes[10], sizes[12], sizes[14]};

// What fills a GPU: 10^3 to 10^5 rows of operands of 10 MB and more, classes and tokens as many as
// ImageNet and LLaMA have.
constexpr Size of_device(Size size, std::int64_t vocabulary = 32000) {
  size.classes = 1000, size.vocabulary = vocabulary;
  return size;
}
// GPT-2's and BERT's, whose rows of logits begin at any element, or at every second.
constexpr std::int64_t odd_vocabulary = 50257, even_vocabulary = 30522;
constexpr std::array device_sizes = {of_device({vit, 768, 1, 224, 16}),
                                     of_device({vit, 1024, 1, 224, 64}),
                                     of_device({swin, 64, 2, 224, 32}),
                                     of_device({swin, 128, 2, 224, 64}),
                                     of_device({mvit, 64, 2, 224, 16}),
                                     of_device({mvit, 128, 2, 224, 32}),
                                     of_device({bert, 1024, 1, 512, 16}),
                                     of_device({gpt2, 1024, 1, 512, 16}),
                                     of_device({gpt2, 1600, 1, 1024, 16}),
                                     of_device({llama, 1024, 1, 512, 16, Attention::Math}),
                                     of_device({llama, 2048, 1, 1024, 16}),
                                     of_device({llama, 4096, 1, 1024, 16}),
                                     of_device({capped, 768, 1, 512, 16, Attention::Math}),
                                     of_device({windowed, 1024, 1, 512, 16}),
                                     of_device({gpt2, 1024, 1, 512, 16}, odd_vocabulary),
                                     of_device({bert, 1024, 1, 512, 16}, even_vocabulary)};
constexpr std::array mixed_device_sizes = {device_sizes[1],  device_sizes[3],  device_sizes[5],
                                           device_sizes[6],  device_sizes[8],  device_sizes[9],
                                           device_sizes[10], device_sizes[12], device_sizes[15]};

std::vector<CalibrationStep> steps_of(std::span<const Size> pure, std::span<const Size> mixed) {
  std::vector<CalibrationStep> steps;
  for (const Precision precision : {Precision::Fp32, Precision::Bf16})
    for (const Size& size : pure) steps.push_back(step_of(size, precision));
  for (const Precision precision : {Precision::AmpFp16, Precision::AmpBf16})
    for (const Size& size : mixed) steps.push_back(step_of(size, precision));
  return steps;
}

}  // namespace

std::vector<CalibrationStep> calibration_steps(Ground ground) {
  if (ground == Ground::Device) return steps_of(device_sizes, mixed_device_sizes);
  return steps_of(sizes, mixed_sizes);
}

std::vector<CalibrationStep> held_out_steps(Ground ground) {
  // As wide and deep as ViT-B/16, Swin-T, BERT-Base, GPT-2 124M, a part of TinyLlama, ViT-S/16.
  if (ground == Ground::Device)
    return {step_of(of_device({vit, 768, 12, 224, 64}), Precision::Bf16),
            step_of(of_device({swin, 96, 6, 224, 64}), Precision::AmpBf16),
            step_of(of_device({bert, 768, 12, 512, 16}, even_vocabulary), Precision::AmpFp16),
            step_of(of_device({gpt2, 768, 12, 1024, 8}, odd_vocabulary), Precision::Bf16),
            step_of(of_device({llama, 2048, 6, 2048, 4}), Precision::Bf16),
            step_of(of_device({vit, 384, 12, 224, 64}), Precision::Fp32)};
  return {step_of({vit, 192, 2, 160, 4}, Precision::Fp32),
          step_of({swin, 64, 2, 224, 3}, Precision::Fp32),
          step_of({mvit, 64, 3, 96, 3}, Precision::Fp32),
          step_of({bert, 192, 2, 128, 6}, Precision::Fp32),
          step_of({gpt2, 192, 2, 128, 4}, Precision::AmpFp16),
          step_of({llama, 192, 2, 192, 3}, Precision::Bf16)};
}

}  // namespace tidemark::profiler
