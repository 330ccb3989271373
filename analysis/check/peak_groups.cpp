// Sums the buffers alive at the peak by role, contents and op; numbers in names become '*'.
#include "analysis/check/peak_groups.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "simulator/needs.h"
#include "simulator/tensor_roles.h"

namespace tidemark::regression {
namespace {

// What the bytes are, in one word: a value goes by the category of its tensor.
std::string_view contents_of(const Buffer& buffer) {
  if (buffer.role == Role::Value) return to_string(buffer.category);
  return roles[static_cast<std::size_t>(buffer.role)].name;
}

// Per tensor: the op that makes it; none for parameters and inputs.
std::vector<OpId> ops_of_tensors(const Trace& trace) {
  std::vector<OpId> ops(trace.tensors.size(), no_op);
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    for (const TensorId output : trace.outputs(trace.ops[i]))
      ops[index(output)] = static_cast<OpId>(i);
  return ops;
}

bool is_saved(const Plan& plan, const Needs& needs, TensorId tensor) {
  return needs.uses[index(tensor)] > 0 || plan.decisions[index(tensor)].action != Action::Keep;
}

std::string_view decision_about(const Plan& plan, const Needs& needs, const Buffer& buffer) {
  if (buffer.persistent) return "persistent";
  const bool holds_value = buffer.role == Role::Value || buffer.role == Role::Codes;
  if (!holds_value || buffer.tensor == no_tensor) return "";
  return is_saved(plan, needs, buffer.tensor)
             ? to_string(plan.decisions[index(buffer.tensor)].action)
             : "not saved";
}

std::string_view reason_of(const Plan& plan, std::string_view decision, TensorId tensor) {
  const bool is_decided = !decision.empty() && decision != "persistent" && decision != "not saved";
  if (!is_decided) return "";
  return plan.reasons[plan.decisions[index(tensor)].reason];
}

/// Finds the block that a tensor is in: blocks.11 of blocks.11.mlp.fc1.weight.
class BlockIndex {
 public:
  explicit BlockIndex(const Trace& trace) {
    for (std::size_t i = 0; i < trace.blocks.size(); ++i) known_.emplace(trace.blocks[i].name, i);
  }
  std::optional<std::size_t> of(std::string_view tensor) const {
    if (known_.empty()) return {};
    for (std::size_t dot = tensor.find('.'); dot != std::string_view::npos;
         dot = tensor.find('.', dot + 1))
      if (const auto found = known_.find(tensor.substr(0, dot)); found != known_.end())
        return found->second;
    return {};
  }

 private:
  std::unordered_map<std::string_view, std::size_t> known_;
};

/// A group as it is collected.
struct Collected {
  PeakGroup group;
  std::map<std::size_t, BlockShare> blocks;
  Bytes largest{-1};
  std::map<std::string_view, Bytes> decisions;
};

/// Equal neighbours as one: most models repeat one block.
std::vector<BlockShare> joined(const std::map<std::size_t, BlockShare>& blocks) {
  std::vector<BlockShare> shares;
  for (const auto& [block, share] : blocks) {
    const bool continues = !shares.empty() && shares.back().last + 1 == block &&
                           shares.back().tensors == share.tensors &&
                           shares.back().bytes == share.bytes;
    if (continues)
      shares.back().last = block;
    else
      shares.push_back({block, block, share.tensors, share.bytes});
  }
  return shares;
}

std::string joined(const std::map<std::string_view, Bytes>& decisions) {
  std::vector<std::pair<Bytes, std::string_view>> sorted;
  for (const auto& [decision, bytes] : decisions) sorted.emplace_back(bytes, decision);
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& pair) { return pair.first; });
  std::string text;
  for (const auto& [bytes, decision] : sorted)
    text.append(text.empty() || decision.empty() ? "" : ", ").append(decision);
  return text;
}

}  // namespace

bool is_same_role(const PeakGroup& a, const PeakGroup& b) {
  return a.role == b.role && a.contents == b.contents && a.op == b.op;
}

std::vector<PeakGroup> peak_groups(const Evaluation& evaluation) {
  const auto& [planned, schedule, timeline, report] = evaluation;
  const Trace& trace = *planned.trace;
  const std::shared_ptr<const Derived> derived = derived_of(planned);
  const Needs& needs = derived->needs;
  const std::vector<OpId> ops = ops_of_tensors(trace);
  const BlockIndex blocks(trace);
  std::map<std::tuple<std::string, std::string_view, std::string_view>, Collected> groups;
  for (const BufferId id : alive_after(schedule, timeline, peak(schedule, timeline).event)) {
    const Buffer& buffer = schedule[id];
    const bool has_tensor = buffer.tensor != no_tensor;
    const OpId op = has_tensor ? ops[index(buffer.tensor)] : no_op;
    const std::string_view kind =
        op == no_op ? std::string_view() : operation_name(trace, trace[op]);
    const std::string role = has_tensor ? role_of(trace[buffer.tensor].name) : std::string();
    Collected& known = groups[{role, contents_of(buffer), kind}];
    const std::string_view decision = decision_about(planned.plan, needs, buffer);
    known.decisions[decision] += buffer.size;
    ++known.group.tensors;
    known.group.bytes += buffer.size;
    if (const auto block =
            has_tensor ? blocks.of(trace[buffer.tensor].name) : std::optional<std::size_t>()) {
      BlockShare& share = known.blocks[*block];
      ++share.tensors;
      share.bytes += buffer.size;
    }
    if (buffer.size <= known.largest) continue;
    known.largest = buffer.size;
    known.group.reason = has_tensor ? reason_of(planned.plan, decision, buffer.tensor) : "";
  }
  std::vector<PeakGroup> sorted;
  for (auto& [key, known] : groups) {
    std::tie(known.group.role, known.group.contents, known.group.op) = key;
    known.group.decision = joined(known.decisions);
    known.group.blocks = joined(known.blocks);
    sorted.push_back(std::move(known.group));
  }
  std::ranges::stable_sort(sorted, std::greater(), &PeakGroup::bytes);
  return sorted;
}

}  // namespace tidemark::regression
