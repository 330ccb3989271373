// Finds which part of the joint graph is asked for, and writes it in what the file's name says.
#include "cli/commands/graph_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/export/graph_picture.h"
#include "analysis/item_facts.h"
#include "base/files.h"
#include "base/quoted.h"
#include "cli/commands/scenario.h"
#include "simulator/graph/differentiate.h"

namespace tidemark::cli {
namespace {

using exports::ShownGraph;
using Write = std::string (*)(const ShownGraph& shown);

void refuse_other_answers(const Options& options) {
  constexpr std::array<std::string_view, 6> others = {"--top",     "--saved",       "--levers",
                                                      "--measure", "--require-fit", "--plan-out"};
  for (const OptionRow& row : option_table()) {
    const bool is_answer =
        row.group == "output" || std::ranges::find(others, row.names) != others.end();
    if (is_answer && long_name(row) != "--quiet" && is_given(options, row))
      throw UsageError(fmt::format(
          "--graph writes the graph and nothing else: {} has no meaning here (leave it out)",
          long_name(row)));
  }
  if (options.block && !options.item.empty())
    throw UsageError(fmt::format("--block {} and {}: the graph of one or the other is shown",
                                 printable(*options.block), tidemark::quoted(options.item)));
}

Write writer_of(const std::string& path) {
  std::string_view name = path;
  if (name.ends_with(".zst")) name.remove_suffix(4);
  if (name.ends_with(".dot")) return exports::graph_dot;
  if (name.ends_with(".json")) return exports::graph_json;
  const bool is_picture =
      name.ends_with(".svg") || name.ends_with(".png") || name.ends_with(".pdf");
  throw UsageError(
      fmt::format("--graph: {} must end in .dot (for graphviz) or .json (for "
                  "programs){}",
                  tidemark::quoted(path),
                  is_picture ? "; dot -Tsvg FILE.dot -o FILE.svg draws the first" : ""));
}

ShownGraph all_of(const Trace& trace, const JointGraph& graph) {
  return {trace, graph, slice_of(graph), "", "all"};
}

ShownGraph block_of(const Trace& trace, const JointGraph& graph, const Block& block) {
  return {trace,
          graph,
          slice_of(graph, block.begin, block.end),
          "",
          fmt::format("block {}", block.name),
          block.name + "."};
}

// The middle one is like most others.
ShownGraph usual_part(const Trace& trace, const JointGraph& graph) {
  if (trace.blocks.empty()) return all_of(trace, graph);
  return block_of(trace, graph, trace.blocks[trace.blocks.size() / 2]);
}

ShownGraph numbered_block(const Trace& trace, const JointGraph& graph, std::string_view text) {
  if (text == "all") return all_of(trace, graph);
  if (trace.blocks.empty())
    throw UsageError(fmt::format("--block {}: {} has no blocks (all is what can be shown)",
                                 printable(text), tidemark::quoted(trace.model)));
  const auto last = static_cast<std::int64_t>(trace.blocks.size()) - 1;
  const std::int64_t block = parse_count(text, "--block, unless it is all,", 0, last);
  return block_of(trace, graph, trace.blocks[static_cast<std::size_t>(block)]);
}

ShownGraph named_part(const Trace& trace, const JointGraph& graph, std::string_view name) {
  if (const auto block = std::ranges::find(trace.blocks, name, &Block::name);
      block != trace.blocks.end())
    return block_of(trace, graph, *block);
  const NamedItem item = item_named(trace, name);
  if (item.op != no_op)
    return {trace, graph, slice_of(graph, item.op, static_cast<OpId>(index(item.op) + 1)), "",
            fmt::format("op {}", name)};
  const TensorId storage = trace[item.tensor].storage;
  return {trace, graph, slice_of(graph, storage), "",
          fmt::format("tensor {}", trace[storage].name)};
}

ShownGraph part_of(const Options& options, const Trace& trace, const JointGraph& graph) {
  if (!options.item.empty()) return named_part(trace, graph, options.item);
  if (options.block) return numbered_block(trace, graph, *options.block);
  return usual_part(trace, graph);
}

}  // namespace

Result write_graph(const Options& options) {
  refuse_other_answers(options);
  const Write write = writer_of(*options.graph);
  const StrategySpec strategy = one_strategy(options);
  const Scenario scenario = scenario_of(options);
  require_writable(*options.graph);
  const PlannedStep step = plan_step(trace_of(scenario), strategy);
  if (!step.refusal.empty())
    throw InputError(fmt::format("{} does not apply: {}", strategy.text, step.refusal));
  const JointGraph graph = differentiate(*step.trace, step.plan, *derived_of(step));
  ShownGraph shown = part_of(options, *step.trace, graph);
  shown.strategy = strategy.text;
  write_file(*options.graph, write(shown));
  return {"", notes_on(scenario) +
                  fmt::format("{}: {}, {}\n", *options.graph, shown.part, count_text(shown))};
}

}  // namespace tidemark::cli
