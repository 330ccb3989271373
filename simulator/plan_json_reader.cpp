// Reads a plan file in two steps: what it is without any trace, and then what its names mean in
// one.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/quoted.h"
#include "simulator/plan_json.h"
#include "simulator/strategies/input_gradients.h"
#include "simulator/tensor_roles.h"
#include "traces/trace_json.h"

namespace tidemark {
namespace {

/// No plan needs more reasons or encodings, and the lists are searched for each tensor.
constexpr std::size_t most_listed = 1000;

/// Turns names into tensors and ops of one trace.
class PlanReader {
 public:
  /// `root`: what says so of the trace; `head`: what the plan was made for.
  PlanReader(const Trace& trace, JsonView root, JsonView head)
      : trace_(trace), root_(root), head_(head), tensors_(trace) {
    for (const Op& op : trace.ops) ops_.add(op.name);
  }

  Plan read() {
    plan_ = keep_everything(trace_);
    plan_.strategy = head_.text_or("strategy", "");
    plan_.overlap = head_.boolean_or("overlap", false);
    plan_.lanes =
        static_cast<std::uint8_t>(head_.integer_or("lanes", least_lanes, least_lanes, most_lanes));
    if (const auto list = head_.find("quirks")) read_quirks(*list);
    for (const JsonView group : root_.at("decisions").items()) read_decision(group);
    if (const auto list = root_.find(kept_for_recovery_key))
      for (const JsonView tensor : list->items())
        for (const TensorId id : tensors_named(tensor, tensor.text())) keep_for_recovery(plan_, id);
    if (const auto list = root_.find("regions"))
      for (const JsonView region : list->items()) read_region(region);
    for (const OpByTensorRow& row : op_by_tensor_rows)
      if (const auto object = root_.find(row.key)) read_ops(*object, plan_.*row.member);
    if (const auto object = root_.find(rerun_after_key)) read_waits(*object);
    return std::move(plan_);
  }

 private:
  void read_quirks(const JsonView& list) {
    for (const JsonView name : list.items()) {
      const auto* row = std::ranges::find(quirk_rows, name.text(), &QuirkRow::name);
      if (row == quirk_rows.end())
        name.fail(unknown_name("quirk", printable(name.text()), names_of(quirk_rows)));
      plan_.quirks.*row->member = true;
    }
  }

  // A later group decides again about what an earlier one named.
  void read_decision(const JsonView& group) {
    group.allow_only({"action", "encoding", "reason", "tensors"});
    const JsonView name = group.at("action");
    const auto* action = std::ranges::find(actions, name.text(), &Named<Action>::name);
    if (action == actions.end())
      name.fail(unknown_name("action", printable(name.text()), names_of(actions)));
    const std::string_view reason = group.text_or("reason", "named in the plan file");
    if (reason.empty()) group.at("reason").fail("is empty; leave it out, or say why");
    const bool is_coded = action->value == Action::Quantize;
    const auto encoding = group.find("encoding");
    if (encoding && !is_coded) encoding->fail(fmt::format("is of no use to {}", action->name));
    for (const JsonView tensor : group.at("tensors").items())
      for (const TensorId id : tensors_named(tensor, tensor.text()))
        if (is_coded)
          quantize(plan_, id, read_encoding(encoding, trace_[id].shape), reason);
        else
          decide(plan_, id, action->value, reason);
    require_few(group, plan_.reasons.size(), "reason");
    require_few(group, plan_.encodings.size(), "encoding");
  }

  static void require_few(const JsonView& group, std::size_t count, std::string_view what) {
    if (count > most_listed)
      group.fail(fmt::format("is the {0} number {1}; give groups the same {0}", what, most_listed));
  }

  static CodeFormat read_format(const JsonView& encoding) {
    const auto name = encoding.find("format");
    if (!name) return CodeFormat::Integer;
    const auto* found = std::ranges::find(code_formats, name->text(), &Named<CodeFormat>::name);
    if (found == code_formats.end())
      name->fail(unknown_name("format of codes", printable(name->text()), names_of(code_formats)));
    return found->value;
  }

  // What is left out is as Mesa's layers have it, or COAT's; a group without an axis divides the
  // axis that theirs do.
  static Encoding read_encoding(const std::optional<JsonView>& view, const Shape& shape) {
    if (!view) return mesa_encoding(shape);
    view->allow_only({"format", "bits", "axis", "group", "metadata", "delayed"});
    Encoding encoding = usual_encoding(read_format(*view), shape);
    const auto number = [&](std::string_view key, auto& member) {
      using Member = std::remove_reference_t<decltype(member)>;
      member =
          static_cast<Member>(view->integer_or(key, member, 0, std::numeric_limits<Member>::max()));
    };
    number("bits", encoding.bits);
    number("axis", encoding.axis);
    number("group", encoding.group);
    number("metadata", encoding.metadata);
    encoding.delayed = view->boolean_or("delayed", false);
    if (const std::string why = misfit(encoding, shape); !why.empty()) view->fail(why);
    return encoding;
  }

  void read_region(const JsonView& view) {
    view.allow_only({"begin", "split", "end", "chain"});
    const auto op_at = [&](std::string_view key, OpId otherwise) {
      const auto name = view.find(key);
      return name ? op_named(*name) : otherwise;
    };
    Region region{.begin = op_named(view.at("begin"))};
    region.split = op_at("split", region.begin);
    region.end = op_at("end", static_cast<OpId>(trace_.ops.size()));
    region.chain = static_cast<std::int32_t>(
        view.integer_or("chain", 0, 0, std::numeric_limits<std::int32_t>::max()));
    if (region.end <= region.begin)
      view.fail("ends before it begins; 'end' is the first op behind the region");
    if (region.split < region.begin || region.split >= region.end)
      view.at("split").fail("is no op of the region");
    if (!plan_.regions.empty() && region.begin < plan_.regions.back().end)
      view.fail("begins before the region in front of it ends; list them in the order of the ops");
    plan_.regions.push_back(region);
  }

  void read_ops(const JsonView& object, std::vector<OpId>& ops) {
    ops.assign(trace_.tensors.size(), no_op);
    for (const JsonView op : object.members())
      for (const TensorId id : tensors_named(op, op.key())) ops[index(id)] = op_named(op);
  }

  void read_waits(const JsonView& object) {
    plan_.rerun_after.assign(trace_.ops.size(), no_op);
    for (const JsonView after : object.members())
      plan_.rerun_after[index(op_named(after, after.key()))] = op_named(after);
  }

  std::vector<TensorId> tensors_named(const JsonView& place, std::string_view name) const {
    std::vector<TensorId> found = tensors_.find(name);
    if (found.empty()) fail_unknown(place, "tensor", name, tensors_.nearest(name));
    for (const TensorId id : found)
      if (trace_[id].storage != id)
        place.fail(fmt::format("{} lies in the memory of {}; name that one",
                               tidemark::quoted(trace_[id].name),
                               tidemark::quoted(trace_[trace_[id].storage].name)));
    return found;
  }

  OpId op_named(const JsonView& place) const { return op_named(place, place.text()); }

  OpId op_named(const JsonView& place, std::string_view name) const {
    const std::uint32_t found = ops_.find(name);
    if (found == NameIndex::nothing)
      fail_unknown(place, "op", name, nearest_name(name, ops_.names()));
    return static_cast<OpId>(found);
  }

  [[noreturn]] void fail_unknown(const JsonView& place, std::string_view what,
                                 std::string_view name, std::string_view near) const {
    std::string text =
        fmt::format("{} has no {} {}", printable(trace_.model), what, tidemark::quoted(name));
    if (!near.empty()) text += fmt::format(" (did you mean {}?)", tidemark::quoted(near));
    if (const auto model = head_.find("model"))
      text += fmt::format("; the plan was made for {}", printable(model->text()));
    if (const auto step = head_.find("step"))
      text += fmt::format(" ({})", printable(step->text(), 200));
    place.fail(text);
  }

  const Trace& trace_;
  JsonView root_, head_;
  const TensorRoles tensors_;
  NameIndex ops_;
  Plan plan_;
};

// What is said of one trace.
std::vector<std::string_view> keys_of_trace() {
  std::vector<std::string_view> keys = {"decisions", "regions", kept_for_recovery_key,
                                        rerun_after_key};
  for (const OpByTensorRow& row : op_by_tensor_rows) keys.push_back(row.key);
  return keys;
}

// Of a file for all stages of a pipeline, the trace's.
JsonView root_for(const Trace& trace, const JsonView& head) {
  const auto stages = head.find(stages_key);
  if (!stages) return head;
  const std::int64_t wanted = trace.step.mesh[Axis::Pipeline];
  const std::int64_t own = trace.step.rank.value_or(RankClass()).stage;
  std::optional<JsonView> found;
  std::int64_t count = 0;
  for (const JsonView stage : stages->items())
    if (count++ == own) found = stage;
  if (count != wanted)
    stages->fail(fmt::format("is of {} pipeline stages, and the mesh has {}", count, wanted));
  return *found;
}

void check_head(const JsonView& root) {
  const auto format = root.find("format");
  if (!format || format->text() != plan_format)
    root.fail(fmt::format("not a plan file; need \"format\": \"{}\"", plan_format));
  const JsonView version = root.at("version");
  if (version.integer() < oldest_plan_version || version.integer() > plan_version)
    version.fail(fmt::format("found {}; this program reads versions {} to {}", version.integer(),
                             oldest_plan_version, plan_version));
  std::vector<std::string_view> keys = {"format",   "version", "strategy", "model", "step",
                                        "rewrites", "overlap", "lanes",    "quirks"};
  const auto stages = root.find(stages_key);
  if (stages) keys.push_back(stages_key);
  const std::vector<std::string_view> of_trace = keys_of_trace();
  if (!stages) keys.insert(keys.end(), of_trace.begin(), of_trace.end());
  root.allow_only(keys);
  if (stages)
    for (const JsonView stage : stages->items()) stage.allow_only(of_trace);
  for (const std::string_view key : {"model", "step", "strategy"}) root.text_or(key, "");
}

std::vector<StrategySpec::Component> components_of(const JsonView& rewrites) {
  StrategySpec spec;
  try {
    spec = parse_strategy(rewrites.text());
  } catch (const UsageError& error) {
    rewrites.fail(error.what());
  }
  for (const StrategySpec::Component& component : spec.components)
    if (!component.row->rewrite && !asks_for_input_gradients(component))
      rewrites.fail(fmt::format(
          "{} rewrites no trace; leave it out, for what it decides stands in 'decisions'",
          component.row->name));
  return spec.components;
}

StrategySpec spec_of(std::shared_ptr<const JsonDocument> document) {
  const JsonView root = document->root();
  check_head(root);
  StrategySpec spec{.text = plan_title(document->file()), .components = {}};
  if (const auto rewrites = root.find("rewrites")) spec.components = components_of(*rewrites);
  spec.plan = std::move(document);
  return spec;
}

}  // namespace

std::string plan_title(std::string_view file) {
  std::string name = std::filesystem::path(file).filename().string();
  for (const std::string_view ending : {".zst", ".json", ".plan"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return "plan:" + printable(name);
}

StrategySpec read_plan(std::string_view json, std::string_view file) {
  return spec_of(std::make_shared<const JsonDocument>(json, file));
}

StrategySpec load_plan(const std::string& path) {
  return spec_of(std::make_shared<const JsonDocument>(read_json(path, FileKind::Plan)));
}

Plan plan_for(const Trace& trace, const JsonDocument& file) {
  Derived derived{.needs = derive_needs(trace), .recovery = {}};
  return plan_for(trace, file, derived);
}

Plan plan_for(const Trace& trace, const JsonDocument& file, Derived& derived) {
  Plan plan = PlanReader(trace, root_for(trace, file.root()), file.root()).read();
  if (const auto defects = check(trace, plan, derived); !defects.empty())
    throw InputError(describe_defects(file.file(), defects));
  return plan;
}

std::string other_model_of(const StrategySpec& spec, std::string_view model) {
  if (!spec.plan) return "";
  const std::string_view made_for = spec.plan->root().text_or("model", model);
  return made_for == model ? "" : std::string(made_for);
}

}  // namespace tidemark
