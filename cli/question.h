// From text to values: the options of a step, of a card and of a question.
#pragma once

#include "cli/options.h"
#include "simulator/compare.h"

namespace tidemark {

enum class Format : unsigned char { Table, Json, Csv, Markdown };

Format format_of(const Options& options);
/// The same for what has only a table and JSON.
Format table_or_json(const Options& options);

/// A whole number from `min` to `max`, or a UsageError that names `what`.
std::int64_t parse_count(std::string_view text, std::string_view what, std::int64_t min,
                         std::int64_t max);

StepOptions step_of(const Options& options);

/// The step that the options describe, or the one of a trace file.
Trace trace_of(const Options& options);

/// Splits at the commas between strategies, not at those within one's options.
std::vector<StrategySpec> parse_strategies(std::string_view list);

Question question_of(const Options& options);

}  // namespace tidemark
