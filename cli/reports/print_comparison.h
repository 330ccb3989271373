// A comparison in four formats. Printers format the numbers of the reports; they compute none.
#pragma once

#include <span>
#include <string>

#include "analysis/comparison.h"
#include "cli/text/terminal.h"

namespace tidemark::cli {

/// For people. `shows_units`: also what a middle block saves by kind of op.
std::string comparison_table(const Comparison& comparison, const Style& style, bool shows_units);

/// Its table alone, with the notes on it. `complete` is a format that has all columns.
std::string comparison_rows(const Comparison& comparison, const Style& style,
                            std::string_view complete);

/// What strategies change beside memory and time, one line per caution; or "".
std::string cautions_text(const Comparison& comparison, const Style& style);

/// For programs: docs/tidemark.1 lists the keys.
std::string comparison_json(const Comparison& comparison);

/// One line per strategy, with the keys of the JSON rows that are single values.
std::string comparison_csv(const Comparison& comparison);

/// For pull requests and notes.
std::string comparison_markdown(const Comparison& comparison);

// What both texts for people say.

/// The step as it runs: what was left to the framework or the model is filled in.
StepOptions resolved_step(const Comparison& comparison);

/// Model, step and device, one line each.
std::vector<std::string> describe_scenario(const Comparison& comparison);

/// "All numbers are predicted.", with what a capture has recorded taken out.
std::string origin_of_numbers(std::span<const Comparison> comparisons);
inline std::string origin_of_numbers(const Comparison& comparison) {
  return origin_of_numbers(std::span(&comparison, 1));
}
std::string fits_text(const Report& row);
/// "931", or "931 (973)" where fragmentation leaves some between out.
std::string batches_text(const Report& row);
/// "tokens/s", "images/s" or "samples/s".
std::string throughput_title(const Comparison& comparison);
/// Three digits, whole numbers from 100 on.
std::string throughput_text(const Report& row);
/// "41.3 %"; "" for a network without matrix products.
std::string mfu_text(const Report& row);
/// Where fragmentation decides and what helps against it, and what was not tried.
std::vector<std::string> notes_on(const Comparison& comparison);
/// The reason, without the name of the strategy in front where that stands beside it.
std::string refusal_text(std::string_view strategy, std::string_view reason);

}  // namespace tidemark::cli
