// Expands an entry to every combination of its values; a broken one keeps its defect instead.
#include "analysis/check/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "analysis/check/experiment_fields.h"
#include "base/error.h"
#include "base/quoted.h"

namespace tidemark::regression {
namespace {

/// As many as a computer of today runs in a few minutes; a file with their numbers has 20 MB.
constexpr std::size_t most_experiments = 10'000;

/// A field that an entry or the defaults state, with its values.
struct GridAxis {
  const ExperimentField* field;
  std::vector<JsonView> values;
  bool is_own;  ///< stated by the entry itself
};

std::vector<std::string_view> known_keys(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> keys(more);
  for (const ExperimentField& field : experiment_fields()) {
    keys.push_back(field.key);
    if (!field.plural.empty()) keys.push_back(field.plural);
  }
  return keys;
}

std::optional<JsonView> stated(const ExperimentField& field, const JsonView& object) {
  const auto one = object.find(field.key);
  const auto many = field.plural.empty() ? std::nullopt : object.find(field.plural);
  if (one && many)
    object.fail(fmt::format("found both '{}' and '{}'; keep one of them", field.key, field.plural));
  return one ? one : many;
}

/// Equal where the values are; what is no value of a field is only equal to itself.
std::string spelled(const JsonView& value) {
  switch (value.kind()) {
    case JsonKind::Boolean:
      return value.boolean() ? "true" : "false";
    case JsonKind::Integer:
      return fmt::format("{}", value.integer(std::numeric_limits<std::int64_t>::min(),
                                             std::numeric_limits<std::int64_t>::max()));
    case JsonKind::Number:
      return fmt::format("{}", value.number(std::numeric_limits<double>::lowest(),
                                            std::numeric_limits<double>::max()));
    case JsonKind::Text:
      return tidemark::quoted(value.text());
    case JsonKind::Null:
    case JsonKind::List:
    case JsonKind::Object:
      return value.pointer();
  }
  CHECK(false);
  return {};
}

std::vector<JsonView> values_of(const JsonView& value) {
  if (value.kind() != JsonKind::List) return {value};
  std::vector<JsonView> values;
  std::set<std::string> known;
  for (const JsonView item : value.items()) {
    const std::string text = spelled(item);
    if (!known.insert(text).second)
      item.fail(fmt::format("found {} a second time in this list; keep one of them", text));
    values.push_back(item);
  }
  if (values.empty()) value.fail("found an empty list; need at least one value");
  return values;
}

std::vector<GridAxis> axes_of(const JsonView& entry, const std::optional<JsonView>& defaults) {
  std::vector<GridAxis> axes;
  for (const ExperimentField& field : experiment_fields()) {
    const auto own = stated(field, entry);
    if (own) {
      axes.push_back({&field, values_of(*own), true});
    } else if (const auto shared = defaults ? stated(field, *defaults) : std::nullopt) {
      axes.push_back({&field, values_of(*shared), false});
    }
  }
  return axes;
}

// Where one of the two is the entry's own, it takes the place of the other of the defaults.
void keep_strategy_or_plan(std::vector<GridAxis>& axes) {
  const auto axis_of = [&](std::string_view key) {
    return std::ranges::find(axes, key, [](const GridAxis& axis) { return axis.field->key; });
  };
  const auto strategy = axis_of("strategy"), plan = axis_of("plan");
  if (strategy == axes.end() || plan == axes.end()) return;
  if (strategy->is_own == plan->is_own)
    plan->values.front().fail("a plan takes the place of a strategy; keep one of them");
  axes.erase(strategy->is_own ? plan : strategy);
}

/// Counts through all combinations like an odometer, the last axis fastest.
class Combination {
 public:
  explicit Combination(const std::vector<GridAxis>& axes) : axes_(axes), at_(axes.size(), 0) {}

  const JsonView& value(std::size_t axis) const { return axes_[axis].values[at_[axis]]; }

  bool next() {
    for (std::size_t axis = at_.size(); axis-- > 0;) {
      if (++at_[axis] < axes_[axis].values.size()) return true;
      at_[axis] = 0;
    }
    return false;
  }

 private:
  const std::vector<GridAxis>& axes_;
  std::vector<std::size_t> at_;
};

// With a name of its own, an experiment shows only what it sweeps over; else all that it states.
bool shows_in_id(const GridAxis& axis, bool has_name) {
  return axis.values.size() > 1 || (axis.is_own && !has_name);
}

void finish(Experiment& experiment, const JsonView& entry) {
  if (experiment.model.empty() && experiment.measured.empty())
    entry.fail("found no 'model'; name a preset, a config.json or a trace file");
  // A measured result says itself which strategy it is of.
  if (experiment.strategy.text.empty() && experiment.measured.empty())
    experiment.strategy = parse_strategy(reference_strategy().name);
  if (const auto reserve = entry.find("reserve"); reserve && !experiment.must_fit)
    reserve->fail("is a part of a budget; state the 'budget', too");
}

Experiment combine(const JsonView& entry, const std::optional<JsonView>& defaults,
                   const std::vector<GridAxis>& axes, const Combination& combination) {
  Experiment experiment;
  experiment.checked.fill(true);
  if (defaults) set_checks(experiment, *defaults);
  set_checks(experiment, entry);
  experiment.id = entry.text_or("id", "");
  experiment.pointer = entry.pointer();
  const bool has_name = !experiment.id.empty();
  bool is_trace = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const GridAxis& axis = axes[i];
    const JsonView value = combination.value(i);
    if (is_trace && axis.field->step && !axis.field->step->fits_recorded) {
      if (axis.is_own)
        value.fail(fmt::format("a trace file describes one step as it is; leave out '{}'",
                               axis.field->key));
      continue;
    }
    set(*axis.field, experiment, value);
    is_trace = is_trace || is_trace_path(experiment.model);
    if (!shows_in_id(axis, has_name)) continue;
    experiment.id += (experiment.id.empty() ? "" : "/") + label_of(*axis.field, value);
  }
  finish(experiment, entry);
  return experiment;
}

/// Before any is made: three short lists are a million experiments.
void require_room(const JsonView& entry, std::size_t before, const std::vector<GridAxis>& axes) {
  std::size_t all = before + 1;
  std::string product;
  for (const GridAxis& axis : axes) {
    const std::size_t count = axis.values.size();
    if (count == 1) continue;
    product += fmt::format("{}{} {}", product.empty() ? " (" : " × ", count, axis.field->key);
    all = std::min(before + (all - before) * count, 2 * most_experiments);
  }
  if (!product.empty()) product += ")";
  if (all > most_experiments)
    entry.fail(fmt::format("makes more than {} experiments{}; list fewer, or split the file",
                           most_experiments, product));
}

void expand(const JsonView& entry, const std::optional<JsonView>& defaults,
            std::vector<Experiment>& experiments) {
  entry.allow_only(known_keys({"id", "metrics", "tolerance", "margin", "reserve", "measured"}));
  if (const auto id = entry.find("id"); id && id->text().empty())
    id->fail("found an empty id; leave it out, or give a name");
  std::vector<GridAxis> axes = axes_of(entry, defaults);
  keep_strategy_or_plan(axes);
  const auto is_swept = [](const GridAxis& axis) { return axis.values.size() > 1; };
  if (entry.find("measured") && std::ranges::any_of(axes, is_swept))
    entry.fail("a measured result is of one experiment; leave out the lists");
  require_room(entry, experiments.size(), axes);
  Combination combination(axes);
  do {
    experiments.push_back(combine(entry, defaults, axes, combination));
    if (experiments.back().id.empty())
      entry.fail("found no 'id'; a result without a model needs one");
  } while (combination.next());
}

// Its name is its own, or else its place.
Experiment defective(const JsonView& entry, std::string_view problem) {
  Experiment experiment;
  experiment.pointer = experiment.id = entry.pointer();
  experiment.defect = problem;
  if (entry.kind() != JsonKind::Object) return experiment;
  const auto id = entry.find("id");
  if (id && id->kind() == JsonKind::Text && !id->text().empty()) experiment.id = id->text();
  return experiment;
}

void require_own_ids(const JsonView& list, const std::vector<Experiment>& experiments) {
  std::map<std::string_view, const Experiment*> known;
  for (const Experiment& experiment : experiments) {
    const auto [first, is_new] = known.emplace(experiment.id, &experiment);
    if (!is_new)
      list.fail(fmt::format("the id {} belongs to both {} and {}; give one an \"id\"",
                            tidemark::quoted(experiment.id), first->second->pointer,
                            experiment.pointer));
  }
}

}  // namespace

bool is_trace_path(std::string_view path) {
  return path.ends_with(".trace.json") || path.ends_with(".trace.json.zst");
}

std::string resolved(const std::string& check_file, const std::string& name_or_path) {
  const bool is_path = name_or_path.find('/') != std::string::npos ||
                       name_or_path.ends_with(".json") || name_or_path.ends_with(".json.zst");
  if (!is_path) return name_or_path;
  const std::filesystem::path folder = std::filesystem::path(check_file).parent_path();
  return (folder / name_or_path).lexically_normal().string();
}

std::vector<Experiment> read_experiments(const JsonView& experiments,
                                         const std::optional<JsonView>& defaults) {
  if (defaults) defaults->allow_only(known_keys({"metrics", "tolerance", "margin", "reserve"}));
  std::vector<Experiment> all;
  for (const JsonView entry : experiments.items()) {
    if (all.size() == most_experiments)
      entry.fail(fmt::format("is one too many: a file has at most {} experiments; split it",
                             most_experiments));
    const std::size_t before = all.size();
    try {
      expand(entry, defaults, all);
    } catch (const InputError& error) {
      all.resize(before);
      all.push_back(defective(entry, error.what()));
    }
  }
  if (all.empty()) experiments.fail("found no experiments; list at least one");
  require_own_ids(experiments, all);
  return all;
}

}  // namespace tidemark::regression
