#include "traces/models/config_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/models/config_fields.h"
#include "traces/quoted.h"

namespace tidemark {
namespace config {

std::optional<JsonView> member(const JsonView& root, std::string_view key) {
  for (const JsonView value : root.members())
    if (value.key() == key) return value;
  return {};
}

void fail_at(const JsonView& root, std::string_view key, std::string_view problem) {
  if (const auto value = member(root, key)) value->fail(problem);
  root.fail(problem);
}

std::int64_t count(const JsonView& root, std::string_view key, std::int64_t fallback,
                   std::int64_t most) {
  return root.integer_or(key, fallback, 1, most);
}

double probability(const JsonView& root, std::string_view key, double fallback) {
  return root.number_or(key, fallback, 0, 1);
}

double epsilon(const JsonView& root, std::string_view key, double fallback) {
  return root.number_or(key, fallback, 0, 1);
}

std::string_view activation(const JsonView& root, std::string_view key,
                            std::initializer_list<std::string_view> known) {
  const std::string_view name = root.text_or(key, *known.begin());
  if (std::ranges::find(known, name) != known.end()) return name;
  fail_at(root, key,
          fmt::format("activation {} is not modelled for this family (known: {})", quoted(name),
                      fmt::join(known, ", ")));
}

void require_divides(const JsonView& root, std::string_view key, std::int64_t parts,
                     std::string_view whole_key, std::int64_t whole) {
  if (whole % parts == 0) return;
  fail_at(root, key,
          fmt::format("{} = {} does not divide {} = {}; use a divisor of it", key, parts, whole_key,
                      whole));
}

void refuse(const JsonView& root, std::string_view key, std::string_view why) {
  const auto value = root.find(key);
  if (!value) return;
  if (value->kind() == JsonKind::Boolean && !value->boolean()) return;
  if (value->kind() == JsonKind::Integer && value->integer(INT64_MIN, INT64_MAX) == 0) return;
  value->fail(fmt::format("'{}' is not modelled: {}", key, why));
}

std::int64_t classes(const JsonView& root) {
  const std::int64_t unnamed = count(root, "num_labels", 0, most_words);
  const auto names = root.find("id2label");
  if (!names) return unnamed ? unnamed : 2;  // the default of PretrainedConfig
  const auto named = static_cast<std::int64_t>(names->members().size());
  if (named == 0) names->fail("no labels; name at least one class, or give num_labels");
  if (unnamed != 0 && unnamed != named)
    fail_at(root, "num_labels",
            fmt::format("num_labels = {} but id2label names {} classes; remove one of the two",
                        unnamed, named));
  return named;
}

namespace {

struct Reader {
  std::string_view model_type;
  ModelConfig (*read)(const JsonView& root);
};

constexpr std::array readers = {
    Reader{"vit", read_vit},     Reader{"deit", read_deit},   Reader{"swin", read_swin},
    Reader{"mvit", read_mvit},   Reader{"bert", read_bert},   Reader{"roberta", read_roberta},
    Reader{"gpt2", read_gpt2},   Reader{"llama", read_llama}, Reader{"mistral", read_mistral},
    Reader{"qwen2", read_qwen2}, Reader{"qwen3", read_qwen3},
};

}  // namespace
}  // namespace config

ModelConfig read_model_config(std::string_view json, std::string_view file) {
  const JsonDocument document(json, file);
  const JsonView root = document.root();
  const JsonView type = root.at("model_type");
  std::vector<std::string_view> known;
  for (const config::Reader& reader : config::readers) {
    known.push_back(reader.model_type);
    if (reader.model_type != type.text()) continue;
    config::refuse(root, "quantization_config",
                   "weights in few bits; remove it to plan for whole ones");
    config::refuse(root, "num_local_experts", "a mixture of experts; give a dense model");
    config::refuse(root, "num_experts", "a mixture of experts; give a dense model");
    return reader.read(root);
  }
  type.fail(unknown_name("model_type", printable(type.text()), known));
}

}  // namespace tidemark
