// One tensor or op for people, a labelled line per fact; long lists of readers are cut.
#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "cli/reports/print_explanation.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

std::string fact_line(std::string_view label, const std::string& text) {
  return fmt::format("  {:<12}{}\n", label, text);
}

std::string readers_text(const std::vector<Reader>& readers) {
  constexpr std::size_t most = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, readers.size()); ++i)
    text += fmt::format("{}{} ({}, {})", i == 0 ? "" : "; ", printable(readers[i].op),
                        printable(readers[i].operation), operand_text(readers[i].operand));
  if (readers.size() > most) text += fmt::format("; … and {} more", readers.size() - most);
  return text;
}

std::string life_text(const Life& life, const TimeUnit& time) {
  const std::string_view role = roles[static_cast<std::size_t>(life.role)].name;
  if (life.persistent) return fmt::format("{}, {}, always", role, to_text(life.size));
  return fmt::format("{}, {}, from {} to {} {}", role, to_text(life.size), time(life.begin),
                     time(life.end), time.name());
}

std::string tensor_text(const TensorFacts& facts, const TimeUnit& time, const Style& style) {
  const Tensor& tensor = facts.tensor;
  std::string text = fmt::format("\n{}: tensor\n", style.paint(printable(tensor.name), Ink::Bold));
  text += fact_line("shape",
                    fmt::format("{} {}, {}, {}", to_text(tensor.shape), to_string(tensor.dtype),
                                to_text(size(tensor)), to_string(tensor.category)));
  if (facts.storage != tensor.name)
    text += fact_line(
        "memory", fmt::format("of {}, {}", printable(facts.storage), to_text(facts.storage_size)));
  text += fact_line("made by", facts.producer.empty() ? "nobody in the step: it comes from outside"
                                                      : printable(facts.producer));
  if (!facts.line.empty()) text += fact_line("called at", printable(facts.line, 200));
  text += fact_line("read by", facts.readers.empty() ? "nobody" : readers_text(facts.readers));
  text += fact_line("backward", facts.holders.empty() ? "does not need it"
                                                      : "needs it: " + readers_text(facts.holders));
  if (facts.is_saved)
    text += fact_line("decision", fmt::format("{} ({})", to_string(facts.action), facts.reason));
  if (!facts.recovery.empty())
    text += fact_line("recovery", "together with the ops " + printable(facts.recovery, 200));
  for (std::size_t i = 0; i < facts.lives.size(); ++i)
    text += fact_line(i == 0 ? "lives" : "", life_text(facts.lives[i], time));
  return text;
}

std::string operand_lines(const OpFacts& facts) {
  std::string text;
  for (const OperandFacts& operand : facts.operands)
    text += fact_line(
        operand_text(operand.operand),
        fmt::format("{} {} {}, {}{}", printable(operand.tensor.name), to_text(operand.tensor.shape),
                    to_string(operand.tensor.dtype), to_text(size(operand.tensor)),
                    operand.is_held ? ", held for the backward" : ""));
  return text;
}

std::string inputs_text(std::uint32_t inputs) {
  std::string text;
  for (int i = 0; inputs >> i != 0; ++i)
    if ((inputs >> i & 1) != 0) text += (text.empty() ? "" : ", ") + operand_text(i);
  return text.empty() ? "no input" : text;
}

std::string workspace_text(const OpaqueRow& row) {
  return fmt::format("{} in the forward, {} in the backward", to_text(row.forward.workspace),
                     to_text(row.backward.workspace));
}

std::string row_lines(const OpFacts& facts) {
  const OpaqueRow& row = *facts.row;
  std::string text = fact_line("operation", printable(row.operation));
  text += fact_line("gradients", "of " + inputs_text(row.gradients));
  if (row.forward.workspace + row.backward.workspace > Bytes{})
    text += fact_line("workspace", workspace_text(row));
  if (row.runs_once) text += fact_line("recompute", "never: it may run only once");
  if (facts.is_time_guessed)
    text += fact_line("time", "a guess, one walk over its operands: its row does not say");
  return text;
}

std::string op_text(const OpFacts& facts, const TimeUnit& time, const Style& style) {
  std::string text = fmt::format(
      "\n{}: op of kind {}{}\n", style.paint(printable(facts.name), Ink::Bold),
      to_string(facts.kind), facts.block.empty() ? "" : ", in " + printable(facts.block));
  if (!facts.line.empty()) text += fact_line("called at", printable(facts.line, 200));
  if (facts.row) text += row_lines(facts);
  text += operand_lines(facts);
  if (facts.runs.empty())
    return text + fact_line("runs", "never: it only names a part of a tensor");
  TextTable table;
  table.add_column({"  run", Align::Left});
  table.add_column({"begin", Align::Right, 10, std::string(time.name())});
  table.add_column({"end", Align::Right, 10, std::string(time.name())});
  table.add_column({"alone"});
  table.add_column({"kernels"});
  table.add_column({"work"});
  table.add_column({"moved"});
  table.add_column({"stream"});
  for (const RunFacts& run : facts.runs)
    table.add_row({{fmt::format("  {}", to_string(run.task))},
                   {time(run.begin)},
                   {time(run.end)},
                   {to_text(run.cost.time)},
                   {fmt::format("{}", run.cost.kernels)},
                   {run.cost.flops > 0 ? flop_text(run.cost.flops) : ""},
                   {to_text(Bytes{static_cast<std::int64_t>(run.cost.bytes)})},
                   {fmt::format("{}", index(run.stream))}});
  return text + table.draw(style);
}

}  // namespace

std::string item_table(const Explanation& explanation, const ItemFacts& facts, const Style& style) {
  const TimeUnit time(explanation.report().step);
  std::string text = explanation_head(explanation, style);
  if (facts.op) text += op_text(*facts.op, time, style);
  if (facts.tensor) text += tensor_text(*facts.tensor, time, style);
  return style.unicode ? text : to_ascii(text);
}

}  // namespace tidemark::cli
