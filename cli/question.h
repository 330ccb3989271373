// From text to values: the options of a step, of a card and of a question.
#pragma once

#include <map>

#include "cli/options.h"
#include "simulator/compare.h"

namespace tidemark {

enum class Format : unsigned char {
  Table,
  Json,
  Csv,
  Markdown,
  Html,
  Svg,
  Chrome,
  Timeline,
  Collapsed
};

/// The one of `known` that --format names. Without it, what the name of --output says (.html, .svg,
/// .timeline.json), or else the first.
Format format_among(const Options& options, const std::vector<Format>& known);
/// Of what has a table, JSON, CSV and Markdown.
Format format_of(const Options& options);

/// A whole number from `min` to `max`, or a UsageError that names `what`.
std::int64_t parse_count(std::string_view text, std::string_view what, std::int64_t min,
                         std::int64_t max);

StepOptions step_of(const Options& options);
/// What one would type for that step. The batch is always said.
std::map<std::string_view, std::string> typed_step(const StepOptions& step);

/// One line for each note on what was read of the model.
std::string notes_on(const Model& model);

/// The step that the options describe, or the one of a trace file. Notes on its model are added.
Trace trace_of(const Options& options, std::string& notes);

/// Splits at the commas between strategies, not at those within one's options.
std::vector<StrategySpec> parse_strategies(std::string_view list);

Question question_of(const Options& options);

/// The options once for each combination of the values that --batch, --sequence, --image and
/// --device name: one, unless some are lists or ranges.
std::vector<Options> points_of(const Options& options);

}  // namespace tidemark
