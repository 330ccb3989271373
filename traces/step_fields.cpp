// The table's rows.
#include "traces/step_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "traces/megatron_optimizers.h"
#include "traces/step_values.h"

namespace tidemark {
namespace {

using step_values::defect_of;
using step_values::field;

// "one of sgd, adamw, … (default adamw)".
std::string_view optimizer_help() {
  static const std::string text = [] {
    std::string all;
    for (const OptimizerRow& row : optimizers)
      all += fmt::format("{}{}", all.empty() ? "one of " : ", ", row.name);
    return all + " (default adamw; docs/models.md says what each keeps and takes)";
  }();
  return text;
}

// An optimizer that never ran in this form is not planned in it.
StepField with_form(StepField row) {
  row.defect = [](const StepOptions& step) -> std::string {
    const OptimizerRow& optimizer = row_of(step.optimizer);
    if (!step.optimizer_form || optimizer.in(*step.optimizer_form)) return {};
    return fmt::format("{} has no {} form (it has: {})", optimizer.name,
                       to_string(*step.optimizer_form), forms_of(optimizer));
  };
  return row;
}

// Transformer Engine's FusedAdam(master_weights=True) is where this is from; Megatron-LM keeps
// copies beside any optimizer (Float16OptimizerWithFloat16Params of core/optimizer/optimizer.py).
StepField in_fused_form(StepField row) {
  row.defect = [](const StepOptions& step) -> std::string {
    const bool is_fused =
        step.optimizer_form.value_or(OptimizerForm::Fused) == OptimizerForm::Fused;
    const bool is_megatrons =
        step.optimizer == Optimizer::Muon && find_framework(step.framework).megatron;
    if (!step.master_weights || (is_fused && row_of(step.optimizer).fused) || is_megatrons)
      return {};
    return fmt::format("{} in this form keeps no master weights (fused optimizers do: adamw)",
                       row_of(step.optimizer).name);
  };
  return row;
}

// Transformer Engine's kernel is Megatron-LM's; what TRL's pairs keep is known beside one row of
// versions, of a model that is whole on its rank.
StepField with_known_loss(StepField row) {
  row.defect = [](const StepOptions& step) -> std::string {
    if (has_fused_loss(step) && !find_framework(step.framework).transformer_engine)
      return "fused is Transformer Engine's, for Megatron-LM (take --framework megatron, or "
             "--liger in its place)";
    if (has_native_loss(step) && !find_framework(step.framework).megatron)
      return "native is Megatron-LM's own (take --framework megatron, or --liger in its place)";
    if (has_native_loss(step) && precision_of(step) != Precision::Bf16)
      return "native hands on a bf16 gradient whatever the logits are (take --precision bf16)";
    if (!scores_pairs(step)) return defect_of(step.loss);
    if (find_framework(step.framework).name != default_framework)
      return fmt::format("TRL's pairs are known beside {} (take that --framework)",
                         default_framework);
    for (const Axis axis : {Axis::Tensor, Axis::Pipeline, Axis::Context})
      if (step.mesh[axis] > 1)
        return "a reference beside the model is known on ranks that have whole models (take a mesh "
               "of data-parallel ranks)";
    const std::optional<Sharding> sharing = sharing_of(step);
    if (sharing && sharing->kind != Sharding::Kind::Ddp)
      return "how a reference is shared among ranks is not known (take --shard ddp)";
    return {};
  };
  return row;
}

// Its training loop has some, whatever the data parallelism.
StepField of_framework(StepField row) {
  row.defect = [](const StepOptions& step) -> std::string {
    if (is_of_megatron(step.optimizer) || !find_framework(step.framework).megatron) return {};
    return fmt::format("Megatron-LM has no {} (take one of {})", row_of(step.optimizer).name,
                       optimizers_of_megatron());
  };
  return row;
}

// Its monkey patches replace modules of transformers, of which Megatron-LM has none.
StepField in_code_of_transformers(StepField row) {
  row.defect = [](const StepOptions& step) -> std::string {
    if (!step.liger || !find_framework(step.framework).megatron) return {};
    return fmt::format("Liger patches transformers' code, which {} does not run (leave it out)",
                       step.framework);
  };
  return row;
}

// Which rules torchao's linears follow is known for some versions, and their weights are whole. All
// but one factor per tensor are Transformer Engine's.
StepField in_known_framework(StepField row) {
  row.defect = [](const StepOptions& step) -> std::string {
    if (!step.linears) return {};
    const Framework& framework = find_framework(step.framework);
    if (framework.fp8_weight == Fp8Weight::Unknown && !framework.transformer_engine)
      return fmt::format(
          "{} has no linears in eight bits that are known (transformers-4.57, -5, "
          "torch-compile-blocks-2.6 and torchtitan have torchao's, megatron Transformer Engine's)",
          step.framework);
    if (step.linears->math != LinearMath::Fp8 && !framework.transformer_engine)
      return fmt::format(
          "{} has none with factors by groups: {} is Transformer Engine's (take fp8, or "
          "--framework megatron)",
          step.framework, to_string(step.linears->math));
    if (step.base)
      return "a weight that --base stores is not multiplied in eight bits (leave one out)";
    return {};
  };
  return row;
}

// What was updated is of no use to the micro-batch after it.
StepField in_one_batch(StepField row) {
  row.defect = [](const StepOptions& step) -> std::string {
    if (!step.update_in_backward || step.accumulate.count == 1) return {};
    return fmt::format(
        "an update in the backward frees gradients that {} micro-batches would add to (leave one "
        "of the two out)",
        step.accumulate.count);
  };
  return row;
}

StepField with_mesh(StepField row) {
  row.defect = mesh_defect;
  return row;
}

StepField with_known_dispatch(StepField row) {
  row.defect = expert_form_defect;
  return row;
}

StepField among_ranks(StepField row) {
  row.defect = [](const StepOptions& step) {
    const std::string defect = defect_of(step.shard);
    return defect.empty() ? sharing_defect(step) : defect;
  };
  return row;
}

std::vector<StepField> sizes() {
  return {
      field<&StepOptions::batch>(
          {.key = "batch",
           .id_prefix = "b",
           .shown = StepShown::Apart,
           .is_always_written = true,
           .is_swept = true,
           .switches = {{"-b,--batch", "N", "samples per step, or per micro-batch (default 1)"}}}),
      field<&StepOptions::accumulate>(
          {.key = "accumulate",
           .id_prefix = "accumulate=",
           .shown = StepShown::Apart,
           .fits_recorded = true,
           .switches = {{"--accumulate", "N",
                         "number of micro-batches, of --batch samples each, whose gradients add up "
                         "before the optimizer updates (default 1)"}}}),
      field<&StepOptions::sequence>(
          {.key = "sequence",
           .id_prefix = "s",
           .shown = StepShown::Apart,
           .is_swept = true,
           .switches = {{"-s,--sequence", "N",
                         "tokens per sample of a language model (default: the model's positions, "
                         "at most 2048)"}}}),
      field<&StepOptions::target_sequence>(
          {.key = "target_sequence",
           .id_prefix = "t",
           .shown = StepShown::Apart,
           .switches = {{"--target-sequence", "N",
                         "tokens per sample that an encoder-decoder writes (default: as many as it "
                         "reads)"}}}),
      field<&StepOptions::image>(
          {.key = "image",
           .id_prefix = "i",
           .shown = StepShown::Apart,
           .is_swept = true,
           .switches = {
               {"--image", "N", "pixels per side of a vision model (default: its config's)"}}})};
}

std::vector<StepField> arithmetic() {
  return {
      field<&StepOptions::head>(
          {.key = "head",
           .shown = StepShown::Apart,
           .switches = {{"--head", "NAME",
                         "what stands on the blocks: lm, mlm, pretraining, next-sentence, "
                         "sequence-classification, token-classification, question-answering, "
                         "image-classification, distilled-classification or none (default: what "
                         "the config's architectures name; tidemark models MODEL lists those of a "
                         "model)"}}}),
      field<&StepOptions::precision>(
          {.key = "precision",
           .shown = StepShown::Always,
           .switches =
               {{"--precision", "NAME",
                 "fp32, tf32, amp-fp16, amp-bf16 or bf16; also float32, float16 and bfloat16 "
                 "(default: bf16 if the config's weights are, else the framework's)"}}}),
      field<&StepOptions::attention>(
          {.key = "attention",
           .shown = StepShown::Always,
           .noun = "attention",
           .switches = {{"--attention", "NAME",
                         "sdpa (the kernel that PyTorch picks; default where the model's code "
                         "asks it to), math (scores in memory), flash or mem-efficient"}}}),
      field<&StepOptions::capability>(
          {.key = "compute_capability",
           .id_prefix = "sm",
           .switches = {{"--compute-capability", "N",
                         "the device whose kernels PyTorch picks among: 75, 80, 90 (default: that "
                         "of --device)"}}}),
      field<&StepOptions::padded>(
          {.key = "padded",
           .id_prefix = "padded=",
           .switches = {{"--padded", "",
                         "some tokens of a batch are padding: language models take an explicit "
                         "mask, and other attention kernels",
                         "true"}}}),
      with_known_loss(field<&StepOptions::loss>(
          {.key = "loss",
           .noun = "loss",
           .switches = {{"--loss", "NAME",
                         "the logits of a language model never as a whole: chunked:8 (checkpointed "
                         "chunks of rows), fused-linear (Liger's, which makes the gradients "
                         "while it makes the loss), or dpo (TRL's: a sample is a pair, beside a "
                         "frozen reference) and dpo:precomputed (what that says is data); or as a "
                         "whole, with --framework megatron: fused (Transformer Engine's, without "
                         "fp32 copies) or native (Megatron-LM's own under torch.compile)"}}})),
      field<&StepOptions::expert_load>(
          {.key = "expert_load",
           .noun = "expert load",
           .switches = {{"--expert-load", "WHAT",
                         "how routers deal out visits of experts: even, worst (all tokens visit "
                         "the same experts, those of one rank) or 1.5 (the busiest expert, or "
                         "rank of experts, gets 1.5 times the average; default even)"}}}),
      in_code_of_transformers(field<&StepOptions::liger>(
          {.key = "liger",
           .id_prefix = "liger=",
           .switches = {{"--liger", "",
                         "Liger's kernels for norms, gated activations, rotations and the loss "
                         "(use_liger_kernel of transformers' Trainer)",
                         "true"}}})),
      field<&StepOptions::tuning>(
          {.key = "tuning",
           .shown = StepShown::Apart,
           .is_always_written = true,
           .switches = {{"--tuning", "WHAT",
                         "full, lora:r=4,targets=q,v, lora-fa:r=4,targets=all, prompt:tokens=20, "
                         "prefix:tokens=20 or frozen:embed*,blocks.0.* (default full); of adapters "
                         "also dropout=0.1, dtype=base (not fp32), dora (magnitudes), rslora (the "
                         "same bytes) and "
                         "save=embed_tokens,lm_head (peft's modules_to_save)"}}}),
      field<&StepOptions::base>(
          {.key = "base",
           .noun = "base",
           .switches = {{"--base", "NAME",
                         "what the frozen linears under adapters are stored as: nf4, nf4-double "
                         "(QLoRA), int8 or fp8 (torchao's, decoded in the forward and kept so; "
                         "default: the precision's dtype)"}}}),
      in_known_framework(field<&StepOptions::linears>(
          {.key = "linears",
           .noun = "linears",
           .switches = {{"--linears", "NAME",
                         "what the linears in front of the head multiply in: fp8 (torchao's or "
                         "Transformer Engine's, a factor per tensor), fp8-blockwise, mxfp8 or "
                         "nvfp4 (Transformer Engine's; nvfp4:first=1,last=14 leaves blocks at "
                         "either end as they are; default: the precision's dtype)"}}})),
      of_framework(field<&StepOptions::optimizer>(
          {.key = "optimizer",
           .shown = StepShown::Always,
           .is_always_written = true,
           .switches = {{"--optimizer", "NAME", optimizer_help()}}})),
      with_form(field<&StepOptions::optimizer_form>(
          {.key = "optimizer_form",
           .noun = "update",
           .switches = {{"--optimizer-form", "NAME",
                         "foreach (all parameters at once, with temporaries for all of them), "
                         "for-loop or fused (default: the optimizer's or the framework's)"}}})),
      in_one_batch(field<&StepOptions::update_in_backward>(
          {.key = "update_in_backward",
           .id_prefix = "update_in_backward=",
           .switches = {{"--update-in-backward", "",
                         "update each weight as soon as its gradient is complete, and free that",
                         "true"}}})),
      field<&StepOptions::l2_decay>(
          {.key = "l2_decay",
           .id_prefix = "l2_decay=",
           .switches = {{"--l2-decay", "",
                         "weight decay of sgd, adagrad and rmsprop, which add it to the gradient: "
                         "a temporary unless fused",
                         "true"}}}),
      in_fused_form(field<&StepOptions::master_weights>(
          {.key = "master_weights",
           .id_prefix = "master_weights=",
           .switches = {{"--master-weights", "",
                         "the fused optimizer keeps an fp32 copy of 16-bit weights, and fp32 "
                         "moments",
                         "true"}}})),
      field<&StepOptions::keep_gradients>(
          {.key = "keep_gradients",
           .id_prefix = "keep_gradients=",
           .switches = {{"--keep-gradients", "",
                         "zero_grad(set_to_none=False): gradients stay between steps", "true"}}}),
      field<&StepOptions::dropout>(
          {.key = "dropout",
           .id_prefix = "dropout=",
           .switches = {{"--dropout", "P", "replaces every dropout probability of the config"}}}),
      field<&StepOptions::drop_path>(
          {.key = "drop_path",
           .id_prefix = "drop_path=",
           .switches = {{"--drop-path", "P",
                         "replaces the config's stochastic depth: the rate of the last block, 0 "
                         "for none"}}})};
}

std::vector<StepField> surroundings() {
  return {
      field<&StepOptions::framework>(
          {.key = "framework",
           .shown = StepShown::Always,
           .is_always_written = true,
           .switches = {{"--framework", "NAME",
                         "whose rules decide what is cast and kept (default transformers-4.57; "
                         "see tidemark frameworks)"}}}),
      field<&StepOptions::ema>(
          {.key = "ema",
           .id_prefix = "ema=",
           .switches = {{"--ema", "", "keep a moving average of the weights", "true"},
                        {"--no-ema", "", "keep none, whatever the model's recipe says", "false"}}}),
      field<&StepOptions::ddp>(
          {.key = "ddp",
           .id_prefix = "ddp=",
           .switches = {{"--ddp", "", "add the gradient buckets of a data-parallel wrapper",
                         "true"}}}),
      with_mesh(field<&StepOptions::mesh>(
          {.key = "mesh",
           .id_prefix = "mesh=",
           .noun = "mesh",
           .fits_recorded = true,
           .switches = {{"--mesh", "AXES",
                         "how the GPUs of a job are laid out: sizes of pp (pipeline stages), dp "
                         "(replicas), cp (context), tp (tensor), and ep (how many of dp · cp share "
                         "experts; of dp · cp · tp / N with etp=N, where N ranks cut each), as in "
                         "dp=8; the step is that of one rank (default 1)"}}})),
      field<&StepOptions::context_form>(
          {.key = "context_form",
           .id_prefix = "cp=",
           .noun = "context",
           .switches = {{"--cp-form", "NAME",
                         "how cp ranks attend to all tokens: all-gather (keys and values are "
                         "gathered, default), ring (they go from rank to rank beside the "
                         "attention, Megatron's p2p) or all-to-all (heads are exchanged, as "
                         "Ulysses and Megatron's a2a)"}}}),
      with_known_dispatch(field<&StepOptions::expert_form>(
          {.key = "expert_form",
           .id_prefix = "ep=",
           .noun = "dispatch",
           .switches = {{"--ep-form", "NAME",
                         "how ep ranks come to the tokens of their experts: all-to-all (visits are "
                         "exchanged, default) or all-gather (each has all tokens, Megatron's "
                         "allgather dispatcher)"}}})),
      field<&StepOptions::sequence_parallel>(
          {.key = "sequence_parallel",
           .id_prefix = "sp=",
           .switches = {{"--sp", "",
                         "between the parts of a block that tp ranks share, each has its part of "
                         "the sequence (Megatron's sequence parallelism)",
                         "true"}}}),
      field<&StepOptions::tp_overlap>(
          {.key = "tp_overlap",
           .id_prefix = "tp_overlap=",
           .switches = {{"--tp-overlap", "",
                         "what tp ranks gather and scatter around a product under --sp runs beside "
                         "it (Megatron's --tp-comm-overlap)",
                         "true"}}}),
      field<&StepOptions::schedule>(
          {.key = "schedule",
           .id_prefix = "schedule=",
           .switches = {{"--schedule", "NAME",
                         "in which order pipeline stages take the micro-batches of --accumulate: "
                         "1f1b (default), gpipe, interleaved:v=2 with chunks of the model, or with "
                         "gradients of weights where stages would wait zb-h1, zb-h2 or zb-v; "
                         "blocks=2-4-4-2 for uneven stages, group=6 for so many micro-batches "
                         "through a chunk before the next"}}}),
      field<&StepOptions::rank>(
          {.key = "rank",
           .id_prefix = "rank=",
           .noun = "rank",
           .switches = {{"--rank", "NAME",
                         "whose step it is, as pp0 for those of the first pipeline stage (default: "
                         "the stage that needs most; a trace file without it has that of pp0)"}}}),
      among_ranks(field<&StepOptions::shard>(
          {.key = "shard",
           .fits_recorded = true,
           .switches = {
               {"--shard", "NAME",
                "how the dp · cp ranks share parameters, gradients and optimizer states: ddp, "
                "fsdp2, fsdp1, megatron, zero1, zero2 or zero3, with options as in "
                "ddp:bucket-view, fsdp2:no-reshard, megatron:whole-states or "
                "zero3:prefetch=5e7 (default ddp; docs/parallel.md)"}}}))};
}

// Does not compile when StepOptions has a member more. Then give it a row, too.
std::size_t count_members(const StepOptions& step) {
  const auto& [batch, accumulate, sequence, target_sequence, image, head, precision, attention,
               capability, padded, loss, expert_load, liger, tuning, base, linears, optimizer, form,
               in_backward, l2_decay, master_weights, keep_gradients, dropout, drop_path, framework,
               ema, ddp, mesh, context_form, expert_form, sequence_parallel, tp_overlap, schedule,
               rank, shard] = step;
  return std::tuple_size_v<decltype(std::tie(
      batch, accumulate, sequence, target_sequence, image, head, precision, attention, capability,
      padded, loss, expert_load, liger, tuning, base, linears, optimizer, form, in_backward,
      l2_decay, master_weights, keep_gradients, dropout, drop_path, framework, ema, ddp, mesh,
      context_form, expert_form, sequence_parallel, tp_overlap, schedule, rank, shard))>;
}

}  // namespace

std::string_view long_name(std::string_view names) {
  const std::string_view name = names.substr(names.find("--"));
  return name.substr(0, name.find(','));
}

std::span<const StepField> step_fields() {
  static const std::vector<StepField> fields = [] {
    std::vector<StepField> all;
    for (const auto& part : {sizes(), arithmetic(), surroundings()})
      all.insert(all.end(), part.begin(), part.end());
    CHECK(all.size() == count_members({}));
    return all;
  }();
  return fields;
}

bool is_stated(const StepField& field, const StepOptions& step) {
  return field.value(step) != field.value({});
}

std::string to_text(const StepValue& value) {
  return std::visit([](const auto& shown) { return fmt::format("{}", shown); }, value);
}

std::string in_words(const StepField& field, const StepValue& value) {
  if (const auto* name = std::get_if<std::string>(&value))
    return field.noun.empty() ? *name : fmt::format("{} {}", *name, field.noun);
  std::string title(field.key);
  std::ranges::replace(title, '_', ' ');
  if (const bool* is_on = std::get_if<bool>(&value)) return (*is_on ? "" : "no ") + title;
  return title + " " + to_text(value);
}

std::string in_words(StepOptions step) {
  step.precision = precision_of(step);
  std::string text;
  for (const StepField& field : step_fields())
    if (field.is_always_written || is_stated(field, step))
      text += (text.empty() ? "" : ", ") + in_words(field, *field.value(step));
  return text;
}

}  // namespace tidemark
