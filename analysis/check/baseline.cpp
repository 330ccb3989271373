// Reads a baseline back, writes it as text, and reduces an outcome to what a baseline keeps.
#include "analysis/check/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/quoted.h"

namespace tidemark::regression {
namespace {

constexpr std::string_view indent = "      ";

std::string json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// ["blocks.*.mlp.gelu", "activation", "gelu", "keep", 12, 301989888]
PeakGroup read_group(const JsonView& list) {
  std::vector<JsonView> cells;
  for (const JsonView cell : list.items()) cells.push_back(cell);
  if (cells.size() != 6) list.fail("need six values: role, contents, op, decision, tensors, bytes");
  PeakGroup group;
  group.role = cells[0].text();
  group.contents = cells[1].text();
  group.op = cells[2].text();
  group.decision = cells[3].text();
  group.tensors = cells[4].integer();
  group.bytes = Bytes{cells[5].integer()};
  return group;
}

std::string group_text(const PeakGroup& group) {
  return fmt::format("[{}, {}, {}, {}, {}, {}]", json(group.role), json(group.contents),
                     json(group.op), json(group.decision), group.tensors, group.bytes.count);
}

// ["backward", "linear", 0, 73, 43012345]
diff::TimeGroup read_time(const JsonView& list) {
  std::vector<JsonView> cells;
  for (const JsonView cell : list.items()) cells.push_back(cell);
  if (cells.size() != 5) list.fail("need five values: task, op, stream, runs, nanoseconds");
  return {std::string(cells[0].text()), std::string(cells[1].text()), cells[2].integer(),
          cells[3].integer(), Nanoseconds{cells[4].integer()}};
}

void read_times(const JsonView& entry, Expected& expected) {
  const auto times = entry.find("time");
  if (!times) return;
  for (const JsonView group : times->items()) expected.times.push_back(read_time(group));
  const JsonView others = entry.at("other_time");
  others.allow_only({"runs", "ns"});
  expected.other_times.runs = others.at("runs").integer();
  expected.other_times.time = Nanoseconds{others.at("ns").integer()};
}

ModelSize read_model(const JsonView& model) {
  model.allow_only({"parameters", "blocks", "ops", "block_names"});
  ModelSize size{model.at("parameters").integer(), model.at("blocks").integer(),
                 model.at("ops").integer()};
  if (const auto names = model.find("block_names"))
    for (const JsonView name : names->items()) size.block_names.emplace_back(name.text());
  return size;
}

void read_others(const JsonView& others, Expected& expected) {
  others.allow_only({"tensors", "bytes"});
  expected.other_tensors = others.at("tensors").integer();
  expected.other_bytes = Bytes{others.at("bytes").integer()};
}

void read_values(const JsonView& values, Expected& expected) {
  values.allow_only(names_of(metrics));
  for (const MetricRow& row : metrics)
    if (const auto value = values.find(row.name))
      expected.values[index(row.value)] = value->integer();
}

Expected read_expected(const JsonView& entry) {
  entry.allow_only({"id", "settings", "trace", "plan", "model", "does_not_apply", "values",
                    "peak_at", "peak", "others", "time", "other_time"});
  Expected expected;
  expected.id = entry.at("id").text();
  expected.pointer = entry.pointer();
  for (const JsonView setting : entry.at("settings").members())
    expected.settings.emplace_back(setting.key(), setting.text());
  expected.trace = entry.text_or("trace", "");
  expected.plan = entry.text_or("plan", "");
  if (const auto model = entry.find("model")) expected.model = read_model(*model);
  expected.refusal = entry.text_or("does_not_apply", "");
  if (const auto values = entry.find("values")) read_values(*values, expected);
  expected.peak_at = entry.text_or("peak_at", "");
  if (const auto peak = entry.find("peak"))
    for (const JsonView group : peak->items()) expected.peak.push_back(read_group(group));
  if (const auto others = entry.find("others")) read_others(*others, expected);
  read_times(entry, expected);
  return expected;
}

std::string settings_text(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", json(key), json(value));
  return text;
}

std::string model_text(const ModelSize& model) {
  std::string names;
  for (const std::string& name : model.block_names)
    names.append(names.empty() ? "" : ", ").append(json(name));
  const std::string block_names =
      names.empty() ? "" : fmt::format(", \"block_names\": [{}]", names);
  return fmt::format(",\n{} \"model\": {{\"parameters\": {}, \"blocks\": {}, \"ops\": {}{}}}",
                     indent, model.parameters, model.blocks, model.ops, block_names);
}

std::string values_text(const Values& values) {
  std::string text;
  for (const MetricRow& row : metrics)
    if (const auto& value = values[index(row.value)])
      text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", row.name, *value);
  return text;
}

std::string peak_text(const Expected& expected) {
  std::string text = fmt::format(",\n{} \"peak_at\": {}", indent, json(expected.peak_at));
  text += fmt::format(",\n{} \"peak\": [", indent);
  for (const PeakGroup& group : expected.peak)
    text += fmt::format("{}\n{}   {}", text.back() == '[' ? "" : ",", indent, group_text(group));
  text += expected.peak.empty() ? "]" : fmt::format("\n{} ]", indent);
  return text + fmt::format(",\n{} \"others\": {{\"tensors\": {}, \"bytes\": {}}}", indent,
                            expected.other_tensors, expected.other_bytes.count);
}

std::string time_text(const Expected& expected) {
  std::string text = fmt::format(",\n{} \"time\": [", indent);
  for (const diff::TimeGroup& group : expected.times)
    text +=
        fmt::format("{}\n{}   [{}, {}, {}, {}, {}]", text.back() == '[' ? "" : ",", indent,
                    json(group.task), json(group.op), group.stream, group.runs, group.time.count());
  return text + fmt::format("\n{} ],\n{} \"other_time\": {{\"runs\": {}, \"ns\": {}}}", indent,
                            indent, expected.other_times.runs, expected.other_times.time.count());
}

std::string expected_text(const Expected& expected) {
  std::string text = fmt::format("{}{{\"id\": {},\n{} \"settings\": {{{}}}", indent,
                                 json(expected.id), indent, settings_text(expected.settings));
  if (!expected.trace.empty())
    text += fmt::format(",\n{} \"trace\": {}", indent, json(expected.trace));
  if (!expected.plan.empty())
    text += fmt::format(",\n{} \"plan\": {}", indent, json(expected.plan));
  if (const auto& model = expected.model) text += model_text(*model);
  if (!expected.refusal.empty())
    return text + fmt::format(",\n{} \"does_not_apply\": {}}}", indent, json(expected.refusal));
  text += fmt::format(",\n{} \"values\": {{{}}}", indent, values_text(expected.values));
  if (!expected.peak_at.empty()) text += peak_text(expected);
  if (!expected.times.empty()) text += time_text(expected);
  return text + "}";
}

}  // namespace

Baseline read_baseline(const JsonView& expected) {
  expected.allow_only({"tidemark", "allocator_rules", "experiments"});
  Baseline baseline;
  baseline.tidemark = expected.at("tidemark").text();
  baseline.allocator_rules = expected.at("allocator_rules").text();
  std::set<std::string_view> ids;
  for (const JsonView entry : expected.at("experiments").items()) {
    baseline.experiments.push_back(read_expected(entry));
    if (!ids.insert(entry.at("id").text()).second)
      entry.fail(fmt::format("found the id {} twice; keep one of them",
                             tidemark::quoted(baseline.experiments.back().id)));
  }
  return baseline;
}

Expected expected_of(const std::string& id, const ExperimentOutcome& outcome, std::size_t groups) {
  Expected expected;
  expected.id = id;
  expected.settings = outcome.settings;
  expected.trace = outcome.trace;
  expected.plan = outcome.plan;
  if (!outcome.trace.empty()) expected.model = outcome.model;
  expected.refusal = outcome.refusal;
  expected.values = outcome.values;
  expected.peak_at = outcome.peak_at;
  const std::size_t kept = std::min(groups, outcome.peak.size());
  expected.peak.assign(outcome.peak.begin(),
                       outcome.peak.begin() + static_cast<std::ptrdiff_t>(kept));
  for (std::size_t i = kept; i < outcome.peak.size(); ++i) {
    expected.other_tensors += outcome.peak[i].tensors;
    expected.other_bytes += outcome.peak[i].bytes;
  }
  for (const diff::TimeGroup& group : outcome.times) {
    if (expected.times.size() < groups) {
      expected.times.push_back(group);
    } else {
      expected.other_times.runs += group.runs;
      expected.other_times.time += group.time;
    }
  }
  return expected;
}

std::string write_baseline(const Baseline& baseline) {
  std::string text = fmt::format(
      "{{\n    \"tidemark\": {},\n    \"allocator_rules\": {},\n    \"experiments\": [\n",
      json(baseline.tidemark), json(baseline.allocator_rules));
  for (const Expected& expected : baseline.experiments)
    text += fmt::format("{}\n{}", text.ends_with("[\n") ? "" : ",\n", expected_text(expected));
  return text + "\n\n    ]\n  }";
}

}  // namespace tidemark::regression
