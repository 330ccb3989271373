// Reads formats, counts, steps and devices off the options and refuses contradictions.
#include "cli/commands/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "analysis/sweep.h"
#include "base/quoted.h"
#include "cli/commands/option_table.h"
#include "cli/commands/recorded.h"
#include "importers/memory_snapshot.h"
#include "simulator/allocator/recorded_step.h"
#include "simulator/cost/usual_device.h"
#include "simulator/kernel_choice.h"
#include "simulator/parallel/cluster.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/plan_json.h"
#include "traces/presets.h"
#include "traces/step_fields.h"
#include "traces/trace_builder.h"
#include "traces/trace_json.h"

namespace tidemark::cli {
namespace {

// What cannot be read on the command line is a mistake in usage, whoever reads it.
template <typename Parse>
auto from_command_line(Parse parse) {
  try {
    return parse();
  } catch (const UsageError&) {
    throw;
  } catch (const InputError& error) {
    throw UsageError(error.what());
  }
}

bool is_trace_file(std::string_view path) {
  return path.ends_with(".trace.json") || path.ends_with(".trace.json.zst");
}

// What a trace file says itself. Of replicas and micro-batches of its step it knows nothing.
void refuse_step_options(const Options& options) {
  const auto fits_recorded = [](const OptionRow& row) {
    const auto* member = std::get_if<StepMember>(&row.member);
    return member ? member->field->fits_recorded : long_name(row) == "--gpus";
  };
  for (const OptionRow& row : option_table())
    if (row.group == "step" && is_given(options, row) && !fits_recorded(row))
      throw UsageError(fmt::format(
          "{} cannot change {}: a trace file describes one step as it is (leave the option out, or "
          "name a model)",
          long_name(row), tidemark::quoted(options.subject)));
}

const std::string& require_subject(const Options& options) {
  if (options.subject.empty())
    throw UsageError(
        "no model (a preset such as vit-b-16, a config.json or a .trace.json; tidemark models "
        "lists the presets)");
  return options.subject;
}

// Does the piece continue the options of the strategy before it?
bool continues(std::string_view previous, std::string_view piece) {
  const std::string_view component = previous.substr(previous.rfind('+') + 1);
  const std::size_t colon = component.find(':');
  if (colon == std::string_view::npos) return false;
  const auto row = std::ranges::find(strategies(), component.substr(0, colon), &StrategyRow::name);
  if (row == strategies().end()) return false;
  const std::string_view option = piece.substr(0, piece.find_first_of("=+"));
  return std::ranges::find(row->options, option, &StrategyOption::name) != row->options.end();
}

// A device beside a cluster stands for the cluster's own: a file of what was measured of it.
Device device_in_cluster(const Options& options) {
  const Cluster cluster = find_cluster(*options.cluster);
  const Device own = device_of(cluster);
  if (!options.device) return own;
  Device device = find_device(*options.device);
  if (device.compute_capability != own.compute_capability)
    throw UsageError(fmt::format(
        "--device {}: compute capability {}, but the GPUs of --cluster {} have {} (leave --device "
        "out, or name a file of such a GPU)",
        *options.device, device.compute_capability, cluster.name, own.compute_capability));
  device.interconnect = own.interconnect;
  return device;
}

void set_device(const Options& options, Scenario& scenario) {
  scenario.device = options.cluster
                        ? device_in_cluster(options)
                        : find_device(options.device.value_or(std::string(usual_device)));
  if (options.budget) scenario.budget = parse_size(*options.budget, "--budget");
  if (options.alloc_conf)
    scenario.allocator =
        from_command_line([&] { return allocator::parse_allocator_settings(*options.alloc_conf); });
}

// A plain number stays as typed, so that its mistakes are told as those of one number.
std::vector<std::string> values_in(const std::string& text, std::string_view name) {
  if (text.find_first_of(",:") == std::string::npos) return {text};
  std::vector<std::string> values;
  for (const std::int64_t value : parse_range(text, name, std::int64_t{1} << 40))
    values.push_back(fmt::format("{}", value));
  return values;
}

// The path of a file may hold commas.
std::vector<std::string> names_in(const std::string& text) {
  if (std::filesystem::exists(text)) return {text};
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    begin = end + 1;
  }
  return names;
}

// Two files of one name in two folders are told apart by their paths.
std::vector<StrategySpec> load_plans(const std::string& list) {
  std::vector<StrategySpec> plans;
  std::vector<std::string> texts;
  for (const std::string& path : names_in(list)) {
    plans.push_back(load_plan(path));
    texts.push_back(plans.back().text);
  }
  for (StrategySpec& plan : plans)
    if (std::ranges::count(texts, plan.text) > 1) plan.text = "plan:" + plan.plan->file();
  return plans;
}

// An image has no sequence length, a text no pixels.
void refuse_other_input(const Options& options, const Model& model) {
  const bool sees = sees_images(model.config);
  if (options.step.contains(sees ? "--sequence" : "--image"))
    throw UsageError(fmt::format("{} does not apply to {}, which {} (use {})",
                                 sees ? "--sequence" : "--image", tidemark::quoted(model.name),
                                 sees ? "sees images" : "reads text",
                                 sees ? "--image" : "--sequence"));
  const auto* const bart = std::get_if<BartConfig>(&model.config);
  if (options.step.contains("--sequence") && options.step.contains("--target-sequence") && bart &&
      bart->hears())
    throw UsageError(
        fmt::format("--sequence and --target-sequence both say how many tokens {} writes: what it "
                    "hears is as long as its config says (leave --sequence out)",
                    tidemark::quoted(model.name)));
  if (options.step.contains("--target-sequence") && !writes_another(model.config))
    throw UsageError(
        fmt::format("--target-sequence does not apply to {}, which is no "
                    "encoder-decoder (use --sequence)",
                    tidemark::quoted(model.name)));
}

void set_step(const Options& options, Scenario& scenario) {
  const std::string& subject = require_subject(options);
  refuse_profile(subject);
  if (importers::is_memory_snapshot(subject))
    throw InputError(
        fmt::format("{}: is a memory snapshot, of blocks and stacks; a step to plan is needed here "
                    "(tidemark explain, view and diff take snapshots)",
                    printable(subject, 200)));
  if (!is_trace_file(subject)) {
    const StepOptions step = step_of(options);
    scenario.model = with_head(find_model(subject), step);
    scenario.step = completed(scenario.model, step);
    return refuse_other_input(options, scenario.model);
  }
  refuse_step_options(options);
  if (options.max_batch)
    throw UsageError(fmt::format("--max-batch cannot change the batch of {}: name a model instead",
                                 tidemark::quoted(subject)));
  Trace recorded = load_trace(subject);
  const StepOptions step = step_of(options);
  if (options.step.contains("--accumulate")) recorded.step.accumulate = step.accumulate;  // also 1
  auto trace = std::make_shared<const Trace>(
      from_command_line([&] { return as_stated(std::move(recorded), step); }));
  scenario.model = {subject, trace->family, trace->model, subject};
  scenario.step = trace->step;
  scenario.trace = std::move(trace);
}

}  // namespace

std::int64_t parse_count(std::string_view text, std::string_view what, std::int64_t min,
                         std::int64_t max) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max)
    throw UsageError(fmt::format("{}: {} is not a whole number from {} to {}", what,
                                 tidemark::quoted(text), min, max));
  return value;
}

Bytes parse_size(std::string_view text, std::string_view option) {
  return from_command_line([&] { return parse_bytes(text, option); });
}

StepOptions step_of(const Options& options) {
  StepOptions step;
  for (const StepField& field : step_fields()) {
    std::string_view given;
    for (const StepSwitch& option : field.switches) {
      const auto found = options.step.find(long_name(option.names));
      if (found == options.step.end()) continue;
      if (!given.empty())
        throw UsageError(
            fmt::format("{} and {} contradict each other (give one of them)", given, found->first));
      given = found->first;
      field.read_text(field, step, found->second);
    }
  }
  if (options.gpus)
    step.mesh = fitted(step.mesh, parse_count(*options.gpus, "--gpus", 1, Mesh::most_gpus),
                       options.step.contains("--mesh"));
  return step;
}

std::map<std::string_view, std::string> typed_step(const StepOptions& step) {
  std::map<std::string_view, std::string> typed;
  for (const StepField& field : step_fields()) {
    if (!is_stated(field, step) && field.key != "batch") continue;
    const std::string text = to_text(*field.value(step));
    for (const StepSwitch& option : field.switches)
      if (!option.value.empty() || option.text == text) typed[long_name(option.names)] = text;
  }
  return typed;
}

std::string notes_on(const Model& model, const StepOptions& step) {
  std::vector<std::string> notes = model.notes;
  if (!model.precision_note.empty() && !step.precision) notes.push_back(model.precision_note);
  std::string text;
  for (const std::string& note : notes)
    text += fmt::format("note: {}: {}\n", printable(model.name, 200), note);
  return text;
}

std::string notes_on(const StrategySpec& strategy, std::string_view model) {
  const std::string other = other_model_of(strategy, model);
  if (other.empty()) return "";
  return fmt::format("note: {}: made for {}; its names mean those of {} here\n",
                     printable(strategy.plan->file(), 200), printable(other, 200),
                     printable(model, 200));
}

namespace {

// What stands among predictions and is none.
std::string note_on_recorded_calls(const Scenario& scenario) {
  if (!scenario.trace || !allocator::was_recorded(*scenario.trace, scenario.device)) return "";
  return "note: allocated and reserved of vanilla repeat what the capture has recorded of "
         "PyTorch's "
         "allocator; all else is predicted\n";
}

}  // namespace

std::string notes_on(const Scenario& scenario) {
  std::string text = notes_on(scenario.model, scenario.step) + note_on_recorded_calls(scenario);
  const std::string& model = scenario.trace ? scenario.trace->model : scenario.model.name;
  for (const StrategySpec& strategy : scenario.strategies) text += notes_on(strategy, model);
  return text;
}

Trace trace_of(const Options& options, std::string& notes) {
  Scenario scenario;
  set_step(options, scenario);
  notes += notes_on(scenario.model, scenario.step);
  if (scenario.trace) return *scenario.trace;
  if (options.device || options.cluster) {
    set_device(options, scenario);
    scenario.step = as_run_on(scenario.device, std::move(scenario.step));
  }
  if (scenario.step.mesh[Axis::Pipeline] > 1 && !scenario.step.rank)
    notes += "the step of pp0: a trace holds that of one stage (--rank names another)\n";
  Trace trace = build_rank_trace(scenario.model, scenario.step);
  require_used_options(trace);
  return trace;
}

std::vector<StrategySpec> parse_strategies(std::string_view list) {
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view piece = list.substr(begin, end - begin);
    if (!texts.empty() && continues(texts.back(), piece)) {
      texts.back().append(",").append(piece);
    } else {
      texts.emplace_back(piece);
    }
    begin = end + 1;
  }
  std::vector<StrategySpec> specs;
  for (const std::string& text : texts) specs.push_back(parse_strategy(text));
  return specs;
}

std::vector<StrategySpec> named_strategies(const Options& options) {
  std::vector<StrategySpec> named;
  if (options.strategies) named = parse_strategies(*options.strategies);
  if (!options.plan) return named;
  for (StrategySpec& plan : load_plans(*options.plan)) named.push_back(std::move(plan));
  return named;
}

std::string as_typed(const StrategySpec& strategy) {
  if (!strategy.plan) return "--strategy " + strategy.text;
  return "--plan " + shell_quoted(strategy.plan->file());
}

StrategySpec one_strategy(const Options& options) {
  if (options.strategies && options.plan)
    throw UsageError("--plan takes the place of --strategy (give one of them)");
  std::vector<StrategySpec> named = named_strategies(options);
  if (named.empty()) return parse_strategy(reference_strategy().name);
  if (named.size() > 1)
    throw UsageError(fmt::format(
        "{}: one at a time here, and {} names {} (compare shows several beside each other)",
        options.plan ? "--plan" : "--strategy",
        tidemark::quoted(options.plan ? *options.plan : *options.strategies), named.size()));
  return std::move(named.front());
}

void require_one_rank(const StepOptions& step) {
  if (!step.mesh.is_one())
    throw UsageError(fmt::format(
        "a replay runs the step of one GPU, and this is one of {} (leave --mesh and --gpus out)",
        step.mesh.gpus()));
}

Scenario scenario_of(const Options& options) {
  Scenario scenario;
  scenario.strategies = named_strategies(options);
  if (!options.strategies) {
    const std::vector<StrategySpec> usual = default_strategies();
    scenario.strategies.insert(scenario.strategies.begin(), usual.begin(), usual.end());
  }
  set_device(options, scenario);
  set_step(options, scenario);
  scenario.finds_largest_batch = options.max_batch;
  if (memory_budget_of(scenario).capacity < Bytes{1})
    throw UsageError(
        scenario.budget
            ? std::string("--budget: nothing fits in 0 bytes (give 1 or more)")
            : fmt::format("{}: its context leaves no memory for tensors (give a --budget)",
                          scenario.device.title));
  return scenario;
}

std::vector<Options> points_of(const Options& options) {
  std::vector<Options> points = {options};
  // Each option with several values multiplies the points; the last one varies fastest.
  const auto vary = [&](const std::vector<std::string>& values, auto member) {
    if (values.size() * points.size() > most_points)
      throw UsageError(
          fmt::format("a sweep of more than {} points (take fewer values)", most_points));
    std::vector<Options> varied;
    for (const Options& point : points)
      for (const std::string& value : values) member(varied.emplace_back(point)) = value;
    points = std::move(varied);
  };
  if (options.device)
    vary(
        names_in(*options.device), [](Options & point) -> auto& { return point.device; });
  const auto fields = step_fields();
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    if (!field->is_swept) continue;
    const std::string_view name = long_name(field->switches.front().names);
    if (const auto given = options.step.find(name); given != options.step.end())
      vary(
          values_in(given->second, name), [&](Options & point) -> auto& {
            return point.step[name];
          });
  }
  return points;
}

}  // namespace tidemark::cli
