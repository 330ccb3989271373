#include "cli/commands.h"
#include "cli/print_explanation.h"
#include "cli/question.h"
#include "cli/saved_listing.h"

namespace tidemark {
namespace {

constexpr std::int64_t usual_top = 12;

std::string print_saved(const Options& options) {
  if (!options.item.empty() || options.strategy)
    throw UsageError("--saved lists what vanilla saves (leave out --strategy and the name)");
  const Format format = format_of(options);
  return print_saved_groups(trace_of(options), format, style_of(options));
}

std::string print_item(const Explanation& explanation, const Options& options, Format format) {
  if (!explanation.report().applies)
    throw InputError(explanation.report().strategy +
                     " does not apply: " + explanation.report().reason);
  const ItemFacts facts =
      find_item(explanation.answer, explanation.comparison.question.device, options.item);
  if (format == Format::Json) return item_json(explanation, facts);
  return item_table(explanation, facts, style_of(options));
}

std::string print_peak(const Explanation& explanation, const Options& options, Format format) {
  if (format == Format::Json) return explanation_json(explanation);
  constexpr std::int64_t most = 1'000'000;
  const std::int64_t top = options.top ? parse_count(*options.top, "--top", 0, most) : usual_top;
  return explanation_table(explanation, style_of(options), static_cast<std::size_t>(top));
}

}  // namespace

Result run_explain(const Options& options) {
  if (options.saved) return {print_saved(options), "", ExitCode::Ok};
  const Format format = table_or_json(options);
  Question question = question_of(options);
  question.strategies = {parse_strategy(options.strategy.value_or("vanilla"))};
  const Explanation explanation = explain(question);
  Result result{options.item.empty() ? print_peak(explanation, options, format)
                                     : print_item(explanation, options, format),
                "", ExitCode::Ok};
  if (options.require_fit && !explanation.report().fits) result.exit_code = ExitCode::DoesNotFit;
  return result;
}

}  // namespace tidemark
