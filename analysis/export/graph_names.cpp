// Roles are said in front of a tensor's name, versions after the first behind it.
#include "analysis/export/graph_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace tidemark::exports {
namespace {

std::string_view role_prefix(Role role) {
  switch (role) {
    case Role::Value:
      return "";
    case Role::Codes:
      return "codes of ";
    case Role::Gradient:
      return "d ";
    case Role::OptimizerState:
      return "state of ";
    case Role::Temporary:
      return "scratch for ";
    case Role::Ranges:
      return "ranges of ";
    case Role::Shard:
      return "shard of ";
    case Role::GradientShard:
      return "shard of d ";
  }
  return "";
}

}  // namespace

std::string_view task_name(const JointGraph& graph, const Node& node) {
  if (node.task) return to_string(*node.task);
  const auto is_on_host = [&](InstanceId id) { return graph[id].on_host; };
  return std::ranges::any_of(graph.writes(node), is_on_host) ? "copy out" : "copy in";
}

std::string node_name(const Trace& trace, const JointGraph& graph, const Node& node) {
  const std::string_view task = task_name(graph, node);
  return node.op == no_op ? std::string(task) : fmt::format("{} {}", task, trace[node.op].name);
}

std::string instance_name(const Trace& trace, const Instance& instance, std::string_view prefix) {
  if (instance.tensor == no_tensor) return "scratch";
  std::string_view name = trace[instance.tensor].name;
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  const std::string version = instance.version == 0 ? "" : fmt::format(" v{}", instance.version);
  return fmt::format("{}{}{}{}", role_prefix(instance.role), name, version,
                     instance.on_host ? " on the host" : "");
}

}  // namespace tidemark::exports
