// A search for people: what was asked, the layouts, what was left out and why, and how to run the
// fastest.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/quoted.h"
#include "cli/reports/launch_lines.h"
#include "cli/reports/search_json.h"
#include "cli/reports/search_rows.h"
#include "cli/text/units_text.h"
#include "cli/text/wrapping.h"
#include "simulator/parallel/cluster.h"
#include "traces/step_fields.h"

namespace tidemark::cli {
namespace {

// What all layouts have in common.
std::string common_step(const LayoutRequest& request) {
  StepOptions step = request.scenario.step;
  step.precision = precision_of(step);
  std::string text;
  for (const StepField& field : step_fields()) {
    const bool is_decided = field.key == "shard" || field.key == "schedule";
    const bool is_shown = field.shown == StepShown::Always ||
                          (field.shown == StepShown::IfStated && is_stated(field, step));
    const auto value = field.value(step);
    if (is_shown && !is_decided && value) text += " · " + in_words(field, *value);
  }
  return text;
}

std::string search_heading(const LayoutSearch& search) {
  const LayoutRequest& request = search.request;
  const Interconnect* const joined = interconnect_of(request.scenario.device);
  return fmt::format("{} on {} GPU{}{}: {}\nglobal batch {}{}\nAll numbers are predicted.\n\n",
                     printable(request.scenario.model.title, 200), request.gpus,
                     request.gpus == 1 ? "" : "s",
                     joined ? fmt::format(" ({})", printable(joined->cluster, 100)) : "",
                     request.scenario.device.title, request.global_batch, common_step(request));
}

std::string throughput_cell(double rate) {
  return fmt::format("{:.{}f}", rate, rate >= 100 ? 0 : rate >= 10 ? 1 : 2);
}

void add_layout_columns(const LayoutSearch& search, const SizeUnit& size, const TimeUnit& time,
                        TextTable& table) {
  table.add_column({"", Align::Left});
  table.add_column({"mesh", Align::Left});
  table.add_column({"batch", Align::Left});
  table.add_column({"schedule", Align::Left});
  table.add_column({"shard", Align::Left});
  table.add_column({"strategy", Align::Left});
  table.add_column({"rank", Align::Left, 4});
  table.add_column({"allocated", Align::Right, 10, std::string(size.name())});
  table.add_column({"reserved", Align::Right, 3, std::string(size.name())});
  table.add_column({"step", Align::Right, 10, std::string(time.name())});
  table.add_column({fmt::format("{}/s", search.throughput_unit), Align::Right, 6});
  table.add_column({"MFU", Align::Right, 5});
  table.add_column({"exposed", Align::Right, 2, std::string(time.name())});
  table.add_column({"bubble", Align::Right, 2, std::string(time.name())});
}

// Of many stages the first and the last two: between, all have as many blocks as the second.
std::string narrow_schedule(const LayoutRequest& request, const MeshLayout& layout) {
  constexpr std::int64_t most_stages = 4;
  if (layout.uneven == 0 || layout.mesh[Axis::Pipeline] <= most_stages)
    return schedule_text(request, layout);
  PipelineSchedule schedule = *schedule_in(request, layout);
  const std::vector<std::int64_t> counts = std::exchange(schedule.blocks, {});
  return fmt::format("{}:{}-{}…{}-{}", to_text(schedule), counts[0], counts[1],
                     counts[counts.size() - 2], counts.back());
}

std::string draw_layouts(const LayoutSearch& search, const Style& style) {
  Bytes largest;
  for (const FoundLayout& found : search.found)
    largest = std::max(largest, found.numbers.allocated);
  const SizeUnit size(largest);
  const TimeUnit time(search.found.back().numbers.step);
  TextTable table;
  add_layout_columns(search, size, time, table);
  for (const FoundLayout& found : search.found) {
    const auto& [layout, key, numbers, is_on_front] = found;
    const bool is_piped = layout.mesh[Axis::Pipeline] > 1;
    table.add_row({{is_on_front ? "*" : ""},
                   {to_text(layout.mesh) + (layout.sequence_parallel ? " --sp" : "")},
                   {fmt::format("{} × {}", layout.batch, layout.micro_batches)},
                   {narrow_schedule(search.request, layout)},
                   {sharding_text(search.request, layout)},
                   {search.request.scenario.strategies[layout.strategy].text},
                   {is_piped ? to_text(RankClass{numbers.stage}) : std::string()},
                   {size(numbers.allocated)},
                   {size(numbers.reserved)},
                   {time(numbers.step)},
                   {throughput_cell(numbers.throughput)},
                   {numbers.mfu > 0 ? fmt::format("{:.1f} %", numbers.mfu * 100) : ""},
                   {time(numbers.exposed)},
                   {is_piped ? time(numbers.bubble) : std::string()}});
  }
  return table.draw(style, "--format csv has all");
}

// Each with its layouts: what ranks do not share is of several kinds, which have names of their
// own.
std::vector<std::pair<std::int64_t, std::string>> reasons_of(const LayoutSearch& search) {
  std::vector<std::pair<std::int64_t, std::string>> reasons;
  for (const LayoutRuleRow& rule : layout_rules) {
    const std::int64_t cut = search.cut[static_cast<std::size_t>(rule.value)];
    if (rule.value == LayoutRule::Undivided)
      for (const auto& [why, layouts] : search.undivided)
        reasons.emplace_back(layouts, printable(why, 400));
    else if (cut > 0)
      reasons.emplace_back(cut, rule.says);
  }
  return reasons;
}

std::string left_out_text(const LayoutSearch& search, const Style& style) {
  TextTable table;
  table.add_column({"layouts", Align::Right});
  table.add_column({"left out because", Align::Wrapped});
  const auto reasons = reasons_of(search);
  for (const auto& [layouts, why] : reasons) table.add_row({{fmt::format("{}", layouts)}, {why}});
  std::string text = fmt::format("\n{} layouts, {} of them simulated, {} shown\n", search.all,
                                 search.simulated, search.found.size());
  if (!reasons.empty()) text += table.draw(style);
  if (!search.tensor_refusal.empty())
    text += wrapped_text(fmt::format("tp: {}", printable(search.tensor_refusal, 400)), style.width);
  if (search.found.empty() && !search.strategy_refusal.empty())
    text += wrapped_text(fmt::format("strategy: {}", printable(search.strategy_refusal, 400)),
                         style.width);
  if (!search.refusal.empty())
    text += wrapped_text(fmt::format("refused: {}", printable(search.refusal, 400)), style.width);
  return text;
}

std::string how_to_run(const LayoutSearch& search, const LayoutCommand& command) {
  const FoundLayout& fastest = search.found.front();
  std::string text = fmt::format("\nTo run the fastest:\n  {}\n", command(fastest.layout));
  for (const LaunchLine& line : launch_lines(search.request, fastest.layout))
    text += line.line.empty() ? fmt::format("  {}: none, {}\n", line.program, line.why_not)
                              : fmt::format("  {}\n", line.line);
  return text + "(--format csv or json has the commands of every row)\n";
}

std::string category_words(Category category) {
  std::string words(to_string(category));
  std::ranges::replace(words, '_', ' ');
  return words;
}

// The largest categories at the peak, until most of it is named.
std::string what_binds(const BytesByCategory& bytes) {
  std::vector<std::pair<Bytes, std::size_t>> sorted;
  for (std::size_t c = 0; c < bytes.size(); ++c) sorted.emplace_back(bytes[c], c);
  std::ranges::sort(sorted, std::greater());
  std::string text;
  for (std::size_t i = 0; i < 3 && sorted[i].first > Bytes{}; ++i)
    text += fmt::format("{}{} of {}", i == 0 ? "" : ", ", to_text(sorted[i].first),
                        category_words(static_cast<Category>(sorted[i].second)));
  return text;
}

std::string nothing_fits(const LayoutSearch& search, const LayoutCommand& command,
                         const Style& style) {
  if (search.is_stopped) return "Nothing that fits was found before the search was stopped.\n";
  if (!search.nearest && search.nearest_global_batch)
    return fmt::format("No layout was found. The nearest global batch that has some: {}.\n",
                       *search.nearest_global_batch);
  if (!search.nearest) return "No layout was found.\n";
  const LayoutNumbers& numbers = search.nearest->numbers;
  const std::string words = fmt::format(
      "Nothing fits. The nearest is {}: it needs {} of {}{}. Its peak is at {}, with {}.",
      search.nearest->key, to_text(numbers.allocated), to_text(numbers.capacity),
      numbers.short_by > Bytes{} ? fmt::format(", {} more than there is", to_text(numbers.short_by))
                                 : ", and fragmentation takes the rest",
      search.nearest_peak, what_binds(search.nearest_bytes));
  return wrapped_text(words, style.width) + fmt::format("  {}\n", command(search.nearest->layout)) +
         wrapped_text(
             "More GPUs, a smaller --batch, or --strategies with more than checkpoint "
             "(mesa+checkpoint, lowmemorybp+checkpoint) may help.",
             style.width);
}

std::string search_table(const LayoutSearch& search, const LayoutCommand& command,
                         const Style& style) {
  std::string text = search_heading(search);
  if (search.found.empty()) {
    text += nothing_fits(search, command, style);
    return text + left_out_text(search, style);
  }
  text += "The fastest layouts that fit; * none that is as fast needs less:\n";
  text += draw_layouts(search, style);
  return text + left_out_text(search, style) + how_to_run(search, command);
}

}  // namespace

std::string print_search(const LayoutSearch& search, const LayoutCommand& command, Format format,
                         const Style& style) {
  if (format == Format::Table) return search_table(search, command, style);
  if (format == Format::Json) return search_json(search, command);
  return print(search_listing(search, command), format, style);
}

}  // namespace tidemark::cli
