// `tidemark strategies`: lists them, or one with its options and what it combines with.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/reports/listing.h"

namespace tidemark::cli {
namespace {

std::string texts_of(const std::vector<StrategyOption>& options) {
  std::string text;
  for (const StrategyOption& option : options)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", option.text);
  return text;
}

Listing list_strategies() {
  Listing listing{{{"name", "name"},
                   {"summary", "what it does", Align::Wrapped},
                   {"options", "options", Align::Left, 6},
                   {"source", "source", Align::Wrapped, 5}},
                  {}};
  for (const StrategyRow& row : strategies())
    listing.rows.push_back({{std::string(row.name)},
                            {std::string(row.summary)},
                            {texts_of(row.options)},
                            {std::string(row.source)}});
  return listing;
}

Listing describe_strategy(const StrategyRow& row) {
  Listing listing{{{"what", "what"}, {"value", "value", Align::Wrapped}}, {}};
  const auto add = [&](std::string what, std::string_view value) {
    listing.rows.push_back({{std::move(what)}, {std::string(value)}});
  };
  add("name", row.name);
  add("what it does", row.summary);
  if (!row.source.empty()) add("source", row.source);
  for (const StrategyOption& option : row.options)
    add(fmt::format("{}:{}", row.name, option.text), option.meaning);
  for (const StrategyRow& other : strategies()) {
    if (&other == &row || other.is_reference || row.is_reference) continue;
    const std::string both = fmt::format("{}+{}", row.name, other.name);
    const Refusal refusal = contradiction_in(parse_strategy(both));
    add(both, refusal.empty() ? "combines" : refusal);
  }
  return listing;
}

}  // namespace

Result run_strategies(const Options& options) {
  const Format format = format_of(options, for_strategies);
  const Listing listing =
      options.subject.empty()
          ? list_strategies()
          : describe_strategy(*parse_strategy(options.subject).components.at(0).row);
  return {print(listing, format, style_of(options)), "", ExitCode::Ok};
}

}  // namespace tidemark::cli
