// A difference for people: both peaks, the causes with their bytes, and the tensors of each.
#include <fmt/format.h>

#include <algorithm>

#include "base/quoted.h"
#include "cli/reports/print_comparison.h"
#include "cli/reports/print_difference.h"
#include "cli/text/text_table.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

std::string signed_text(const SizeUnit& unit, Bytes bytes) {
  return bytes < Bytes{} ? "−" + unit(Bytes{} - bytes) : "+" + unit(bytes);
}

std::string difference_head(const BesideFacts& facts, const Style& style) {
  std::string text;
  for (const std::string& line : describe_scenario(facts.explanation.comparison))
    text += line + "\n";
  const Report& row = facts.explanation.report();
  text += fmt::format("{}: predicted, fits: {}\n", style.paint(row.strategy, Ink::Bold),
                      fits_text(row));
  const char* label = facts.source == Source::Measured
                          ? "Numbers of the recording are measured, all others are predicted."
                          : "All numbers are predicted, those of the recording too.";
  text += style.paint(label, Ink::Dim);
  return text + fmt::format("\n\nBeside {}: {}\n", printable(facts.file, 200),
                            printable(facts.recorded, 200));
}

std::string headline(const BesideFacts& facts) {
  const auto& [predicted, recorded] =
      std::tie(facts.difference.predicted, facts.difference.recorded);
  const SizeUnit unit(std::max(predicted, recorded));
  // Nothing has no share of which there could be more.
  const std::string change =
      predicted == Bytes{}
          ? ""
          : fmt::format(" ({})", change_text(static_cast<double>(recorded.count) /
                                             static_cast<double>(predicted.count)));
  return fmt::format("predicted {} · recorded {} {} · difference {} {}{}\n", unit(predicted),
                     unit(recorded), unit.name(), signed_text(unit, recorded - predicted),
                     unit.name(), change);
}

std::string matched_text(const beside::Difference& difference) {
  const double share = static_cast<double>(difference.matched.count) /
                       static_cast<double>(std::max<std::int64_t>(1, difference.compared.count));
  return fmt::format(
      "{} of {} blocks at the moment of the run that is compared are tensors of the prediction: "
      "{:.1f} % of their bytes.\n",
      difference.matched_blocks, difference.recorded_blocks, 100 * share);
}

std::string tensor_table(const beside::Cause& cause, const SizeUnit& unit, const Style& style,
                         std::size_t top) {
  const std::size_t shown = std::min(top, cause.tensors.size());
  TextTable table;
  table.add_column({"  size", Align::Right, 10, std::string(unit.name())});
  table.add_column({"blocks"});
  table.add_column({"tensor", Align::Left});
  table.add_column({"line", Align::Left, 7});
  table.add_column({"allocated by", Align::Left, 8});
  for (const beside::CauseTensor& tensor : std::span(cause.tensors).first(shown))
    table.add_row({{"  " + unit(tensor.size)},
                   {fmt::format("{}", tensor.blocks)},
                   {printable(tensor.tensor)},
                   {printable(tensor.line)},
                   {printable(tensor.allocated_by)}});
  std::string text = table.draw(style, "--format json has all");
  if (shown < cause.tensors.size())
    text += fmt::format("  … and {} more (--top N shows more)\n", cause.tensors.size() - shown);
  return text;
}

}  // namespace

std::string difference_table(const BesideFacts& facts, const Style& style, std::size_t top) {
  std::string text = difference_head(facts, style);
  text += headline(facts) + matched_text(facts.difference);
  const beside::Difference& difference = facts.difference;
  if (difference.causes.empty()) text += "Nothing differs.\n";
  for (const beside::Cause& cause : difference.causes) {
    const SizeUnit unit(Bytes{std::abs(cause.bytes.count)});
    text += fmt::format("\n{} {}: {}\n", style.paint(signed_text(unit, cause.bytes), Ink::Bold),
                        unit.name(), beside::words_of(difference, cause));
    if (!cause.tensors.empty()) text += tensor_table(cause, unit, style, top);
  }
  return style.unicode ? text : to_ascii(text);
}

}  // namespace tidemark::cli
