// Tunings read from text and written back, and the precision that a step has in the end.
#include "traces/step_options.h"

#include <fmt/format.h>

#include <charconv>

#include "traces/replicas.h"

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
    TuningName{Tuning::Kind::Full, "full"}, TuningName{Tuning::Kind::Lora, "lora"},
    TuningName{Tuning::Kind::LoraFa, "lora-fa"}, TuningName{Tuning::Kind::Frozen, "frozen"},
    TuningName{Tuning::Kind::Prompt, "prompt"}};
static_assert(is_in_order(tuning_names));

constexpr std::array token_loss_names = {
    Named{TokenLoss::Kind::Chunked, std::string_view("chunked")},
    Named{TokenLoss::Kind::FusedLinear, std::string_view("fused-linear")}};
static_assert(is_in_order(token_loss_names));

std::int64_t parse_rank(std::string_view text) {
  std::int64_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size() || rank < 1 || rank > 65536)
    throw UsageError(fmt::format("tuning: r={} is not a rank (1 to 65536)", text.substr(0, 64)));
  return rank;
}

double parse_dropout(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value < 1))
    throw UsageError(fmt::format("tuning: dropout={} is not a probability (from 0 to below 1)",
                                 text.substr(0, 64)));
  return value;
}

bool parse_base_dtype(std::string_view text) {
  if (text != "base" && text != "framework")
    throw UsageError(
        fmt::format("tuning: dtype={} is not known (base, or framework: what it makes adapters of)",
                    text.substr(0, 64)));
  return text == "base";
}

// "tokens=20": peft has no number that it takes by itself.
std::int64_t parse_learned_tokens(std::string_view text) {
  constexpr std::string_view key = "tokens=";
  constexpr std::int64_t most = 65536;
  std::int64_t count = 0;
  const std::string_view number = text.substr(text.starts_with(key) ? key.size() : 0);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  if (!text.starts_with(key) || error != std::errc() || end != number.data() + number.size() ||
      count < 1 || count > most)
    throw UsageError(fmt::format(
        "tuning: 'prompt' needs how many tokens are learned, as in prompt:tokens=20 (1 to {})",
        most));
  return count;
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
      names->emplace_back(part);
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
      names->emplace_back(value);
    } else {
      refuse_lora_option(part);
    }
  }
}

}  // namespace

TokenLoss parse_token_loss(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  TokenLoss loss{parse_name(token_loss_names, "loss", text.substr(0, colon))};
  const std::string_view count = text.substr(std::min(colon + 1, text.size()));
  if (loss.kind == TokenLoss::Kind::FusedLinear) {
    if (colon != text.size())
      throw UsageError("loss: 'fused-linear' takes no arguments: its chunks follow from the sizes");
    return loss;
  }
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), loss.chunks);
  if (error != std::errc() || end != count.data() + count.size() || loss.chunks < 1 ||
      loss.chunks > TokenLoss::most_chunks)
    throw UsageError(fmt::format("loss: '{}' is not a number of chunks (chunked:8; 1 to {})",
                                 count.substr(0, 64), TokenLoss::most_chunks));
  return loss;
}

std::string to_text(const TokenLoss& loss) {
  const std::string name(token_loss_names[static_cast<std::size_t>(loss.kind)].name);
  return loss.kind == TokenLoss::Kind::Chunked ? fmt::format("{}:{}", name, loss.chunks) : name;
}

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
      if (tuning.targets.empty()) tuning.targets = {"q", "v"};
      break;
    case Tuning::Kind::Prompt:
      tuning.tokens = parse_learned_tokens(arguments);
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
  if (tuning.kind == Tuning::Kind::Prompt) return fmt::format("{}:tokens={}", name, tuning.tokens);
  const std::string list = fmt::format("{}", fmt::join(tuning.targets, ","));
  if (tuning.kind == Tuning::Kind::Frozen) return fmt::format("{}:{}", name, list);
  const std::string dropout =
      tuning.dropout > 0 ? fmt::format(",dropout={}", tuning.dropout) : std::string();
  const std::string whole =
      tuning.whole.empty() ? "" : fmt::format(",save={}", fmt::join(tuning.whole, ","));
  return fmt::format("{}:r={}{}{}{},targets={}{}", name, tuning.rank, dropout,
                     tuning.base_dtype ? ",dtype=base" : "", tuning.magnitudes ? ",dora" : "", list,
                     whole);
}

Precision precision_of(const StepOptions& options) {
  return options.precision.value_or(find_framework(options.framework).default_precision);
}

std::optional<Sharding> sharing_of(const StepOptions& options) {
  const Sharding sharing = options.shard.value_or(Sharding());
  // Megatron-LM has its buffers on a rank alone, too.
  if (replicas_of(options.mesh) == 1 && sharing.kind != Sharding::Kind::Megatron) return {};
  return sharing;
}

namespace {

// Others reduce gradients of all parameters among all replicas.
std::string experts_defect(const StepOptions& options) {
  const Sharding::Kind kind = options.shard.value_or(Sharding()).kind;
  if (options.mesh.experts == 1 || kind == Sharding::Kind::Megatron) return {};
  Mesh alone = options.mesh;
  alone.experts = 1;
  return fmt::format(
      "in {} only Megatron-LM's data parallelism reduces experts among those that have them (take "
      "--framework megatron --shard megatron; nearest: {})",
      to_text(options.mesh), to_text(alone));
}

}  // namespace

std::string mesh_defect(const StepOptions& options) {
  if (const std::string defect = defect_of(options.mesh); !defect.empty()) return defect;
  return experts_defect(options);
}

namespace {

std::string instances_defect(const StepOptions& options, const Sharding& sharing) {
  const std::int64_t ranks = replicas_of(options.mesh);
  if (sharing.shard_ranks > 0 && ranks % sharing.shard_ranks != 0) {
    const std::int64_t nearest = nearest_divisor(ranks, sharing.shard_ranks);
    return fmt::format("{} replicas are no groups of {} ranks (nearest: {})", ranks,
                       sharing.shard_ranks,
                       nearest > 1 ? fmt::format("shard={}", nearest) : "--shard ddp");
  }
  if (ranks % sharing.instances == 0) return {};
  return fmt::format("{} replicas are no {} instances of as many each (nearest: instances={})",
                     ranks, sharing.instances, nearest_divisor(ranks, sharing.instances));
}

std::string framework_defect(const StepOptions& options, const Sharding& sharing) {
  const std::string_view name = sharding_kinds[static_cast<std::size_t>(sharing.kind)].name;
  const bool is_piped = options.mesh[Axis::Pipeline] > 1;
  if (is_piped && is_fsdp(sharing.kind))
    return fmt::format(
        "what {} gathers for micro-batches in flight is not simulated yet (take --shard ddp)",
        name);
  if (!is_zero(sharing.kind)) return {};
  if (is_piped)
    return fmt::format("{} is not simulated with pipeline stages (take --shard megatron)", name);
  if (precision_of(options) == Precision::Bf16 && !options.master_weights)
    return fmt::format("{} updates fp32 copies of 16-bit weights (add --master-weights)", name);
  return {};
}

}  // namespace

std::string sharing_defect(const StepOptions& options) {
  const std::optional<Sharding> sharing = sharing_of(options);
  if (!sharing) return {};
  if (const std::string defect = experts_defect(options); !defect.empty()) return defect;
  if (options.ddp) return "the ranks of a mesh have buckets of their own (leave --ddp out)";
  if (options.update_in_backward)
    return "gradients are averaged over ranks before an update (leave --update-in-backward out)";
  const bool gradients_stay =
      options.keep_gradients || find_framework(options.framework).gradients_persist;
  if (sharing->bucket_view && gradients_stay)
    return "views of gradients that stay between steps are not simulated (leave bucket-view out)";
  if (sharing->kind == Sharding::Kind::Ddp) return {};
  if (const std::string defect = instances_defect(options, *sharing); !defect.empty())
    return defect;
  if (sharing->kind == Sharding::Kind::Megatron && gradients_stay)
    return "Megatron-LM's gradients stay in its buffers (leave --keep-gradients out)";
  if (is_zero(sharing->kind) && gradients_stay)
    return "DeepSpeed frees gradients once they are reduced (leave --keep-gradients out)";
  if (const std::string defect = framework_defect(options, *sharing); !defect.empty())
    return defect;
  const OptimizerRow& optimizer = row_of(options.optimizer);
  const bool is_by_element =
      optimizer.state == StateKind::LikeParameter || optimizer.state == StateKind::Fp32;
  if (!is_by_element || options.optimizer == Optimizer::Muon)
    return fmt::format("{} needs whole matrices or blocks, and {} cuts them (take --shard ddp)",
                       optimizer.name, to_text(*sharing));
  if (options.base) return fmt::format("{} does not cut quantized weights", to_text(*sharing));
  return {};
}

}  // namespace tidemark
