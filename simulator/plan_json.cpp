// Writes a plan as text: decisions in groups of one action and reason, tensors by role where they
// can be, a line per region. What is as usual is left out.
#include "simulator/plan_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/json_text.h"
#include "simulator/tensor_roles.h"
#include "traces/step_fields.h"

namespace tidemark {
namespace {

/// What the tensors of one entry of "decisions" have in common, in the order in which they are
/// written.
struct Entry {
  std::size_t reason;
  Action action;
  std::string encoding;

  auto operator<=>(const Entry&) const = default;
};

/// What is not as the usual encoding of its format has it.
std::string encoding_text(const Encoding& encoding, const Shape& shape) {
  const Encoding usual = usual_encoding(encoding.format, shape);
  std::vector<std::string> members;
  if (encoding.format != CodeFormat::Integer)
    members.push_back(fmt::format("\"format\": \"{}\"", to_string(encoding.format)));
  const auto add = [&](std::string_view key, unsigned value, unsigned otherwise) {
    if (value != otherwise) members.push_back(fmt::format("\"{}\": {}", key, value));
  };
  add("bits", encoding.bits, usual.bits);
  add("axis", encoding.axis, usual.axis);
  add("group", encoding.group, usual.group);
  add("metadata", encoding.metadata, usual.metadata);
  if (encoding.delayed) members.emplace_back("\"delayed\": true");
  return fmt::format("{}", fmt::join(members, ", "));
}

/// The first version whose readers understand what the plans say beside `otherwise`.
int version_of(const Plan& plan, int otherwise) {
  const auto is_float = [](const Encoding& encoding) {
    return encoding.format == CodeFormat::Float8;
  };
  if (plan.lanes != least_lanes || !plan.rerun_after.empty()) return 7;
  if (std::ranges::any_of(plan.encodings, is_float)) return 6;
  return std::ranges::any_of(plan.encodings, &Encoding::delayed) ? 5 : otherwise;
}

class PlanWriter {
 public:
  PlanWriter(const Trace& trace, const Plan& plan) : trace_(trace), plan_(plan) {}

  std::string write(const std::string& rewrites) {
    const int otherwise = plan_.kept_for_recovery.empty() ? 2 : 3;
    write_head(version_of(plan_, otherwise), trace_.step, rewrites);
    write_body();
    return std::move(out_ += "\n}\n");
  }

  std::string write_whole(std::span<const std::string> stages, int version) {
    StepOptions of_all = trace_.step;
    of_all.rank.reset();
    write_head(version, of_all, "");
    out_ +=
        fmt::format(",\n  \"{}\": [\n    {}\n  ]\n}}\n", stages_key, fmt::join(stages, ",\n    "));
    return std::move(out_);
  }

  /// As it stands in the list of stages.
  std::string write_stage() {
    write_body();
    std::string text = "{";
    for (const char c : std::string_view(out_).substr(1)) {
      text += c;
      if (c == '\n') text += "    ";
    }
    return text += "\n    }";
  }

 private:
  void write_body() {
    write_decisions();
    if (!plan_.kept_for_recovery.empty()) {
      out_ += fmt::format(",\n  \"{}\": [", kept_for_recovery_key);
      write_names(TensorRoles(trace_).names_for(plan_.kept_for_recovery), "    ");
      out_ += "\n  ]";
    }
    if (!plan_.regions.empty()) write_regions();
    for (const OpByTensorRow& row : op_by_tensor_rows)
      if (!(plan_.*row.member).empty())
        write_ops(row.key, plan_.*row.member,
                  [&](std::size_t t) { return trace_.tensors[t].name; });
    if (!plan_.rerun_after.empty())
      write_ops(rerun_after_key, plan_.rerun_after,
                [&](std::size_t op) { return trace_.ops[op].name; });
  }

  void text(std::string_view key, std::string_view value) {
    out_.append(",\n  \"").append(key).append("\": ");
    append_json_text(out_, value);
  }

  void write_head(int version, const StepOptions& step, const std::string& rewrites) {
    out_ = fmt::format("{{\n  \"format\": \"{}\",\n  \"version\": {}", plan_format, version);
    text("strategy", plan_.strategy);
    text("model", trace_.model);
    text("step", in_words(step));
    if (!rewrites.empty()) text("rewrites", rewrites);
    if (plan_.overlap) out_ += ",\n  \"overlap\": true";
    if (plan_.lanes != least_lanes) out_ += fmt::format(",\n  \"lanes\": {}", plan_.lanes);
    std::vector<std::string_view> quirks;
    for (const QuirkRow& row : quirk_rows)
      if (plan_.quirks.*row.member) quirks.push_back(row.name);
    if (!quirks.empty())
      out_ += fmt::format(",\n  \"quirks\": [\"{}\"]", fmt::join(quirks, "\", \""));
  }

  void write_decisions() {
    std::map<Entry, std::vector<bool>> groups;
    for (std::size_t t = 0; t < plan_.decisions.size(); ++t) {
      const Decision& decision = plan_.decisions[t];
      if (decision.action == Action::Keep && plan_.reasons[decision.reason] == usual_reason)
        continue;
      Entry entry{decision.reason, decision.action, {}};
      if (decision.action == Action::Quantize)
        entry.encoding = encoding_text(plan_.encodings[decision.encoding], trace_.tensors[t].shape);
      auto& is_in = groups[entry];
      is_in.resize(plan_.decisions.size());
      is_in[t] = true;
    }
    const TensorRoles roles(trace_);
    out_ += ",\n  \"decisions\": [";
    for (const auto& [entry, is_in] : groups) {
      out_ += &is_in == &groups.begin()->second ? "\n" : ",\n";
      out_ += fmt::format("    {{\n      \"action\": \"{}\",\n      \"reason\": {},\n",
                          to_string(entry.action), json_text(plan_.reasons[entry.reason]));
      if (!entry.encoding.empty())
        out_ += fmt::format("      \"encoding\": {{{}}},\n", entry.encoding);
      out_ += "      \"tensors\": [";
      write_names(roles.names_for(is_in), "        ");
      out_ += "\n      ]\n    }";
    }
    out_ += groups.empty() ? "]" : "\n  ]";
  }

  // As many as fit into a line.
  void write_names(const std::vector<std::string>& names, std::string_view indent) {
    constexpr std::size_t longest_line = 98;
    std::size_t column = longest_line;
    for (const std::string& each : names) {
      const std::string name = json_text(each);
      const bool is_first = &each == &names.front();
      if (!is_first) out_ += ',';
      const bool begins_line = column + name.size() > longest_line;
      if (begins_line) {
        out_.append("\n").append(indent);
        column = indent.size();
      } else {
        out_ += ' ';
      }
      out_ += name;
      column += name.size() + 2;
    }
  }

  void write_regions() {
    out_ += ",\n  \"regions\": [";
    for (const Region& region : plan_.regions) {
      out_ += &region == plan_.regions.data() ? "\n    {" : ",\n    {";
      out_ += fmt::format("\"begin\": {}", json_text(trace_[region.begin].name));
      // Both mean that the region is recovered as a whole.
      if (region.split != region.begin && region.split != region.end)
        out_ += fmt::format(", \"split\": {}", json_text(trace_[region.split].name));
      if (index(region.end) < trace_.ops.size())
        out_ += fmt::format(", \"end\": {}", json_text(trace_[region.end].name));
      if (region.chain != 0) out_ += fmt::format(", \"chain\": {}", region.chain);
      out_ += '}';
    }
    out_ += "\n  ]";
  }

  template <typename NameOf>
  void write_ops(std::string_view key, const std::vector<OpId>& ops, NameOf name_of) {
    out_ += fmt::format(",\n  \"{}\": {{", key);
    std::string_view separator = "\n    ";
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i] == no_op) continue;
      out_ += fmt::format("{}{}: {}", std::exchange(separator, ",\n    "), json_text(name_of(i)),
                          json_text(trace_[ops[i]].name));
    }
    out_ += "\n  }";
  }

  const Trace& trace_;
  const Plan& plan_;
  std::string out_;
};

}  // namespace

std::string write_plan(const PlannedStep& step) {
  return PlanWriter(*step.trace, step.plan).write(strategy_text(step.rewrites));
}

std::string write_plan(std::span<const PlannedStep> stages) {
  std::vector<std::string> texts;
  for (const PlannedStep& stage : stages)
    texts.push_back(PlanWriter(*stage.trace, stage.plan).write_stage());
  int version = 4;
  for (const PlannedStep& stage : stages)
    version = std::max(version, version_of(stage.plan, version));
  return PlanWriter(*stages.front().trace, stages.front().plan).write_whole(texts, version);
}

}  // namespace tidemark
