// Writes a graph as JSON: an object in one line for each node and instance.
#include <nlohmann/json.hpp>

#include "analysis/export/graph_names.h"
#include "analysis/export/graph_picture.h"

namespace tidemark::exports {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

class GraphJson {
 public:
  explicit GraphJson(const ShownGraph& shown)
      : trace_(shown.trace), graph_(shown.graph), slice_(shown.slice) {}

  Json node(NodeId id) const {
    const Node& node = graph_[id];
    const Op* op = node.op == no_op ? nullptr : &trace_[node.op];
    return {{"id", index(id)},
            {"task", task_name(graph_, node)},
            {"op", op ? Json(op->name) : Json()},
            {"kind", op ? Json(to_string(op->kind)) : Json()},
            {"lane", lanes[index(node.lane)].name},
            {"beside", !slice_.contains(id)},
            {"reads", shown(graph_.reads(node))},
            {"writes", shown(graph_.writes(node))}};
  }

  Json instance(InstanceId id) const {
    const Instance& instance = graph_[id];
    const bool is_named = instance.tensor != no_tensor;
    return {{"id", index(id)},
            {"tensor", is_named ? Json(trace_[instance.tensor].name) : Json()},
            {"role", roles[static_cast<std::size_t>(instance.role)].name},
            {"version", instance.version},
            {"bytes", instance.size.count},
            {"category", to_string(instance.category)},
            {"persistent", instance.persistent},
            {"on_host", instance.on_host},
            {"over", instance.over == no_instance ? Json() : Json(index(instance.over))}};
  }

 private:
  Json shown(std::span<const InstanceId> operands) const {
    Json list = Json::array();
    for (const InstanceId id : operands)
      if (slice_.contains(id)) list.push_back(index(id));
    return list;
  }

  const Trace& trace_;
  const JointGraph& graph_;
  const GraphSlice& slice_;
};

template <typename Items, typename ToJson>
void write_list(std::string& out, std::string_view key, const Items& items, ToJson to_json) {
  out.append(",\n  \"").append(key).append("\": [");
  for (const auto& item : items)
    out.append(out.back() == '[' ? "\n    " : ",\n    ").append(line_of(to_json(item)));
  out += items.empty() ? "]" : "\n  ]";
}

Json head(const ShownGraph& shown) {
  const std::size_t all = shown.graph.nodes.size(), nodes = shown.slice.nodes.size(),
                    beside = shown.slice.beside.size();
  Json lane_names = Json::array();
  for (const Lane lane : shown.graph.lanes) lane_names.push_back(lanes[index(lane)].name);
  return {
      {"format", "tidemark-graph"},
      {"version", 1},
      {"model", shown.trace.model},
      {"strategy", shown.strategy},
      {"part", shown.part},
      {"counts",
       {{"all", all}, {"shown", nodes}, {"beside", beside}, {"left_out", all - nodes - beside}}},
      {"lanes", std::move(lane_names)}};
}

}  // namespace

std::string graph_json(const ShownGraph& shown) {
  std::vector<NodeId> nodes = shown.slice.nodes;
  nodes.insert(nodes.end(), shown.slice.beside.begin(), shown.slice.beside.end());
  std::ranges::sort(nodes);
  const GraphJson json(shown);
  std::string out = "{";
  const Json first = head(shown);
  for (const auto& [key, value] : first.items())
    out.append(out.back() == '{' ? "\n  " : ",\n  ")
        .append(line_of(key))
        .append(": ")
        .append(line_of(value));
  write_list(out, "nodes", nodes, [&](NodeId id) { return json.node(id); });
  write_list(out, "instances", shown.slice.instances,
             [&](InstanceId id) { return json.instance(id); });
  write_list(out, "edges", shown.slice.orders, [](const Order& order) {
    return Json{{"before", index(order.before)}, {"after", index(order.after)}};
  });
  write_list(out, "holds", shown.slice.holds, [](const Hold& hold) {
    return Json{{"instance", index(hold.instance)}, {"until", index(hold.until)}};
  });
  return out + "\n}\n";
}

}  // namespace tidemark::exports
