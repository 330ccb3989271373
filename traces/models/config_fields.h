// What the readers of config.json share: fields with a default and bounds, and refusals that name
// the place. The bounds keep every product of two fields far below 2^63.
#pragma once

#include <initializer_list>
#include <string_view>

#include "traces/json_reader.h"
#include "traces/models/model_config.h"

namespace tidemark::config {

inline constexpr std::int64_t most_blocks = 4096;
inline constexpr std::int64_t most_heads = 4096;
inline constexpr std::int64_t widest = std::int64_t{1} << 20;
inline constexpr std::int64_t most_words = std::int64_t{1} << 24;
inline constexpr std::int64_t most_positions = std::int64_t{1} << 24;
inline constexpr std::int64_t largest_image = std::int64_t{1} << 14;

/// The member called `key` even if it is null; nothing if there is none.
std::optional<JsonView> member(const JsonView& root, std::string_view key);

/// Fails at the field if the file has it, else at the whole object.
[[noreturn]] void fail_at(const JsonView& root, std::string_view key, std::string_view problem);

std::int64_t count(const JsonView& root, std::string_view key, std::int64_t fallback,
                   std::int64_t most);
double probability(const JsonView& root, std::string_view key, double fallback);
double epsilon(const JsonView& root, std::string_view key, double fallback);

/// The activation is one of `known`, the first of which is the default.
std::string_view activation(const JsonView& root, std::string_view key,
                            std::initializer_list<std::string_view> known);

/// The `parts` that `key` asks for must divide the `whole` that is called `whole_key`.
void require_divides(const JsonView& root, std::string_view key, std::int64_t parts,
                     std::string_view whole_key, std::int64_t whole);

/// `key` asks for something that changes memory in a way that is not modelled: absent, null, false
/// and 0 are fine.
void refuse(const JsonView& root, std::string_view key, std::string_view why);

/// Classes of an image classifier: `num_labels`, or the length of `id2label`, or two.
std::int64_t classes(const JsonView& root);

ModelConfig read_vit(const JsonView& root);
ModelConfig read_deit(const JsonView& root);
ModelConfig read_swin(const JsonView& root);
ModelConfig read_mvit(const JsonView& root);
ModelConfig read_bert(const JsonView& root);
ModelConfig read_roberta(const JsonView& root);
ModelConfig read_gpt2(const JsonView& root);
ModelConfig read_llama(const JsonView& root);
ModelConfig read_mistral(const JsonView& root);
ModelConfig read_qwen2(const JsonView& root);
ModelConfig read_qwen3(const JsonView& root);

}  // namespace tidemark::config
