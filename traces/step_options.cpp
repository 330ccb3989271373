// Losses read from text and written back, the precision that a step has in the end, and what does
// not go together.
#include "traces/step_options.h"

#include <fmt/format.h>

#include "base/number_in.h"
#include "traces/megatron_optimizers.h"
#include "traces/replicas.h"

namespace tidemark {
namespace {

constexpr std::array token_loss_names = {
    Named{TokenLoss::Kind::Chunked, std::string_view("chunked")},
    Named{TokenLoss::Kind::FusedLinear, std::string_view("fused-linear")},
    Named{TokenLoss::Kind::Dpo, std::string_view("dpo")},
    Named{TokenLoss::Kind::Fused, std::string_view("fused")},
    Named{TokenLoss::Kind::Native, std::string_view("native")}};
static_assert(is_in_order(token_loss_names));

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
  if (loss.kind == TokenLoss::Kind::Fused || loss.kind == TokenLoss::Kind::Native) {
    if (colon != text.size())
      throw UsageError(fmt::format("loss: '{}' takes no arguments", to_text(loss)));
    return loss;
  }
  if (loss.kind == TokenLoss::Kind::Dpo) {
    loss.precomputed = count == "precomputed";
    if (colon != text.size() && !loss.precomputed)
      throw UsageError(fmt::format(
          "loss: 'dpo:{}' is not understood (dpo, or dpo:precomputed: what the reference says is "
          "data)",
          count.substr(0, 64)));
    return loss;
  }
  const auto chunks = number_in<std::int64_t>(count);
  if (colon == text.size())
    throw UsageError("loss: 'chunked' needs how many chunks, as in chunked:8");
  if (!chunks || *chunks < 1 || *chunks > TokenLoss::most_chunks)
    throw UsageError(fmt::format("loss: '{}' is not a number of chunks (chunked:8; 1 to {})",
                                 count.substr(0, 64), TokenLoss::most_chunks));
  loss.chunks = *chunks;
  return loss;
}

std::string to_text(const TokenLoss& loss) {
  const std::string name(token_loss_names[static_cast<std::size_t>(loss.kind)].name);
  if (loss.precomputed) return name + ":precomputed";
  return loss.kind == TokenLoss::Kind::Chunked ? fmt::format("{}:{}", name, loss.chunks) : name;
}

// first=N or last=N
void parse_end(std::string_view option, CodedLinears& linears) {
  const std::size_t equals = std::min(option.find('='), option.size());
  const std::string_view key = option.substr(0, equals);
  const auto blocks = number_in<std::int64_t>(option.substr(std::min(equals + 1, option.size())));
  constexpr std::int64_t most = 100'000;
  if ((key != "first" && key != "last") || !blocks || *blocks < 0 || *blocks > most)
    throw UsageError(fmt::format(
        "linears: '{}' is not understood (first=1,last=14: how many blocks at either end multiply "
        "in the precision's dtype; 0 to {})",
        option.substr(0, 64), most));
  std::int64_t& end = key == "first" ? linears.first : linears.last;
  if (end > 0) throw UsageError(fmt::format("linears: '{}' is given twice", key));
  end = *blocks;
}

CodedLinears parse_coded_linears(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  CodedLinears linears{parse_name(linear_maths, "linears", text.substr(0, colon))};
  for (std::size_t begin = colon + 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parse_end(text.substr(begin, end - begin), linears);
    begin = end + 1;
  }
  return linears;
}

std::string to_text(const CodedLinears& linears) {
  std::string text(to_string(linears.math));
  char before = ':';
  const auto add = [&](std::string_view key, std::int64_t blocks) {
    if (blocks == 0) return;
    text += fmt::format("{}{}={}", before, key, blocks);
    before = ',';
  };
  add("first", linears.first), add("last", linears.last);
  return text;
}

bool has_fused_loss(const StepOptions& options) {
  return options.loss && options.loss->kind == TokenLoss::Kind::Fused;
}

bool has_native_loss(const StepOptions& options) {
  return options.loss && options.loss->kind == TokenLoss::Kind::Native;
}

bool scores_pairs(const StepOptions& options) {
  return options.loss && options.loss->kind == TokenLoss::Kind::Dpo;
}

std::int64_t sequences_of(const StepOptions& options) {
  return scores_pairs(options) ? 2 * options.batch : options.batch;
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

// Megatron-LM's MoEAllGatherTokenDispatcher (core/transformer/moe/token_dispatcher.py).
std::string expert_form_defect(const StepOptions& options) {
  if (options.expert_form.value_or(ExpertForm::AllToAll) == ExpertForm::AllToAll) return {};
  if (!find_framework(options.framework).grouped_experts)
    return fmt::format("{} has no experts whose tokens are gathered (take --framework megatron)",
                       options.framework);
  if (options.mesh[Axis::Tensor] > 1)
    return "tokens that are gathered are not cut by tensor-parallel ranks yet (take all-to-all, or "
           "tp=1)";
  if (options.expert_load)
    return "a rank that has all tokens of all is as busy however they choose; loads are of visits "
           "(take all-to-all)";
  return {};
}

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
  if (sharing.instances > 1 && !sharing.cuts_states)
    return "instances are groups of ranks that cut states, and whole-states cuts none (leave one "
           "of them out)";
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
  if (options.optimizer == Optimizer::Muon && sharing->kind == Sharding::Kind::Megatron)
    return sharing->cuts_states
               ? "which rank has which of Muon's matrices is not simulated (take --shard "
                 "megatron:whole-states)"
               : "";
  if (sharing->kind == Sharding::Kind::Megatron && !is_of_megatron(options.optimizer))
    return fmt::format("{} is no optimizer of Megatron-LM's (take --shard ddp)", optimizer.name);
  if (!is_by_element || options.optimizer == Optimizer::Muon)
    return fmt::format("{} needs whole matrices or blocks, and {} cuts them (take --shard ddp)",
                       optimizer.name, to_text(*sharing));
  if (options.base) return fmt::format("{} does not cut quantized weights", to_text(*sharing));
  return {};
}

}  // namespace tidemark
