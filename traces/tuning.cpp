// What --tuning says: read from text and written back.
#include <fmt/format.h>

#include <algorithm>

#include "base/number_in.h"
#include "traces/step_options.h"

namespace tidemark {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct TuningName {
  Tuning::Kind value;
  std::string_view name;
};

constexpr std::array tuning_names = {
    TuningName{Tuning::Kind::Full, "full"},      TuningName{Tuning::Kind::Lora, "lora"},
    TuningName{Tuning::Kind::LoraFa, "lora-fa"}, TuningName{Tuning::Kind::Frozen, "frozen"},
    TuningName{Tuning::Kind::Prompt, "prompt"},  TuningName{Tuning::Kind::Prefix, "prefix"}};
static_assert(is_in_order(tuning_names));

std::int64_t parse_rank(std::string_view text) {
  const auto rank = number_in<std::int64_t>(text);
  if (!rank || *rank < 1 || *rank > 65536)
    throw UsageError(fmt::format("tuning: r={} is not a rank (1 to 65536)", text.substr(0, 64)));
  return *rank;
}

double parse_dropout(std::string_view text) {
  const auto value = number_in<double>(text);
  if (!value || !(*value >= 0 && *value < 1))
    throw UsageError(fmt::format("tuning: dropout={} is not a probability (from 0 to below 1)",
                                 text.substr(0, 64)));
  return *value;
}

bool parse_base_dtype(std::string_view text) {
  if (text != "base" && text != "framework")
    throw UsageError(
        fmt::format("tuning: dtype={} is not known (base, or framework: what it makes adapters of)",
                    text.substr(0, 64)));
  return text == "base";
}

// 1 to 65536, or nothing.
std::optional<std::int64_t> parse_width(std::string_view text) {
  constexpr std::int64_t most = 65536;
  const auto count = number_in<std::int64_t>(text);
  return count && *count >= 1 && *count <= most ? count : std::nullopt;
}

// "tokens=20": peft has no number that it takes by itself.
void parse_learned_tokens(Tuning& tuning, std::string_view name, std::string_view arguments) {
  for (const std::string_view part : split(arguments, ',')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    const auto value = parse_width(part.substr(std::min(equals + 1, part.size())));
    if (value && key == "tokens") {
      tuning.tokens = *value;
    } else if (value && key == "projection" && tuning.kind == Tuning::Kind::Prefix) {
      tuning.projection = *value;
    } else {
      tuning.tokens = 0;
      break;
    }
  }
  if (tuning.tokens > 0) return;
  throw UsageError(fmt::format(
      "tuning: '{}' needs how many tokens are learned, as in {}:tokens=20 (1 to 65536{})", name,
      name, tuning.kind == Tuning::Kind::Prefix ? "; also projection=512" : ""));
}

constexpr std::array<std::string_view, 8> lora_options = {"r",    "dropout", "dtype",  "targets",
                                                          "save", "dora",    "rslora", "rank"};

[[noreturn]] void refuse_lora_option(std::string_view part) {
  const std::string_view key = part.substr(0, part.find('='));
  const std::string_view near = nearest_name(key, {lora_options.begin(), lora_options.end()});
  throw UsageError(fmt::format(
      "tuning: '{}' is not understood ({}write for example lora:r=4,targets=q,v; also dropout=0.1, "
      "dtype=base, dora, rslora, save=embed_tokens,lm_head)",
      part.substr(0, 64),
      near.empty() || near == key ? "" : fmt::format("did you mean '{}'? ", near)));
}

// peft takes a set.
void add_name(std::vector<std::string>& names, std::string_view name) {
  if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

// "r=4,targets=q,v,save=lm_head": values after `targets=` and `save=` belong to it until the next
// key.
void parse_lora(Tuning& tuning, std::string_view arguments) {
  std::vector<std::string>* names = &tuning.targets;
  for (std::string_view part : split(arguments, ',')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    if (equals == part.size()) {
      if (part.empty()) refuse_lora_option(part);
      if (part == "dora") tuning.magnitudes = true;
      if (part == "dora" || part == "rslora") continue;  // this: another factor, as many bytes
      add_name(*names, part);
    } else if (key == "r" || key == "rank") {
      tuning.rank = parse_rank(value);
    } else if (key == "dropout") {
      tuning.dropout = parse_dropout(value);
    } else if (key == "dtype") {
      tuning.base_dtype = parse_base_dtype(value);
    } else if (key == "targets" || key == "save") {
      if (value.empty()) refuse_lora_option(part);
      if (value.find('=') != value.npos) refuse_lora_option(value);
      names = key == "save" ? &tuning.whole : &tuning.targets;
      add_name(*names, value);
    } else {
      refuse_lora_option(part);
    }
  }
}

}  // namespace

Tuning parse_tuning(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  Tuning tuning{.kind = parse_name(tuning_names, "tuning", text.substr(0, colon))};
  const std::string_view arguments = text.substr(std::min(colon + 1, text.size()));
  switch (tuning.kind) {
    case Tuning::Kind::Full:
      if (!arguments.empty()) throw UsageError("tuning: 'full' takes no arguments");
      break;
    case Tuning::Kind::Lora:
    case Tuning::Kind::LoraFa:
      if (!arguments.empty()) parse_lora(tuning, arguments);
      break;
    case Tuning::Kind::Prompt:
    case Tuning::Kind::Prefix:
      parse_learned_tokens(tuning, text.substr(0, colon), arguments);
      break;
    case Tuning::Kind::Frozen:
      for (const std::string_view glob : split(arguments, ','))
        if (!glob.empty()) tuning.targets.emplace_back(glob);
      if (tuning.targets.empty())
        throw UsageError("tuning: 'frozen' needs names (for example frozen:embed*,blocks.0.*)");
      break;
  }
  return tuning;
}

std::string to_text(const Tuning& tuning) {
  const std::string_view name = tuning_names[static_cast<std::size_t>(tuning.kind)].name;
  if (tuning.kind == Tuning::Kind::Full) return std::string(name);
  if (tuning.tokens > 0)
    return fmt::format(
        "{}:tokens={}{}", name, tuning.tokens,
        tuning.projection > 0 ? fmt::format(",projection={}", tuning.projection) : "");
  const std::string list = fmt::format("{}", fmt::join(tuning.targets, ","));
  if (tuning.kind == Tuning::Kind::Frozen) return fmt::format("{}:{}", name, list);
  const std::string dropout =
      tuning.dropout > 0 ? fmt::format(",dropout={}", tuning.dropout) : std::string();
  const std::string whole =
      tuning.whole.empty() ? "" : fmt::format(",save={}", fmt::join(tuning.whole, ","));
  const std::string targets = list.empty() ? "" : fmt::format(",targets={}", list);
  return fmt::format("{}:r={}{}{}{}{}{}", name, tuning.rank, dropout,
                     tuning.base_dtype ? ",dtype=base" : "", tuning.magnitudes ? ",dora" : "",
                     targets, whole);
}

}  // namespace tidemark
