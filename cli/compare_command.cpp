#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/print_comparison.h"
#include "cli/question.h"

namespace tidemark {
namespace {

std::string print(const Comparison& comparison, Format format, const Options& options) {
  switch (format) {
    case Format::Json:
      return comparison_json(comparison);
    case Format::Csv:
      return comparison_csv(comparison);
    case Format::Markdown:
      return comparison_markdown(comparison);
    case Format::Table:
      break;
  }
  const bool shows_units = options.units || comparison.question.step.framework == "paper";
  return comparison_table(comparison, style_of(options), shows_units);
}

// Worth explaining: the fastest technique that fits, or else the one that needs least.
const Report* most_interesting(const Comparison& comparison) {
  const Report* best = nullptr;
  for (const Report& row : comparison.rows) {
    if (!row.applies || row.strategy == "vanilla") continue;
    const bool better = !best || (row.fits != best->fits ? row.fits
                                  : row.fits             ? row.step < best->step
                                             : row.allocated_peak < best->allocated_peak);
    if (better) best = &row;
  }
  return best;
}

std::string suggestion(const Comparison& comparison, const Options& options) {
  const Report* row = most_interesting(comparison);
  if (!row) return "";
  return fmt::format("Next: tidemark explain {}{}{} --strategy {}\n", shell_quoted(options.subject),
                     as_typed(options, "step"), as_typed(options, "card"), row->strategy);
}

}  // namespace

Result run_compare(const Options& options) {
  const Format format = format_of(options);
  const Question question = question_of(options);
  const Progress progress(options, "strategies", question.strategies.size());
  const Comparison comparison = compare(question, std::cref(progress));
  Result result{print(comparison, format, options), "", ExitCode::Ok};
  if (format == Format::Table) result.text += suggestion(comparison, options);
  if (options.require_fit && std::ranges::none_of(comparison.rows, &Report::fits))
    result.exit_code = ExitCode::DoesNotFit;
  return result;
}

}  // namespace tidemark
