// The published models family by family, and the search for a config file that a text names.
#include "traces/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "base/quoted.h"
#include "traces/config_presets.h"
#include "traces/models/config_reader.h"

namespace tidemark {
namespace {

constexpr std::string_view vit_source = "arXiv 2010.11929; torchvision 0.14 vision_transformer.py";
constexpr std::string_view deit_source = "arXiv 2012.12877; timm 0.3.2, recipe of deit/main.py";
constexpr std::string_view swin_source = "arXiv 2103.14030; microsoft/Swin-Transformer configs";
constexpr std::string_view wide_swin_source = "tyleryzhu/RevSwin configs (arXiv 2306.09342)";
constexpr std::string_view mvit_source = "arXiv 2104.11227; SlowFast configs/ImageNet";
constexpr std::string_view rev_mvit_source = "arXiv 2302.04869; SlowFast REV_MVIT_B_16_CONV.yaml";
constexpr std::string_view mvit2_source = "arXiv 2112.01526; facebookresearch/mvit configs";
constexpr std::string_view bert_source = "arXiv 1810.04805; config.json of google-bert";
constexpr std::string_view roberta_source = "arXiv 1907.11692; config.json of FacebookAI";
constexpr std::string_view gpt2_source = "OpenAI 2019; config.json of openai-community";
constexpr std::string_view llama_source = "arXiv 2302.13971; config.json of huggyllama";

Model vit(const char* name, const char* title, VitConfig config) {
  return {name, "vit", title, std::string(vit_source), config};
}

// timm's attention selects q, k and v from the packed projection and scales the scores.
Model deit(const char* name, const char* title, std::int64_t width, std::int64_t heads) {
  const VitConfig config{.width = width,
                         .heads = heads,
                         .mlp = 4 * width,
                         .drop_path = 0.1,
                         .unpacking = Unpacking::Select,
                         .scales_query = false,
                         .ema = true};
  return {name, "vit", title, std::string(deit_source), config};
}

Model swin(const char* name, const char* title, const SwinConfig& config,
           std::string_view source = swin_source) {
  return {name, "swin", title, std::string(source), config};
}

Model mvit(const char* name, const char* title, const MvitConfig& config,
           std::string_view source = mvit2_source) {
  return {name, "mvit", title, std::string(source), config};
}

Model bert(const char* name, const char* title, const BertConfig& config) {
  return {name, "bert", title, std::string(bert_source), config};
}

Model roberta(const char* name, const char* title, BertConfig config) {
  config.vocabulary = 50265;
  config.positions = 514;
  config.token_types = 1;
  config.first_position = 2;
  config.epsilon = 1e-5;
  return {name, "bert", title, std::string(roberta_source), config};
}

Model gpt2(const char* name, const char* title, std::int64_t width, std::int64_t depth) {
  const Gpt2Config config{.width = width, .depth = depth, .heads = width / 64, .mlp = 4 * width};
  return {name, "gpt2", title, std::string(gpt2_source), config};
}

Model decoder(const char* name, const char* title, const DecoderConfig& config,
              std::string_view source) {
  return {name, std::string(config.family), title, std::string(source), config};
}

void add_vision(std::vector<Model>& models) {
  models.push_back(vit("vit-ti-16", "ViT-Ti/16", {.width = 192, .heads = 3, .mlp = 768}));
  models.push_back(vit("vit-s-16", "ViT-S/16", {.width = 384, .heads = 6, .mlp = 1536}));
  models.push_back(vit("vit-b-16", "ViT-B/16", {}));
  models.push_back(
      vit("vit-l-16", "ViT-L/16", {.width = 1024, .depth = 24, .heads = 16, .mlp = 4096}));
  models.push_back(vit("vit-h-14", "ViT-H/14",
                       {.patch = 14, .width = 1280, .depth = 32, .heads = 16, .mlp = 5120}));
  models.push_back(vit("vit-g-14", "ViT-g/14",
                       {.patch = 14, .width = 1408, .depth = 40, .heads = 16, .mlp = 6144}));
  models.push_back(deit("deit-ti", "DeiT-Ti", 192, 3));
  models.push_back(deit("deit-s", "DeiT-S", 384, 6));
  models.push_back(deit("deit-b", "DeiT-B", 768, 12));
  models.push_back(swin("swin-t", "Swin-T", {.drop_path = 0.2}));
  models.push_back(swin("swin-s", "Swin-S", {.depths = {2, 2, 18, 2}, .drop_path = 0.3}));
  models.push_back(
      swin("swin-b", "Swin-B",
           {.width = 128, .depths = {2, 2, 18, 2}, .heads = {4, 8, 16, 32}, .drop_path = 0.5}));
  models.push_back(
      swin("swin-l", "Swin-L",
           {.width = 192, .depths = {2, 2, 18, 2}, .heads = {6, 12, 24, 48}, .drop_path = 0.2}));
  models.push_back(
      swin("swin-h", "Swin-H, 352 wide",
           {.width = 352, .depths = {2, 2, 18, 2}, .heads = {8, 16, 32, 64}, .drop_path = 0.2},
           wide_swin_source));
  models.push_back(
      swin("swin-g", "Swin-G, 512 wide",
           {.width = 512, .depths = {2, 2, 42, 2}, .heads = {16, 32, 64, 128}, .drop_path = 0.2},
           wide_swin_source));
}

void add_mvit(std::vector<Model>& models) {
  models.push_back(mvit("mvit-b-16", "MViT-B/16, convolutional pooling",
                        {.class_token = true,
                         .absolute_positions = true,
                         .relative_positions = false,
                         .pools_every_query = false,
                         .residual_pooling = false,
                         .widens_in_attention = false},
                        mvit_source));
  models.push_back(mvit("rev-mvit-b-16", "Rev-MViT-B/16, without its two-stream fusions",
                        {.absolute_positions = true,
                         .relative_positions = false,
                         .pools_every_query = false,
                         .residual_pooling = false,
                         .packed_qkv = false},
                        rev_mvit_source));
  models.push_back(mvit("mvitv2-t", "MViTv2-T", {.depths = {1, 2, 5, 2}}));
  models.push_back(mvit("mvitv2-s", "MViTv2-S", {}));
  models.push_back(mvit("mvitv2-b", "MViTv2-B", {.depths = {2, 3, 16, 3}, .drop_path = 0.3}));
  models.push_back(mvit("mvitv2-l", "MViTv2-L",
                        {.width = 144,
                         .heads = 2,
                         .depths = {2, 6, 36, 4},
                         .widens_in_attention = false,
                         .drop_path = 0.5}));
}

void add_encoders(std::vector<Model>& models) {
  const BertConfig large{.width = 1024, .depth = 24, .heads = 16, .mlp = 4096};
  models.push_back(bert("bert-base", "BERT-base, uncased", {}));
  models.push_back(bert("bert-large", "BERT-large, uncased", large));
  models.push_back(roberta("roberta-base", "RoBERTa-base", {}));
  models.push_back(roberta("roberta-large", "RoBERTa-large", large));
}

void add_decoders(std::vector<Model>& models) {
  models.push_back(gpt2("gpt2", "GPT-2 124M", 768, 12));
  models.push_back(gpt2("gpt2-medium", "GPT-2 355M", 1024, 24));
  models.push_back(gpt2("gpt2-large", "GPT-2 774M", 1280, 36));
  models.push_back(gpt2("gpt2-xl", "GPT-2 1.5B", 1600, 48));
  models.push_back(decoder("llama-7b", "LLaMA 7B", {}, llama_source));
  models.push_back(decoder("llama-13b", "LLaMA 13B",
                           {.width = 5120, .depth = 40, .heads = 40, .mlp = 13824, .key_heads = 40},
                           llama_source));
}

std::vector<Model> presets() {
  std::vector<Model> models;
  add_vision(models);
  add_mvit(models);
  add_encoders(models);
  add_decoders(models);
  for (Model& model : config_presets()) models.push_back(std::move(model));
  return models;
}

// The config file that the text names, or "".
std::string config_path(std::string_view name_or_path) {
  std::error_code error;
  const std::filesystem::path path(name_or_path);
  if (std::filesystem::is_directory(path, error)) return (path / "config.json").string();
  return std::filesystem::exists(path, error) ? path.string() : "";
}

// Which of the two was meant is not ours to guess, but the other one must not be lost.
Model shadowing(Model preset) {
  std::error_code error;
  if (std::filesystem::exists(config_path(preset.name), error))
    preset.notes.push_back(
        fmt::format("this is the preset; what is called so here was not read (write ./{} for it)",
                    preset.name));
  return preset;
}

// "org/name" as the Hugging Face hub writes it; nothing is downloaded.
bool is_hub_id(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return slash != std::string_view::npos && slash > 0 && slash + 1 < text.size() &&
         text[0] != '.' && std::ranges::all_of(text.substr(0, slash), is_plain) &&
         std::ranges::all_of(text.substr(slash + 1), is_plain) && !text.ends_with(".json");
}

[[noreturn]] void fail_without_file(std::string_view path) {
  if (is_hub_id(path))
    throw InputError(fmt::format(
        "{0}: no such folder, and nothing is downloaded; if this is a model of the Hugging Face "
        "hub, get its config with: curl -L -o {1}.json "
        "https://huggingface.co/{0}/resolve/main/config.json (and name {1}.json)",
        path, path.substr(path.find('/') + 1)));
  throw InputError(
      fmt::format("{}: no such file (nor a folder with a config.json)", printable(path, 200)));
}

}  // namespace

const std::vector<Model>& known_models() {
  static const std::vector<Model> models = presets();
  return models;
}

Model find_model(std::string_view name_or_path) {
  for (const Model& model : known_models())
    if (model.name == name_or_path) return shadowing(model);
  if (const std::string path = config_path(name_or_path); !path.empty())
    return read_model_config(read_file(path, FileKind::Config), path);
  if (name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".json"))
    fail_without_file(name_or_path);
  std::vector<std::string_view> names;
  for (const Model& model : known_models()) names.push_back(model.name);
  // They are too many for a line.
  const std::string_view near = nearest_name(name_or_path, names);
  throw UsageError(fmt::format(
      "unknown model {} ({}tidemark models lists all); or give the path of a Hugging Face "
      "config.json",
      quoted(name_or_path), near.empty() ? "" : fmt::format("did you mean '{}'? ", near)));
}

}  // namespace tidemark
