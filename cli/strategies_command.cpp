// `tidemark strategies`: lists them, or one with its options and what it combines with.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/listing.h"

namespace tidemark::cli {
namespace {

struct Meaning {
  std::string_view option;
  std::string_view text;
};

constexpr std::array meanings = {
    Meaning{"every=K", "segments of K blocks instead of one"},
    Meaning{"sqrt", "segments as long as the square root of the number of blocks"},
    Meaning{"selective", "only the attention maps are recomputed"},
    Meaning{"hoist", "recovery overlaps across the stages of the model, too"},
    Meaning{"released", "as the published code does it, with what that wastes"}};

std::string_view meaning_of(std::string_view option) {
  const auto found = std::ranges::find(meanings, option, &Meaning::option);
  return found == meanings.end() ? "" : found->text;
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
                            {fmt::format("{}", fmt::join(row.options, ", "))},
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
  for (const std::string_view option : row.options)
    add(fmt::format("{}:{}", row.name, option), meaning_of(option));
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
