// Names of options as in megatron/training/arguments.py, torchtitan/config/job_config.py,
// deepspeed/runtime/zero/config.py and accelerate/commands/launch.py.
#include "cli/reports/launch_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "simulator/parallel/cluster.h"
#include "simulator/parallel/shards.h"
#include "traces/exchange_axis.h"
#include "traces/framework.h"
#include "traces/replicas.h"

namespace tidemark::cli {
namespace {

enum class Recomputed : std::uint8_t { Nothing, Attention, ByOp, Blocks, Other };

struct Launch {
  StepOptions step = {};
  Sharding::Kind sharing = Sharding::Kind::Ddp;
  Recomputed recomputed = Recomputed::Nothing;
  std::int64_t every = 1;  ///< blocks per checkpointed segment
  std::string_view strategy = {}, family = {};
  std::int64_t nodes = 1, per_node = 1, global_batch = 1, blocks = 0;
  std::int64_t further_tokens = 0;  ///< that are predicted
  bool repeats_further = false;
  bool groups_products = true;  ///< of experts

  std::int64_t size(Axis axis) const { return step.mesh[axis]; }
};

// As many on each node, with whole groups of tensor-parallel ranks, which stay on one.
std::int64_t processes_per_node(std::int64_t gpus, std::int64_t most, std::int64_t tensor) {
  std::int64_t found = std::min(gpus, most) / tensor * tensor;
  while (found > tensor && gpus % found != 0) found -= tensor;
  return std::max(found, tensor);
}

Launch launch_of(const LayoutRequest& request, const MeshLayout& layout) {
  Launch launch;
  launch.step = step_in(request, layout);
  launch.sharing = launch.step.shard.value_or(Sharding()).kind;
  launch.global_batch = request.global_batch;
  const auto* joined = interconnect_of(request.scenario.device);
  const std::int64_t gpus = layout.mesh.gpus();
  const auto most = joined ? static_cast<std::int64_t>(joined->gpus_per_node) : gpus;
  launch.per_node = processes_per_node(gpus, most, layout.mesh[Axis::Tensor]);
  launch.nodes = gpus / launch.per_node;
  const StrategySpec& strategy = request.scenario.strategies[layout.strategy];
  launch.strategy = strategy.text;
  const ModelConfig& config = request.scenario.model.config;
  launch.family = family_of(config);
  if (const auto* decoder = std::get_if<DecoderConfig>(&config);
      decoder && find_framework(launch.step.framework).megatron) {
    launch.further_tokens = decoder->further_tokens;
    launch.repeats_further = decoder->repeats_further;
    launch.groups_products = decoder->experts.is_grouped;
  }
  if (strategy.text == reference_strategy().name) return launch;
  launch.recomputed = Recomputed::Other;
  if (strategy.plan || strategy.components.size() != 1) return launch;
  const auto& component = strategy.components.front();
  if (component.row->name != "checkpoint") return launch;
  if (component.arguments.has("sqrt")) return launch;
  launch.recomputed = component.arguments.has("selective") ? Recomputed::Attention
                      : component.arguments.has("op")      ? Recomputed::ByOp
                                                           : Recomputed::Blocks;
  launch.every = component.arguments.number("every").value_or(1);
  return launch;
}

constexpr std::string_view titan = "torchtitan", accelerate = "accelerate";

LaunchLine without(std::string_view program, std::string why_not) {
  return {program, "", std::move(why_not)};
}

std::string no_such_strategy(const Launch& launch) {
  return fmt::format("it has no options for {}", launch.strategy);
}

bool compiles_blocks(const Launch& launch) {
  return find_framework(launch.step.framework).compiles_blocks;
}

std::string torchrun(const Launch& launch) {
  return fmt::format("torchrun --nnodes {} --nproc-per-node {}", launch.nodes, launch.per_node);
}

std::string no_such_precision(const Launch& launch) {
  return fmt::format("it has no options for {}", to_string(precision_of(launch.step)));
}

// Its 16-bit weights are those of the model, with fp32 copies: autocast has fp32 ones.
std::optional<std::string_view> megatron_precision(const StepOptions& step) {
  switch (precision_of(step)) {
    case Precision::Bf16:
      return step.shard->gradients_are_wide ? " --bf16" : " --bf16 --grad-reduce-in-bf16";
    case Precision::AmpBf16:
    case Precision::AmpFp16:
      return {};
    case Precision::Fp32:
    case Precision::Tf32:
      return "";
  }
  return {};
}

std::string megatron_sharing(const Sharding& sharding) {
  std::string text = sharding.cuts_states ? " --use-distributed-optimizer" : "";
  if (sharding.overlaps) text += " --overlap-grad-reduce";
  if (!sharding.fuses_accumulation) text += " --no-gradient-accumulation-fusion";
  if (sharding.instances > 1)
    text += fmt::format(" --num-distributed-optimizer-instances {}", sharding.instances);
  return text;
}

std::string_view megatron_context(const StepOptions& step) {
  switch (step.context_form.value_or(ContextForm::AllGather)) {
    case ContextForm::AllGather:
      return "all_gather";
    case ContextForm::AllToAll:
      return "a2a";
    case ContextForm::Ring:
      return "p2p";
  }
  return "";
}

std::string_view megatron_recipe(LinearMath math) {
  switch (math) {
    case LinearMath::Fp8:
      return " --fp8-format hybrid --fp8-recipe tensorwise";
    case LinearMath::Fp8Blockwise:
      return " --fp8-format e4m3 --fp8-recipe blockwise";
    case LinearMath::MxFp8:
      return " --fp8-format e4m3 --fp8-recipe mxfp8";
    case LinearMath::NvFp4:
      return " --fp4-format e2m1 --fp4-recipe nvfp4";
  }
  return "";
}

std::string megatron_codes(const CodedLinears& linears) {
  std::string text(megatron_recipe(linears.math));
  if (linears.first + linears.last > 0)
    text += fmt::format(
        " --first-last-layers-bf16 --num-layers-at-start-in-bf16 {} --num-layers-at-end-in-bf16 {}",
        linears.first, linears.last);
  return text;
}

std::string_view megatron_script(std::string_view family) {
  if (family == "nemotron-h" || family == "megatron-hybrid") return "pretrain_hybrid.py";
  if (family == "bert") return "examples/bert/pretrain_bert.py";
  return family == "t5" || family == "megatron-t5" ? "examples/t5/pretrain_t5.py"
                                                   : "pretrain_gpt.py";
}

// Of its own layers, and with results that repeat.
std::string megatron_layers(const Launch& launch) {
  const Framework& framework = find_framework(launch.step.framework);
  if (!framework.megatron) return "";
  std::string text = framework.transformer_engine ? "" : " --transformer-impl local";
  if (launch.further_tokens > 0) text += fmt::format(" --mtp-num-layers {}", launch.further_tokens);
  if (launch.further_tokens > 1 && launch.repeats_further) text += " --mtp-use-repeated-layer";
  return text + (framework.deterministic_workspace ? " --deterministic-mode" : "");
}

// Of stages with one chunk each, as --decoder-first-pipeline-num-layers and its like say.
bool has_even_middle(const PipelineSchedule& schedule) {
  const std::vector<std::int64_t>& blocks = schedule.blocks;
  const auto differs = [&](std::int64_t count) { return count != blocks[1]; };
  return schedule.chunks == 1 && blocks.size() > 1 && blocks.front() > 0 && blocks.back() > 0 &&
         std::none_of(blocks.begin() + 1, blocks.end() - 1, differs);
}

LaunchLine megatron_line(const Launch& launch) {
  constexpr std::string_view program = "Megatron-LM";
  if (launch.sharing != Sharding::Kind::Megatron)
    return without(program, "its data parallelism is --shard megatron");
  if (launch.recomputed == Recomputed::Other || launch.recomputed == Recomputed::ByOp)
    return without(program, no_such_strategy(launch));
  const PipelineSchedule schedule = launch.step.schedule.value_or(PipelineSchedule());
  if (schedule.kind == PipelineSchedule::Kind::GPipe) return without(program, "it has no GPipe");
  if (schedule.splits_backward()) return without(program, "it has no zero-bubble schedules");
  if (!schedule.blocks.empty() && !has_even_middle(schedule))
    return without(program, "stages dealt out by hand need --pipeline-model-parallel-layout");
  if (launch.further_tokens > 0 && launch.recomputed == Recomputed::Blocks && launch.every > 1)
    return without(program, "what predicts further tokens is recomputed layer by layer only");
  const auto precision = megatron_precision(launch.step);
  if (!precision) return without(program, no_such_precision(launch));
  std::string line = fmt::format(
      "{} {} … --tensor-model-parallel-size {} --pipeline-model-parallel-size {} "
      "--micro-batch-size {} --global-batch-size {}{}",
      torchrun(launch), megatron_script(launch.family), launch.size(Axis::Tensor),
      launch.size(Axis::Pipeline), launch.step.batch, launch.global_batch, *precision);
  if (launch.size(Axis::Context) > 1)
    line += fmt::format(" --context-parallel-size {} --cp-comm-type {}", launch.size(Axis::Context),
                        megatron_context(launch.step));
  if (const std::int64_t ranks = launch.step.mesh.experts; ranks > 1)
    line += fmt::format(" --expert-model-parallel-size {} --moe-token-dispatcher-type {}{}", ranks,
                        launch.step.expert_form == ExpertForm::AllGather ? "allgather" : "alltoall",
                        launch.groups_products ? " --moe-grouped-gemm" : "");
  if (const std::int64_t ranks = launch.step.mesh.expert_tensor; ranks > 0)
    line += fmt::format(" --expert-tensor-parallel-size {}", ranks);
  if (launch.step.sequence_parallel && launch.size(Axis::Tensor) > 1) {
    line += " --sequence-parallel";
    if (launch.step.tp_overlap) line += " --tp-comm-overlap";
  }
  line += megatron_layers(launch);
  if (launch.step.optimizer == Optimizer::Muon) line += " --optimizer muon";
  if (launch.step.linears) line += megatron_codes(*launch.step.linears);
  if (schedule.group > 0)
    line += fmt::format(" --microbatch-group-size-per-virtual-pipeline-stage {}", schedule.group);
  if (schedule.chunks > 1)
    line += fmt::format(" --num-layers-per-virtual-pipeline-stage {}",
                        launch.blocks / launch.size(Axis::Pipeline) / schedule.chunks);
  if (!schedule.blocks.empty())
    line +=
        fmt::format(" --decoder-first-pipeline-num-layers {} --decoder-last-pipeline-num-layers {}",
                    schedule.blocks.front(), schedule.blocks.back());
  line += megatron_sharing(*launch.step.shard);
  if (has_fused_loss(launch.step))
    line += " --cross-entropy-loss-fusion --cross-entropy-fusion-impl te";
  if (has_native_loss(launch.step))
    line += " --cross-entropy-loss-fusion --cross-entropy-fusion-impl native";
  if (launch.recomputed == Recomputed::Attention) line += " --recompute-granularity selective";
  if (launch.recomputed == Recomputed::Blocks)
    line += fmt::format(
        " --recompute-granularity full --recompute-method uniform --recompute-num-layers {}",
        launch.every);
  return {program, line, ""};
}

std::string titan_replicas(const Launch& launch) {
  const std::int64_t ranks = launch.size(Axis::Data);
  if (launch.sharing == Sharding::Kind::Ddp)
    return fmt::format(
        " --parallelism.data_parallel_replicate_degree {} --parallelism.data_parallel_shard_degree "
        "1",
        ranks);
  // Context ranks share, too, and are not counted.
  const std::int64_t cut = ranks_that_share(launch.step) / launch.size(Axis::Context);
  const std::string copies =
      cut < ranks ? fmt::format(" --parallelism.data_parallel_replicate_degree {}", ranks / cut)
                  : "";
  return fmt::format(
      "{} --parallelism.data_parallel_shard_degree {} --parallelism.fsdp_reshard_after_forward {}",
      copies, cut, launch.step.shard->reshards ? "always" : "never");
}

std::string titan_stages(const Launch& launch, const PipelineSchedule& schedule) {
  std::string_view name;
  switch (schedule.kind) {
    case PipelineSchedule::Kind::OneForwardOneBackward:
      name = "1F1B";
      break;
    case PipelineSchedule::Kind::GPipe:
      name = "GPipe";
      break;
    case PipelineSchedule::Kind::Interleaved:
      name = "Interleaved1F1B";
      break;
    case PipelineSchedule::Kind::ZeroBubbleV:
      name = "ZBVZeroBubble";
      break;
    case PipelineSchedule::Kind::ZeroBubbleH1:  // titan_line() has refused them
    case PipelineSchedule::Kind::ZeroBubbleH2:
      break;
  }
  std::string text = fmt::format(
      " --parallelism.pipeline_parallel_degree {} --parallelism.pipeline_parallel_schedule {} "
      "--parallelism.pipeline_parallel_microbatch_size {}",
      launch.size(Axis::Pipeline), name, launch.step.batch);
  // The embedding and the head count as no layers here.
  text += fmt::format(
      " --parallelism.pipeline_parallel_layers_per_stage {} "
      "--parallelism.pipeline_parallel_first_stage_less_layers 0 "
      "--parallelism.pipeline_parallel_last_stage_less_layers 0",
      launch.blocks / launch.size(Axis::Pipeline) / schedule.chunks);
  return text;
}

// Its parameters are fp32 and are computed with in bf16 unless it is told otherwise.
std::optional<std::string_view> titan_precision(const StepOptions& step) {
  switch (precision_of(step)) {
    case Precision::Bf16:
    case Precision::AmpBf16:
      return "";
    case Precision::Fp32:
      return " --training.mixed_precision_param float32";
    case Precision::Tf32:
    case Precision::AmpFp16:
      return {};
  }
  return {};
}

// torchtitan/models; LLaMA's family here has Qwen3, too.
bool has_titan(std::string_view family) { return family == "llama" || family == "deepseek-v3"; }

LaunchLine titan_line(const Launch& launch) {
  constexpr std::string_view program = titan;
  if (!has_titan(launch.family))
    return without(program, "it has no such network, but LLaMA 3, Qwen3 and DeepSeek-V3");
  if (launch.sharing == Sharding::Kind::Megatron)
    return without(program, "it has fully_shard and replicas, no buffers of Megatron-LM");
  if (launch.sharing != Sharding::Kind::Ddp && launch.sharing != Sharding::Kind::Fsdp2)
    return without(program, "it has fully_shard and replicas only");
  const bool is_hybrid = ranks_that_share(launch.step) < replicas_of(launch.step.mesh);
  if (launch.size(Axis::Context) > 1 && (launch.sharing == Sharding::Kind::Ddp || is_hybrid))
    return without(program, "there all context ranks share parameters, as with fully_shard");
  if (launch.size(Axis::Tensor) > 1 && !launch.step.sequence_parallel)
    return without(program, "its tensor parallelism is with --sp");
  const bool wraps_others = launch.recomputed == Recomputed::Blocks && launch.every != 1;
  if (launch.recomputed == Recomputed::Other || launch.recomputed == Recomputed::Attention ||
      wraps_others)
    return without(program, no_such_strategy(launch));
  if (launch.step.context_form == ContextForm::AllToAll)
    return without(program, "its context ranks gather keys, and exchange no heads");
  if (passes_keys_around(launch.step))
    return without(program, "its context ranks gather keys, and pass none around");
  const bool is_piped = launch.size(Axis::Pipeline) > 1;
  if (is_piped && launch.step.schedule->group > 0)
    return without(program,
                   "its interleaved groups have as many micro-batches as there are stages");
  if (is_piped && !launch.step.schedule->blocks.empty())
    return without(program, "stages dealt out by hand need module_fqns_per_model_part");
  if (is_piped && launch.step.schedule->splits_backward() && launch.step.schedule->chunks == 1)
    return without(program, "its zero-bubble schedules have two chunks per stage (zb-v)");
  const auto precision = titan_precision(launch.step);
  if (!precision) return without(program, no_such_precision(launch));
  const std::int64_t local = launch.step.batch * (is_piped ? launch.step.accumulate.count : 1);
  std::string line = fmt::format(
      "{} -m torchtitan.train … --training.local_batch_size {} "
      "--training.global_batch_size {}{}{}",
      torchrun(launch), local, launch.global_batch, *precision, titan_replicas(launch));
  if (launch.size(Axis::Tensor) > 1)
    line += fmt::format(" --parallelism.tensor_parallel_degree {}", launch.size(Axis::Tensor));
  if (launch.size(Axis::Context) > 1)
    line += fmt::format(" --parallelism.context_parallel_degree {}", launch.size(Axis::Context));
  if (is_piped) line += titan_stages(launch, *launch.step.schedule);
  line += fmt::format(" --activation_checkpoint.mode {}",
                      launch.recomputed == Recomputed::Blocks ? "full"
                      : launch.recomputed == Recomputed::ByOp
                          ? "selective --activation_checkpoint.selective_ac_option op"
                          : "none");
  if (compiles_blocks(launch)) line += " --compile.enable";
  if (launch.step.linears) line += " --model.converters quantize.linear.float8";
  return {program, line, ""};
}

std::string zero_config(const Sharding& sharding) {
  const bool is_three = sharding.kind == Sharding::Kind::Zero3;
  const char* const stage = is_three ? "3" : sharding.kind == Sharding::Kind::Zero2 ? "2" : "1";
  std::string text = fmt::format("\"stage\": {}, \"overlap_comm\": {}, \"reduce_bucket_size\": {}",
                                 stage, sharding.overlaps, sharding.reduce_bucket);
  if (is_three)
    text += fmt::format(
        ", \"stage3_prefetch_bucket_size\": {}, \"stage3_max_live_parameters\": {}, "
        "\"stage3_max_reuse_distance\": {}, \"stage3_param_persistence_threshold\": {}",
        sharding.prefetch, sharding.max_live, sharding.reuse_distance, sharding.persistence);
  return text;
}

// Its own 16 bits have fp32 copies; autocast is the script's.
LaunchLine deepspeed_line(const Launch& launch) {
  constexpr std::string_view program = "DeepSpeed";
  if (!is_zero(launch.sharing))
    return without(program, "its data parallelism is --shard zero1 to 3");
  if (compiles_blocks(launch)) return without(program, "what is compiled is written in the script");
  if (launch.size(Axis::Tensor) > 1)
    return without(program, "its tensor parallelism is the model's own");
  if (launch.size(Axis::Context) > 1)
    return without(program, launch.step.context_form == ContextForm::AllToAll
                                ? "which ranks exchange heads is written in the script"
                                : "its ranks exchange heads where they share a sequence");
  if (launch.recomputed != Recomputed::Nothing)
    return without(program, fmt::format("{} is written in the script", launch.strategy));
  const Precision precision = precision_of(launch.step);
  if (precision == Precision::AmpBf16 || precision == Precision::AmpFp16)
    return without(program, "autocast is written in the script");
  const std::string_view bits =
      precision == Precision::Bf16 ? "\"bf16\": {\"enabled\": true}, " : "";
  return {program,
          fmt::format("echo '{{\"train_micro_batch_size_per_gpu\": {}, "
                      "\"gradient_accumulation_steps\": {}, {}\"zero_optimization\": {{{}}}}}' > "
                      "ds.json && deepspeed --num_nodes {} --num_gpus {} train.py … --deepspeed "
                      "--deepspeed_config ds.json",
                      launch.step.batch, launch.step.accumulate.count, bits,
                      zero_config(*launch.step.shard), launch.nodes, launch.per_node),
          ""};
}

std::string_view accelerate_precision(const StepOptions& step) {
  switch (precision_of(step)) {
    case Precision::Bf16:
    case Precision::AmpBf16:
      return "bf16";
    case Precision::AmpFp16:
      return "fp16";
    case Precision::Fp32:
    case Precision::Tf32:
      return "no";
  }
  return "no";
}

bool has_groups(const Sharding& sharding, std::int64_t ranks) {
  return sharding.shard_ranks > 0 && sharding.shard_ranks < ranks;
}

std::string fsdp_options(const Sharding& sharding, std::int64_t ranks) {
  const std::string_view begin = " --use_fsdp --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP";
  if (sharding.kind == Sharding::Kind::Fsdp2) {
    std::string text = fmt::format("{} --fsdp_version 2 --fsdp_reshard_after_forward {}", begin,
                                   sharding.reshards);
    if (has_groups(sharding, ranks))
      text += fmt::format(
          " --use_parallelism_config --parallelism_config_dp_replicate_size {} "
          "--parallelism_config_dp_shard_size {}",
          ranks / sharding.shard_ranks, sharding.shard_ranks);
    return text;
  }
  const std::string_view whole = sharding.reshards ? "FULL_SHARD" : "SHARD_GRAD_OP";
  const std::string_view by_node = sharding.reshards ? "HYBRID_SHARD" : "HYBRID_SHARD_ZERO2";
  return fmt::format("{} --fsdp_version 1 --fsdp_sharding_strategy {}", begin,
                     has_groups(sharding, ranks) ? by_node : whole);
}

LaunchLine accelerate_line(const Launch& launch) {
  constexpr std::string_view program = accelerate;
  if (launch.size(Axis::Tensor) * launch.size(Axis::Context) * launch.size(Axis::Pipeline) > 1)
    return without(program, "of these layouts it launches replicas only");
  if (launch.sharing == Sharding::Kind::Megatron)
    return without(program, "it has no buffers of Megatron-LM in its own loop");
  if (is_zero(launch.sharing)) return without(program, "of ZeRO it reads DeepSpeed's JSON");
  if (compiles_blocks(launch)) return without(program, "what is compiled is written in the script");
  const std::int64_t replicas = launch.size(Axis::Data);
  if (launch.sharing == Sharding::Kind::Fsdp1 && has_groups(*launch.step.shard, replicas) &&
      launch.step.shard->shard_ranks * launch.nodes != replicas)
    return without(program, "FSDP1's groups are nodes there, others are written in the script");
  const bool is_cut = is_fsdp(launch.sharing);
  const bool wraps = launch.recomputed == Recomputed::Blocks && launch.every == 1;
  if (launch.recomputed != Recomputed::Nothing && !(wraps && is_cut))
    return without(program, fmt::format("{} is written in the script", launch.strategy));
  std::string line = fmt::format(
      "accelerate launch --num_machines {} --num_processes {} --mixed_precision {} "
      "--gradient_accumulation_steps {}",
      launch.nodes, replicas, accelerate_precision(launch.step), launch.step.accumulate.count);
  if (is_cut) {
    line += fsdp_options(*launch.step.shard, replicas);
    if (wraps) line += " --fsdp_activation_checkpointing true";
  } else if (replicas > 1) {
    line += " --multi_gpu";
  }
  return {program, line + " train.py …", ""};
}

}  // namespace

std::vector<LaunchLine> launch_lines(const LayoutRequest& request, const MeshLayout& layout) {
  Launch launch = launch_of(request, layout);
  launch.blocks = block_count(request);
  std::vector<LaunchLine> lines = {megatron_line(launch), titan_line(launch),
                                   deepspeed_line(launch), accelerate_line(launch)};
  const Framework& framework = find_framework(launch.step.framework);
  for (LaunchLine& line : lines) {
    if (framework.torchtitan && line.program != titan)
      line = without(line.program, "the network is torchtitan's own code");
    if (framework.megatron && (line.program == titan || line.program == accelerate))
      line = without(line.program, "the network is Megatron-LM's own code");
  }
  return lines;
}

}  // namespace tidemark::cli
