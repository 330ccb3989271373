// Writes a graph in graphviz's language. Each op of the trace is a row, in which its nodes stand in
// the order of issue. Arrows point along the data; for the layout, those that lead to an earlier op
// are turned around, so that the rows follow the order of the ops:
//
//   forward f1    recompute f1    backward f1
//       ↓               ↓              ↑
//   forward f2    recompute f2    backward f2
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/export/graph_names.h"
#include "analysis/export/graph_picture.h"
#include "analysis/export/palette.h"
#include "base/quoted.h"

namespace tidemark::exports {
namespace {

constexpr std::string_view legend =
    R"(// #12 is a node's place in the order of issue; each row is an op. Small boxes with dashed borders are
// nodes beside the others: of what they read and write, only what joins them is shown.
// Solid arrows: what one node writes and another reads, with its size. "d x" is the gradient of x,
// "v1" its second version. Dashed arrows: order that no data imply. Dotted arrows: memory that is
// not free before the node at their end is done.
// What no node writes (weights, inputs, state) and what none of these reads stands in the boxes.
)";

constexpr std::string_view looks = R"(  labelloc=t; newrank=true; nodesep=0.3; ranksep=0.45;
  graph [fontname="Helvetica,Arial,sans-serif", fontsize=12];
  node [fontname="Helvetica,Arial,sans-serif", fontsize=10, height=0.3, shape=box, style=filled];
  edge [fontname="Helvetica,Arial,sans-serif", fontsize=8, color="#606060", arrowsize=0.6];
)";

using Instances = std::vector<InstanceId>;

// As it may stand in quotes.
std::string dot_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text, text.size() + 1)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

class DotWriter {
 public:
  explicit DotWriter(const ShownGraph& shown)
      : shown_(shown),
        trace_(shown.trace),
        graph_(shown.graph),
        slice_(shown.slice),
        writer_(graph_.instances.size(), no_node),
        read_by_(graph_.instances.size(), Reader::Nobody) {
    for (const auto* list : {&slice_.beside, &slice_.nodes})
      for (const NodeId id : *list) add(id);
    std::ranges::sort(drawn_);
  }

  std::string write() && {
    write_head();
    for (const Lane lane : graph_.lanes) write_lane(lane);
    for (const NodeId id : drawn_) write_arrows_to(id);
    for (const Order& order : slice_.orders) write_arrow(order.before, order.after, "style=dashed");
    for (const Hold& hold : slice_.holds) write_hold(hold);
    write_rows();
    return std::move(out_) + "}\n";
  }

 private:
  enum class Reader : std::uint8_t { Nobody, OptimizerBeside, Drawn };

  // An optimizer that updates all weights at once would be beside everything: boxes name it.
  void add(NodeId id) {
    const bool is_drawn = graph_[id].op != no_op || slice_.contains(id);
    if (is_drawn) {
      drawn_.push_back(id);
      for (const InstanceId write : graph_.writes(graph_[id])) writer_[index(write)] = id;
    }
    for (const InstanceId read : graph_.reads(graph_[id]))
      read_by_[index(read)] =
          std::max(read_by_[index(read)], is_drawn ? Reader::Drawn : Reader::OptimizerBeside);
  }

  void write_head();
  void write_lane(Lane lane);
  void write_node(NodeId id);
  void write_rows();
  void write_arrows_to(NodeId reader);
  void write_hold(const Hold& hold);
  void write_arrow(NodeId from, NodeId to, std::string_view look);

  std::string label_of(NodeId id) const;
  std::string read_line(const Node& node) const;
  std::string written_line(const Node& node, Reader reader, std::string_view what) const;
  std::string list_of(const Instances& instances, std::string_view separator) const;

  const ShownGraph& shown_;
  const Trace& trace_;
  const JointGraph& graph_;
  const GraphSlice& slice_;
  std::vector<NodeId> drawn_;    // in issue order
  std::vector<NodeId> writer_;   // by instance: who is drawn and writes it
  std::vector<Reader> read_by_;  // by instance
  std::set<std::pair<NodeId, NodeId>> arrows_;
  std::string out_;
};

void DotWriter::write_head() {
  const std::string title = fmt::format("{} · {} · {}", printable(trace_.model),
                                        printable(shown_.strategy), printable(shown_.part));
  out_ +=
      fmt::format("// The joint graph of {}\n// Shown: {}.\n{}", title, count_text(shown_), legend);
  if (!shown_.prefix.empty())
    out_ += fmt::format("// Names of tensors leave out '{}'.\n", printable(shown_.prefix));
  out_ += fmt::format(
      "// To draw it: dot -Tsvg FILE.dot -o FILE.svg\n"
      "digraph \"{}\" {{\n  label=\"{}\\n{}\";\n{}",
      dot_text(title), dot_text(title), count_text(shown_), looks);
}

void DotWriter::write_lane(Lane lane) {
  out_ += fmt::format("  subgraph cluster_{} {{\n    label=\"lane: {}\"; color=\"#a0a0a0\";\n",
                      index(lane), lanes[index(lane)].name);
  for (const NodeId id : drawn_)
    if (graph_[id].lane == lane) write_node(id);
  out_ += "  }\n";
}

void DotWriter::write_node(NodeId id) {
  const Node& node = graph_[id];
  const Color color = node.task ? color_of(*node.task) : copy_color;
  if (slice_.contains(id)) {
    out_ += fmt::format("    n{} [label=\"{}\", fillcolor=\"{}\", fontcolor=\"{}\"];\n", index(id),
                        label_of(id), hex(color), hex(text_color_on(color)));
  } else {
    out_ += fmt::format(
        "    n{} [label=\"#{} {}\", style=\"filled,dashed\", fillcolor=\"{}40\", fontsize=8, "
        "height=0.2];\n",
        index(id), index(id), dot_text(node_name(trace_, graph_, node)), hex(color));
  }
}

std::string DotWriter::label_of(NodeId id) const {
  const Node& node = graph_[id];
  return fmt::format("#{} {}{}{}{}", index(id), dot_text(node_name(trace_, graph_, node)),
                     read_line(node),
                     written_line(node, Reader::OptimizerBeside, "for the optimizer:"),
                     written_line(node, Reader::Nobody, "writes"));
}

std::string DotWriter::read_line(const Node& node) const {
  Instances given;
  for (const InstanceId id : graph_.reads(node))
    if (slice_.contains(id) && writer_[index(id)] == no_node) given.push_back(id);
  return given.empty() ? "" : "\\nreads " + list_of(given, ", ");
}

std::string DotWriter::written_line(const Node& node, Reader reader, std::string_view what) const {
  Instances written;
  for (const InstanceId id : graph_.writes(node))
    if (slice_.contains(id) && read_by_[index(id)] == reader) written.push_back(id);
  return written.empty() ? "" : fmt::format("\\n{} {}", what, list_of(written, ", "));
}

// "fc1.weight, fc1.bias (579 KiB)"
std::string DotWriter::list_of(const Instances& instances, std::string_view separator) const {
  constexpr std::size_t most = 3;
  std::string text;
  Bytes sum;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    sum += graph_[instances[i]].size;
    if (i >= most) continue;
    if (i > 0) text += separator;
    text += dot_text(instance_name(trace_, graph_[instances[i]], shown_.prefix));
  }
  if (instances.size() > most)
    text += fmt::format("{}and {} more", separator, instances.size() - most);
  return fmt::format("{} ({})", text, to_text(sum));
}

// Side by side in the order of issue: graphviz puts the end of an arrow, seen or not, to the right.
void DotWriter::write_rows() {
  std::map<OpId, std::vector<NodeId>> rows;
  for (const NodeId id : drawn_)
    if (graph_[id].op != no_op) rows[graph_[id].op].push_back(id);
  for (const auto& [op, nodes] : rows) {
    if (nodes.size() < 2) continue;
    out_ += "  {rank=same;";
    for (const NodeId id : nodes) out_ += fmt::format(" n{};", index(id));
    for (std::size_t i = 1; i < nodes.size(); ++i)
      if (!arrows_.contains({nodes[i - 1], nodes[i]}))
        out_ += fmt::format(" n{} -> n{} [style=invis];", index(nodes[i - 1]), index(nodes[i]));
    out_ += "}\n";
  }
}

// One arrow from each node that writes something of what is read.
void DotWriter::write_arrows_to(NodeId reader) {
  std::map<NodeId, Instances> by_writer;
  for (const InstanceId read : graph_.reads(graph_[reader]))
    if (slice_.contains(read) && writer_[index(read)] != no_node)
      by_writer[writer_[index(read)]].push_back(read);
  for (const auto& [writer, instances] : by_writer)
    if (slice_.contains(writer) || slice_.contains(reader))
      write_arrow(writer, reader, fmt::format("label=\"{}\"", list_of(instances, "\\n")));
}

void DotWriter::write_hold(const Hold& hold) {
  const NodeId writer = writer_[index(hold.instance)];
  if (writer == no_node || !std::ranges::binary_search(drawn_, hold.until)) return;
  const std::string held = list_of({hold.instance}, "");
  write_arrow(writer, hold.until, fmt::format("style=dotted, label=\"held: {}\"", held));
}

// The optimizer's nodes, of no op, are above all others: there the backward ends.
void DotWriter::write_arrow(NodeId from, NodeId to, std::string_view look) {
  const auto row = [&](NodeId id) { return graph_[id].op == no_op ? 0 : index(graph_[id].op) + 1; };
  arrows_.insert({from, to});
  const bool is_turned = row(to) < row(from);
  if (is_turned) std::swap(from, to);
  out_ += fmt::format("  n{} -> n{} [{}{}];\n", index(from), index(to),
                      is_turned ? "dir=back, " : "", look);
}

}  // namespace

std::string count_text(const ShownGraph& shown) {
  const std::size_t nodes = shown.slice.nodes.size(), beside = shown.slice.beside.size();
  const std::size_t all = shown.graph.nodes.size();
  if (nodes == all) return fmt::format("all {} nodes", all);
  return fmt::format("{} of {} nodes, and {} beside them; {} are left out", nodes, all, beside,
                     all - nodes - beside);
}

std::string graph_dot(const ShownGraph& shown) { return DotWriter(shown).write(); }

}  // namespace tidemark::exports
