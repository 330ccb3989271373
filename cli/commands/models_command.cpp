// `tidemark models`: lists the presets with their parameters, or describes one model.
#include <fmt/format.h>

#include "analysis/parameter_count.h"
#include "base/quoted.h"
#include "cli/commands/commands.h"
#include "cli/commands/scenario.h"
#include "cli/reports/listing.h"
#include "cli/text/units_text.h"
#include "traces/presets.h"

namespace tidemark::cli {
namespace {

Listing list_models() {
  Listing listing{{{"name", "name"},
                   {"family", "family", Align::Left, 5},
                   {"title", "title"},
                   {"parameters", "parameters", Align::Right},
                   {"source", "source", Align::Wrapped, 3}},
                  {}};
  for (const Model& model : known_models()) {
    const std::int64_t parameters = count_parameters(build_trace(model, {})).all;
    listing.rows.push_back({{model.name},
                            {model.family},
                            {model.title},
                            {parameters, count_text(parameters)},
                            {model.source}});
  }
  return listing;
}

// What one sample at the default options looks like; the model's config file has the rest.
Listing describe_model(const Model& model) {
  const Trace trace = build_trace(model, {});
  Listing listing{{{"what", "what"}, {"value", "value", Align::Wrapped}}, {}};
  const auto add = [&](std::string what, FieldValue value, std::optional<std::string> shown = {}) {
    listing.rows.push_back({{std::move(what)}, {std::move(value), std::move(shown)}});
  };
  add("name", printable(model.name, 200));
  add("title", printable(model.title, 200));
  add("family", model.family);
  add("source", printable(model.source, 200));
  const std::int64_t parameters = count_parameters(trace).all;
  add("parameters", parameters, count_text(parameters));
  add("blocks", static_cast<std::int64_t>(trace.blocks.size()));
  if (!trace.blocks.empty())
    add("block input, batch 1", to_text(trace[trace.blocks.front().input].shape));
  std::string names;
  for (const Head head : heads_of(model.config))
    names.append(names.empty() ? "" : ", ").append(to_string(head));
  add("head", std::string(to_string(head_of(model.config))));
  add("heads that it can have", names);
  if (model.precision) add("precision of its weights", std::string(to_string(*model.precision)));
  add("ops", static_cast<std::int64_t>(trace.ops.size()));
  return listing;
}

}  // namespace

Result run_models(const Options& options) {
  const Format format = format_of(options, for_models);
  if (options.subject.empty())
    return {print(list_models(), format, style_of(options)), "", ExitCode::Ok};
  const Model model = find_model(options.subject);
  return {print(describe_model(model), format, style_of(options)), notes_on(model, {}),
          ExitCode::Ok};
}

}  // namespace tidemark::cli
