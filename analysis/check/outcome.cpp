// Makes shared traces and devices once, then simulates experiments or reads measured results.
#include "analysis/check/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "analysis/check/block_names.h"
#include "analysis/check/fingerprint.h"
#include "base/error.h"
#include "base/files.h"
#include "base/parallel.h"
#include "base/quoted.h"
#include "simulator/kernel_choice.h"
#include "simulator/parallel/rank_trace.h"
#include "simulator/plan_json.h"
#include "traces/presets.h"
#include "traces/step_fields.h"
#include "traces/trace_builder.h"
#include "traces/trace_json.h"

namespace tidemark::regression {

using tidemark::to_text;  // of units, beside the overloads of this folder
namespace {

/// A model with a step as a device runs it: many strategies share one.
struct SharedTrace {
  const Experiment* first = nullptr;  ///< the first of the experiments that need it
  std::shared_ptr<const Trace> trace;
  std::string fingerprint;
  ModelSize size;
  std::string defect;  ///< why there is no trace
};

struct SharedDevice {
  Device device;
  std::string fingerprint;
  std::string defect;  ///< why there is no device
};

/// What experiments have in common is made once.
struct Shared {
  std::vector<SharedTrace> traces;
  std::vector<std::size_t> trace_of;  ///< by experiment
  std::map<std::string, SharedDevice> devices;
};

/// What is wrong with what `work` reads; "" where nothing is.
template <typename Work>
std::string defect_of(Work work) {
  try {
    work();
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

void require_none(const std::string& defect) {
  if (!defect.empty()) throw InputError(defect);
}

std::shared_ptr<const Trace> make_trace(const std::string& file, const Experiment& experiment,
                                        const Device& device) {
  const std::string path = resolved(file, experiment.model);
  if (is_trace_path(path))
    return std::make_shared<const Trace>(as_stated(load_trace(path), experiment.step));
  if (experiment.step.mesh[Axis::Pipeline] > 1 && !experiment.step.rank)
    throw InputError(
        "an experiment of pipeline stages is that of one (name it, as in \"rank\": \"pp0\")");
  auto trace = std::make_shared<Trace>(
      build_rank_trace(find_model(path), as_run_on(device, experiment.step)));
  require_used_options(*trace);
  return trace;
}

std::vector<std::string> names_of(const std::vector<Block>& blocks) {
  std::vector<std::string> names;
  for (const Block& block : blocks) names.push_back(block.name);
  return names;
}

ModelSize size_of(const Trace& trace) {
  ModelSize size = {0, static_cast<std::int64_t>(trace.blocks.size()),
                    static_cast<std::int64_t>(trace.ops.size()),
                    block_ranges(names_of(trace.blocks))};
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const Tensor& tensor = trace.tensors[t];
    const bool is_view = index(tensor.storage) != t;
    if (tensor.category == Category::Parameter && !is_view) size.parameters += numel(tensor.shape);
  }
  return size;
}

bool needs_same_trace(const Experiment& a, const Experiment& b) {
  return a.model == b.model && a.step == b.step && (is_trace_path(a.model) || a.device == b.device);
}

void share_traces(const std::string& file, const std::vector<Experiment>& experiments,
                  Shared& shared) {
  std::map<std::string_view, std::vector<std::size_t>> by_model;
  for (const Experiment& experiment : experiments) {
    shared.trace_of.push_back(0);
    if (!experiment.measured.empty() || !experiment.defect.empty()) continue;
    std::vector<std::size_t>& known = by_model[experiment.model];
    const auto same = std::ranges::find_if(known, [&](std::size_t i) {
      return needs_same_trace(*shared.traces[i].first, experiment);
    });
    if (same == known.end()) {
      known.push_back(shared.traces.size());
      shared.trace_of.back() = shared.traces.size();
      shared.traces.push_back({&experiment, nullptr, "", {}, ""});
    } else {
      shared.trace_of.back() = *same;
    }
  }
  parallel_for(shared.traces.size(), [&](std::size_t i) {
    SharedTrace& entry = shared.traces[i];
    entry.defect = defect_of([&] {
      entry.trace = make_trace(file, *entry.first, shared.devices.at(entry.first->device).device);
      entry.fingerprint = fingerprint(*entry.trace);
      entry.size = size_of(*entry.trace);
    });
  });
}

void share_devices(const std::string& file, const std::vector<Experiment>& experiments,
                   Shared& shared) {
  for (const Experiment& experiment : experiments) {
    if (!experiment.measured.empty() || !experiment.defect.empty()) continue;
    const auto [entry, is_new] = shared.devices.emplace(experiment.device, SharedDevice{});
    SharedDevice& shared_device = entry->second;
    if (!is_new) continue;
    shared_device.defect = defect_of([&] {
      shared_device.device = find_device(resolved(file, experiment.device));
      shared_device.fingerprint = fingerprint(shared_device.device);
    });
  }
}

MemoryBudget memory_budget_of(const Experiment& experiment, const Device& device) {
  const Bytes whole =
      experiment.budget.value_or(device.capacity - device.context.value_or(Bytes{}));
  const Bytes available = whole - Bytes{allowed(experiment.reserve, whole.count)};
  if (available.count < 1)
    throw InputError(fmt::format("a budget of {} less its reserve leaves no memory for tensors",
                                 to_text(whole)));
  return {available, experiment.allocator};
}

// Only what was said, beside the four that each experiment has.
Settings settings_of(const Experiment& experiment, const Trace& trace,
                     const std::string& device_fingerprint, Bytes available) {
  const StepOptions& step = trace.step;
  Settings settings = {{"model", experiment.model},
                       {"strategy", experiment.strategy.text},
                       {"framework", step.framework},
                       {"device", experiment.device + " " + device_fingerprint},
                       {"batch", fmt::format("{}", step.batch)}};
  const auto add = [&](std::string_view key, const auto& value) {
    settings.emplace_back(key, fmt::format("{}", value));
  };
  for (const StepField& field : step_fields())
    if (is_stated(field, step) && field.key != "batch" && field.key != "framework")
      add(field.key, to_text(*field.value(step)));
  if (!experiment.allocator_text.empty()) add("alloc_conf", experiment.allocator_text);
  if (experiment.must_fit) add("room", available.count);
  return settings;
}

ExperimentOutcome simulated(const std::string& file, const Experiment& experiment,
                            const SharedTrace& shared, const SharedDevice& shared_device) {
  require_none(shared_device.defect);
  require_none(shared.defect);
  const auto& [device, device_fingerprint, no_defect] = shared_device;
  const MemoryBudget budget = memory_budget_of(experiment, device);
  ExperimentOutcome outcome;
  outcome.settings = settings_of(experiment, *shared.trace, device_fingerprint, budget.capacity);
  outcome.trace = shared.fingerprint;
  outcome.model = shared.size;
  outcome.blocks = names_of(shared.trace->blocks);
  outcome.available = budget.capacity;
  StrategySpec strategy = experiment.strategy;
  if (!experiment.plan.empty()) {
    const std::string path = resolved(file, experiment.plan);
    strategy = load_plan(path);
    outcome.plan = fingerprint(read_file(path, FileKind::Plan));
  }
  const Evaluation result = evaluate(shared.trace, strategy, device, budget);
  const Report& report = result.report;
  outcome.refusal = report.reason;
  if (!report.applies) return outcome;
  outcome.values = {report.live_peak.count, report.planned.count, report.allocated_peak.count,
                    report.reserved_peak.count, report.step.count()};
  outcome.fits = report.fits || !experiment.must_fit;
  outcome.short_by = report.short_by;
  outcome.peak_at = report.peak_at;
  outcome.peak = peak_groups(result);
  if (experiment.checked[index(Metric::Step)])
    outcome.times = diff::time_groups(*result.planned.trace, result.schedule, result.timeline);
  return outcome;
}

// What the result says about its step; the experiment may state the strategy, too.
void add_measured_settings(JsonView root, const Experiment& experiment, Settings& settings) {
  const std::string& stated = experiment.strategy.text;
  const auto strategy = root.find("strategy");
  if (!strategy)
    settings.emplace_back("strategy",
                          stated.empty() ? std::string(reference_strategy().name) : stated);
  if (strategy && !stated.empty() && strategy->text() != stated)
    strategy->fail(
        fmt::format("found {}; the experiment says {}", quoted(strategy->text()), quoted(stated)));
  const bool names_model = !experiment.model.empty();
  for (const char* key :
       {"model", "batch", "strategy", "backend", "device", "predicted_for", "framework"}) {
    const auto said = root.find(key);
    if (!said || (names_model && std::string_view(key) == "model")) continue;
    if (said->kind() == JsonKind::Text) settings.emplace_back(key, said->text());
    if (said->kind() == JsonKind::Integer)
      settings.emplace_back(key, fmt::format("{}", said->integer()));
  }
}

// What a replay wrote: {"measured": {"live_peak_bytes": …, "step_ns": …, …}, …}. Only the numbers
// and what they were measured on are read; the file may say more.
ExperimentOutcome measured(const std::string& file, const Experiment& experiment) {
  const JsonDocument document = read_json(resolved(file, experiment.measured), FileKind::Result);
  const JsonView root = document.root();
  const JsonView numbers = root.at("measured");
  ExperimentOutcome outcome;
  outcome.settings = {{"source", "measured"}};
  if (!experiment.model.empty()) outcome.settings.emplace_back("model", experiment.model);
  add_measured_settings(root, experiment, outcome.settings);
  std::vector<std::string_view> missing;
  for (const MetricRow& row : metrics) {
    if (const auto value = numbers.find(row.measured)) {
      outcome.values[index(row.value)] = value->integer();
    } else {
      missing.push_back(row.measured);
    }
  }
  if (missing.size() == metrics.size())
    numbers.fail(fmt::format("found none of {}; need at least one", fmt::join(missing, ", ")));
  const auto allocated = outcome.values[index(Metric::Allocated)];
  const auto planned = outcome.values[index(Metric::Planned)];
  if (!experiment.must_fit) return outcome;
  if (!experiment.budget)
    throw InputError("a measured result needs a budget in bytes (such as \"24GiB\")");
  outcome.available =
      *experiment.budget - Bytes{allowed(experiment.reserve, experiment.budget->count)};
  // The arena is what a replay allocates; a framework's number, where there is one, is larger.
  const Bytes needed{std::max(allocated.value_or(0), planned.value_or(0))};
  outcome.fits = needed <= outcome.available;
  outcome.short_by = std::max(Bytes{0}, needed - outcome.available);
  return outcome;
}

}  // namespace

std::vector<ExperimentOutcome> run_experiments(
    const std::string& check_file, const std::vector<Experiment>& experiments,
    const std::function<void(std::size_t done)>& progress) {
  Shared shared;
  share_devices(check_file, experiments, shared);
  share_traces(check_file, experiments, shared);
  std::vector<ExperimentOutcome> outcomes(experiments.size());
  std::mutex mutex;
  std::size_t done = 0;
  parallel_for(experiments.size(), [&](std::size_t i) {
    const Experiment& experiment = experiments[i];
    const std::string defect = defect_of([&] {
      require_none(experiment.defect);
      outcomes[i] = experiment.measured.empty()
                        ? simulated(check_file, experiment, shared.traces[shared.trace_of[i]],
                                    shared.devices.at(experiment.device))
                        : measured(check_file, experiment);
    });
    if (!defect.empty()) outcomes[i].defect = defect;
    const std::lock_guard lock(mutex);
    ++done;
    if (progress) progress(done);
  });
  return outcomes;
}

}  // namespace tidemark::regression
