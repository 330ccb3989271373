// From a case of the fixture to the options that mean the same, and to the bytes of its schedule.
#include "tests/support/measured_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "analysis/comparison.h"
#include "simulator/kernel_choice.h"
#include "simulator/needs.h"
#include "simulator/parallel/rank_trace.h"
#include "traces/models/config_reader.h"
#include "traces/trace_json.h"

namespace tidemark {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 50;

std::string device_of(const JsonView& step) {
  const std::int64_t capability = step.integer_or("sm", 80);
  return capability == 75 ? "t4" : capability == 90 ? "h100" : "a100-80gb";
}

StepOptions options_of(const JsonView& step) {
  StepOptions options{.batch = step.at("batch").integer(),
                      .precision = parse_name(precisions, "precision", step.at("precision").text()),
                      .tuning = tuning_of(step)};
  if (const auto tokens = step.find("tokens")) options.sequence = tokens->integer();
  if (const auto tokens = step.find("target_tokens")) options.target_sequence = tokens->integer();
  if (step.at("attention").text() == "math") options.attention = Attention::Math;
  options.padded = step.boolean_or("padded", false);
  if (const auto name = step.find("optimizer"))
    options.optimizer = parse_name(optimizers, "optimizer", name->text());
  if (const auto form = step.find("optimizer_form"))
    options.optimizer_form = parse_name(optimizer_forms, "optimizer form", form->text());
  if (const auto loss = step.find("loss")) options.loss = parse_token_loss(loss->text());
  if (const auto reference = step.find("reference"))
    options.loss = parse_token_loss(reference->text() == "precomputed" ? "dpo:precomputed" : "dpo");
  if (const auto base = step.find("base"))
    options.base = parse_name(base_weights, "base", base->text());
  if (const auto name = step.find("linears")) options.linears = parse_coded_linears(name->text());
  options.liger = step.boolean_or("liger", false);
  options.l2_decay = step.boolean_or("l2_decay", false);
  options.update_in_backward = step.boolean_or("update_in_backward", false);
  options.master_weights = step.boolean_or("master_weights", false);
  options.mesh[Axis::Data] = step.integer_or("ranks", 1);
  if (const auto name = step.find("shard")) options.shard = parse_sharding(name->text());
  return options;
}

StepBytes measured_bytes(const JsonView& step) {
  const JsonView allocated = step.at("allocated");
  const std::optional<JsonView> live = step.find("live");
  const auto highest = [](const JsonView& phases, std::initializer_list<std::string_view> names) {
    std::int64_t bytes = 0;
    for (const std::string_view name : names)
      bytes = std::max(bytes, phases.at(name).integer(0, most));
    return bytes;
  };
  return {.saved = step.at("saved").integer(0, most),
          .live = live ? highest(*live, {"forward", "backward"}) : 0,
          .allocated = highest(allocated, {"forward", "backward", "optimizer"}),
          .reserved = step.at("reserved").integer(0, most),
          .parameters = step.at("parameters").integer(0, most),
          .trainable = step.at("trainable").integer(0, most),
          .state = step.integer_or("state", 0, 0, most),
          .update = live ? std::max<std::int64_t>(0, live->at("optimizer").integer(0, most) -
                                                         live->at("begin").integer(0, most))
                         : 0};
}

// Storages that the backward needs, parameters apart; of checkpointed blocks also what they are
// called with, and what runs again reads of what the block's forward has made.
std::int64_t kept_by_nodes(const PlannedStep& step) {
  const Trace& trace = *step.trace;
  const Needs needs = derive_needs(trace);
  std::set<TensorId> kept;
  const auto keep = [&](TensorId storage, TensorId) {
    if (step.plan.decisions[index(storage)].action == Action::Keep) kept.insert(storage);
  };
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    for_each_operand(trace, trace.ops[i], needs.saved[i], keep);
  if (!step.plan.regions.empty()) {
    for (const Block& block : trace.blocks) keep(trace[block.input].storage, block.input);
    const Recovery recovery = derive_recovery(trace, step.plan, needs);
    for (std::size_t s = 0; s < trace.tensors.size(); ++s)
      if (recovery.reads_kept[s] && trace[needs.producer[s]].block >= 0)
        keep(static_cast<TensorId>(s), static_cast<TensorId>(s));
  }
  std::int64_t bytes = 0;
  for (const TensorId storage : kept)
    if (trace[storage].category != Category::Parameter) bytes += size(trace[storage]).count;
  return bytes;
}

// In issue order: most at once up to the end of the backward, and above what stays in the
// optimizer's step.
void add_live_peaks(const Schedule& schedule, StepBytes& bytes) {
  std::int64_t persistent = 0, peak = 0;
  for (const Buffer& buffer : schedule.buffers)
    if (buffer.persistent) persistent += buffer.size.count;
  std::int64_t now = persistent;
  for (const Step& step : schedule.steps) {
    if (const auto* a = std::get_if<Allocate>(&step)) now += schedule[a->buffer].size.count;
    if (const auto* f = std::get_if<Free>(&step)) now -= schedule[f->buffer].size.count;
    const auto* run = std::get_if<Run>(&step);
    if (!run) continue;
    peak = std::max(peak, now);
    if (run->task == Task::Optimizer) {
      bytes.update = std::max(bytes.update, now - persistent);
    } else {
      bytes.live = peak;
      bytes.update = 0;
    }
  }
}

StepBytes predicted_bytes(const MeasuredStep& step, const std::shared_ptr<const Trace>& trace) {
  const Device device = find_device(step.device);
  const Evaluation evaluation = evaluate(trace, parse_strategy(step.strategy), device,
                                         MemoryBudget{Bytes{std::int64_t{1} << 59}});
  StepBytes bytes{.saved = evaluation.report.saved.unique.count,
                  .allocated = evaluation.report.allocated_peak.count,
                  .reserved = evaluation.report.reserved_peak.count};
  add_live_peaks(evaluation.schedule, bytes);
  for (const Buffer& buffer : evaluation.schedule.buffers)
    if (buffer.category == Category::OptimizerState) bytes.state += buffer.size.count;
  for (const Tensor& tensor : trace->tensors) {
    if (tensor.category != Category::Parameter || trace->tensors[index(tensor.storage)] != tensor)
      continue;
    bytes.parameters += numel(tensor.shape);
    if (tensor.trainable) bytes.trainable += numel(tensor.shape);
  }
  return bytes;
}

// A model's own checkpointing, true, or under which policy, "op".
std::string strategy_of(JsonView view) {
  const auto checkpoint = view.find("checkpoint");
  if (!checkpoint) return "vanilla";
  if (checkpoint->kind() == JsonKind::Boolean) return "checkpoint";
  return fmt::format("checkpoint:{}", checkpoint->text());
}

}  // namespace

// peft's names of modules and numbers, as --tuning has them.
Tuning tuning_of(const JsonView& step) {
  if (const auto tokens = step.find("virtual_tokens"))
    return parse_tuning(fmt::format("prompt:tokens={}", tokens->integer(1, most)));
  if (const auto prefix = step.find("prefix")) {
    std::string text =
        fmt::format("prefix:tokens={}", prefix->at("num_virtual_tokens").integer(1, most));
    if (prefix->boolean_or("prefix_projection", false))
      text += fmt::format(",projection={}", prefix->at("encoder_hidden_size").integer(1, most));
    return parse_tuning(text);
  }
  const auto lora = step.find("lora");
  if (!lora) return {};
  std::string text = fmt::format("lora:r={}", lora->at("r").integer());
  if (const double dropout = lora->number_or("lora_dropout", 0, 0, 1); dropout > 0)
    text += fmt::format(",dropout={}", dropout);
  if (const auto peft = step.find("peft");
      peft && !peft->boolean_or("autocast_adapter_dtype", true))
    text += ",dtype=base";
  if (lora->boolean_or("use_dora", false)) text += ",dora";
  if (lora->boolean_or("use_rslora", false)) text += ",rslora";
  const auto add_modules = [&](std::string_view key, std::string_view option) {
    const auto modules = lora->find(key);
    if (!modules) return;
    std::string_view before = option;
    for (const JsonView module : modules->items()) {
      text += fmt::format("{}{}", before, module.text());
      before = ",";
    }
  };
  add_modules("target_modules", ",targets=");
  add_modules("modules_to_save", ",save=");
  return parse_tuning(text);
}

double percent_off(std::int64_t predicted, std::int64_t measured) {
  return (static_cast<double>(predicted) / static_cast<double>(measured) - 1) * 100;
}

std::vector<MeasuredStep> measured_steps(const std::string& fixture) {
  const JsonDocument document = read_json(fixture, FileKind::TrainingData);
  const JsonView versions = document.root().at("versions");
  const std::string transformers(versions.at("transformers").text());
  const bool is_newest = transformers.starts_with("5.");  // a row for each version of PyTorch
  const bool keeps_workspaces = versions.at("torch").text().starts_with("2.11");
  const std::string of_transformers =
      "transformers-" + (is_newest ? (keeps_workspaces ? "5.17" : "5")
                                   : transformers.substr(0, transformers.rfind('.')));
  std::vector<MeasuredStep> steps;
  for (const JsonView view : document.root().at("steps").items()) {
    MeasuredStep step{.name = std::string(view.at("name").text()),
                      .options = options_of(view),
                      .device = device_of(view),
                      .strategy = strategy_of(view),
                      .measured = measured_bytes(view),
                      .predicted = {},
                      .replayed = {}};
    step.options.framework = view.find("network") ? "torchtitan" : of_transformers;
    const ModelConfig config = read_model_config(view.at("config").text(), step.name).config;
    step.predicted = predicted_bytes(step, std::make_shared<const Trace>(build_trace(
                                               {step.name, "", "", "", config},
                                               as_run_on(find_device(step.device), step.options))));
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<MeasuredStep> compiled_steps(const std::string& fixture) {
  const JsonDocument document = read_json(fixture, FileKind::TrainingData);
  const std::string version(document.root().at("versions").at("torch").text());
  const auto compiled = document.root().find("compiled");
  const std::string row =
      compiled && compiled->text() == "blocks" ? "torch-compile-blocks-" : "torch-compile-";
  const std::string framework = row + version.substr(0, version.rfind('.'));
  std::vector<MeasuredStep> steps;
  for (const JsonView view : document.root().at("steps").items()) {
    MeasuredStep step{.name = std::string(view.at("name").text()),
                      .options = options_of(view),
                      .device = device_of(view),
                      .strategy = strategy_of(view),
                      .measured = measured_bytes(view),
                      .predicted = {},
                      .replayed = {}};
    step.options.framework = view.find("network") ? "torchtitan-compiled" : framework;
    const ModelConfig config = read_model_config(view.at("config").text(), step.name).config;
    const auto trace = std::make_shared<const Trace>(build_rank_trace(
        {step.name, "", "", "", config}, as_run_on(find_device(step.device), step.options)));
    step.predicted = predicted_bytes(step, trace);
    step.predicted.saved = kept_by_nodes(plan_step(trace, parse_strategy(step.strategy)));
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<MeasuredStep> captured_steps(const std::string& folder) {
  const JsonDocument document = read_json(folder + "/measured.json", FileKind::TrainingData);
  std::vector<MeasuredStep> steps;
  for (const JsonView view : document.root().at("steps").items()) {
    MeasuredStep step{.name = std::string(view.at("name").text()),
                      .options = {},
                      .device = device_of(view),
                      .strategy = "vanilla",
                      .measured = measured_bytes(view),
                      .predicted = {},
                      .replayed = {}};
    Trace trace = load_trace(folder + "/" + step.name + ".trace.json.zst");
    step.options = trace.step;
    if (trace.calls) step.replayed = predicted_bytes(step, std::make_shared<const Trace>(trace));
    trace.calls.reset();
    step.predicted = predicted_bytes(step, std::make_shared<const Trace>(std::move(trace)));
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace tidemark
