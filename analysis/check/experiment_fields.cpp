// How each key's value is read into an experiment; errors point to their place in the file.
#include "analysis/check/experiment_fields.h"

#include <fmt/format.h>

#include "base/error.h"
#include "simulator/plan_json.h"

namespace tidemark::regression {
namespace {

// What is wrong with a text is told with its place in the file.
template <typename Parse>
auto parsed(const JsonView& value, Parse parse) {
  const std::string_view text = value.text();
  try {
    return parse(text);
  } catch (const InputError& error) {
    value.fail(error.what());
  }
}

void set_allocator(Experiment& experiment, const JsonView& value) {
  experiment.allocator = parsed(value, allocator::parse_allocator_settings);
  experiment.allocator_text = value.text();
}

void set_budget(Experiment& experiment, const JsonView& value) {
  experiment.must_fit = true;
  experiment.budget.reset();
  if (value.text() == "device") return;
  const Bytes budget =
      parsed(value, [](std::string_view text) { return parse_bytes(text, "budget"); });
  if (budget.count == 0) value.fail("nothing fits in 0 bytes; give 1 or more");
  experiment.budget = budget;
}

// The file is read when the experiment runs; until then its title stands for it.
void set_plan(Experiment& experiment, const JsonView& value) {
  experiment.plan = value.text();
  if (experiment.plan.empty()) value.fail("found no path; need that of a plan file");
  experiment.strategy.text = plan_title(experiment.plan);
}

using E = Experiment&;
using V = const JsonView&;

const std::vector<ExperimentField>& all_fields() {
  static const std::vector<ExperimentField> fields = [] {
    std::vector<ExperimentField> all;
    all.push_back({"model", "models", "", nullptr, [](E e, V v) { e.model = v.text(); }});
    for (const StepField& field : step_fields())
      all.push_back({field.key, "", field.id_prefix, &field, nullptr});
    all.push_back({"device", "devices", "", nullptr, [](E e, V v) { e.device = v.text(); }});
    all.push_back({"alloc_conf", "", "", nullptr, set_allocator});
    all.push_back({"budget", "", "", nullptr, set_budget});
    all.push_back({"strategy", "strategies", "", nullptr,
                   [](E e, V v) { e.strategy = parsed(v, parse_strategy); }});
    all.push_back({"plan", "plans", "", nullptr, set_plan});
    return all;
  }();
  return fields;
}

Metric metric_named(const JsonView& where, std::string_view name) {
  for (const MetricRow& row : metrics)
    if (row.name == name) return row.value;
  where.fail(unknown_name("metric", name, names_of(metrics)));
}

Tolerance tolerance_of(const JsonView& value, bool is_time) {
  if (value.kind() != JsonKind::Text) return {value.integer(), 0};
  if (const auto parts = parse_percent(value.text())) return {0, *parts};
  if (value.text().find('%') != std::string_view::npos)
    value.fail(fmt::format("'{}' is not a share (from 0% to 100%, with at most four decimals)",
                           value.text()));
  if (is_time) value.fail("need nanoseconds as a whole number, or a share such as \"5%\"");
  return {parsed(value, [](std::string_view text) { return parse_bytes(text, "tolerance"); }).count,
          0};
}

void choose_metrics(Experiment& experiment, const JsonView& list) {
  experiment.checked.fill(false);
  for (const JsonView item : list.items())
    experiment.checked[index(metric_named(item, item.text()))] = true;
}

// A simulated time is exact. A measured one never comes twice, so a tolerance has to be chosen.
void decide_on_measured_time(Experiment& experiment, const JsonView& entry, bool is_chosen) {
  const std::size_t step = index(Metric::Step);
  if (experiment.tolerances[step] != Tolerance{} || !experiment.checked[step]) return;
  if (is_chosen)
    entry.fail(
        "a measured step never takes the same time twice; give \"tolerance\": {\"step\": \"5%\"}, "
        "or "
        "leave step out of the metrics");
  experiment.checked[step] = false;
}

}  // namespace

std::span<const ExperimentField> experiment_fields() { return all_fields(); }

void set(const ExperimentField& field, Experiment& experiment, const JsonView& value) {
  if (!field.step) return field.set(experiment, value);
  field.step->read_json(*field.step, experiment.step, value);
}

std::string label_of(const ExperimentField& field, const JsonView& value) {
  switch (value.kind()) {
    case JsonKind::Text: {
      std::string_view text = value.text();
      if (field.key == "plan") return plan_title(text);
      if (field.key == "model")
        for (const std::string_view ending : {".zst", "/config.json", ".trace.json", ".json"})
          if (text.ends_with(ending)) text.remove_suffix(ending.size());
      return fmt::format("{}{}", field.prefix, text);
    }
    case JsonKind::Integer:
      return fmt::format("{}{}", field.prefix, value.integer());
    case JsonKind::Boolean:
      return fmt::format("{}{}", field.prefix, value.boolean());
    case JsonKind::Number:
    case JsonKind::Null:
    case JsonKind::List:
    case JsonKind::Object:
      break;
  }
  return fmt::format("{}{}", field.prefix, value.number(-1e18, 1e18));  // or says what is wrong
}

// Files of version 0.1 say "margin".
std::optional<JsonView> stated_tolerances(const JsonView& entry) {
  const auto tolerance = entry.find("tolerance"), margin = entry.find("margin");
  if (tolerance && margin) margin->fail("is the former name of 'tolerance'; give one of the two");
  return tolerance ? tolerance : margin;
}

void set_checks(Experiment& experiment, const JsonView& entry) {
  if (const auto list = entry.find("metrics")) choose_metrics(experiment, *list);
  if (const auto tolerances = stated_tolerances(entry))
    for (const JsonView tolerance : tolerances->members()) {
      const Metric metric = metric_named(tolerance, tolerance.key());
      experiment.tolerances[index(metric)] = tolerance_of(tolerance, metric == Metric::Step);
    }
  if (const auto reserve = entry.find("reserve"))
    experiment.reserve = tolerance_of(*reserve, false);
  if (const auto path = entry.find("measured")) {
    experiment.measured = path->text();
    if (experiment.measured.empty()) path->fail("found no path; need that of a replay's result");
    decide_on_measured_time(experiment, entry, entry.find("metrics").has_value());
  }
}

}  // namespace tidemark::regression
