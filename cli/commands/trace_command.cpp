// `tidemark trace`: writes the trace of a step, or with --info checks and describes a trace file.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/quoted.h"
#include "cli/commands/commands.h"
#include "cli/commands/formats.h"
#include "cli/commands/scenario.h"
#include "cli/text/units_text.h"
#include "simulator/timeline.h"
#include "traces/framework.h"
#include "traces/step_fields.h"
#include "traces/trace_json.h"

namespace tidemark::cli {
namespace {

// Bytes of each category's storages: what would be needed if nothing were ever freed.
BytesByCategory storage_bytes(const Trace& trace) {
  BytesByCategory bytes{};
  for (const Tensor& tensor : trace.tensors)
    if (&trace[tensor.storage] == &tensor)
      bytes[static_cast<std::size_t>(tensor.category)] += size(tensor);
  return bytes;
}

// "4, of 2 operations: aten::cumsum (3), aten::grid_sampler_2d (1)", the most frequent first.
std::string describe_opaque(const Trace& trace) {
  constexpr std::size_t most_named = 6;
  std::map<std::string_view, std::size_t> counts;
  for (const OpaqueRow& row : trace.opaque_rows) ++counts[row.operation];
  std::vector<std::pair<std::string_view, std::size_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater(), &decltype(sorted)::value_type::second);
  std::string text = fmt::format("{}, of {} operation{}: ", trace.opaque_rows.size(), sorted.size(),
                                 sorted.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(most_named, sorted.size()); ++i)
    text +=
        fmt::format("{}{} ({})", i == 0 ? "" : ", ", printable(sorted[i].first), sorted[i].second);
  if (sorted.size() > most_named) text += fmt::format(" and {} more", sorted.size() - most_named);
  return text;
}

std::string describe(const Trace& trace, std::string_view name) {
  std::string text = fmt::format("{}: sound\n", printable(name, 200));
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<16} {}\n", label, value);
  };
  line("model", fmt::format("{}{}", printable(trace.model, 200),
                            trace.family.empty() ? "" : " (" + printable(trace.family) + ")"));
  line("step", in_words(trace.step));
  line("ops", fmt::format("{}", trace.ops.size()));
  if (!trace.opaque_rows.empty()) line("opaque ops", describe_opaque(trace));
  line("tensors", fmt::format("{}", trace.tensors.size()));
  line("blocks", fmt::format("{}", trace.blocks.size()));
  const BytesByCategory bytes = storage_bytes(trace);
  for (std::size_t c = 0; c < category_count; ++c)
    if (bytes[c].count > 0)
      line(categories[c].name, fmt::format("{} ({} B)", to_text(bytes[c]), bytes[c].count));
  return text;
}

// A trace is of no device, and yet of kernels that one chooses.
std::string note_on_capability(const Trace& trace) {
  if (trace.step.capability || !find_framework(trace.step.framework).picks_fused_attention)
    return "";
  return "kernels are those of compute capability 8.0 (--compute-capability names another)\n";
}

}  // namespace

Result run_trace(const Options& options) {
  if (options.info) {
    if (!options.subject.empty())
      throw UsageError(fmt::format("--info describes {}; {} is one operand too many",
                                   tidemark::quoted(*options.info),
                                   tidemark::quoted(options.subject)));
    return {describe(load_trace(*options.info), *options.info), "", ExitCode::Ok};
  }
  require_ending(options, ".trace.json", "a trace file");
  Result result;
  const Trace trace = trace_of(options, result.notes);
  result.notes += note_on_capability(trace);
  result.text = write_trace(trace);
  if (options.output)
    result.notes += fmt::format("{}: {} ops, {} tensors\n", printable(*options.output, 200),
                                trace.ops.size(), trace.tensors.size());
  return result;
}

}  // namespace tidemark::cli
