// One line per lever: what is then needed, the changes, and in words what it does and changes else.
#include "cli/reports/lever_listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/listing.h"
#include "cli/reports/print_comparison.h"
#include "cli/text/units_text.h"

namespace tidemark::cli {
namespace {

using Levers = std::vector<const TriedLever*>;

double ratio(Bytes with, Bytes without) {
  return static_cast<double>(with.count) /
         static_cast<double>(std::max<std::int64_t>(1, without.count));
}

Listing listing_of(const LeverTable& table, const Levers& levers, Measure measure) {
  Listing listing{{{"lever", "lever"},
                   {"kind", "kind"},
                   {fmt::format("{}_bytes", to_string(measure)), "bytes", Align::Right},
                   {"memory_ratio", "memory", Align::Right},
                   {"step_ns", "step ns", Align::Right},
                   {"time_per_sample_ratio", "time", Align::Right},
                   {"fits", "fits"},
                   {"caution", "caution"},
                   {"does", "what it does"}},
                  {}};
  const Bytes before = measured(table.now(), measure);
  for (const TriedLever* lever : levers) {
    const Bytes after = measured(lever->report, measure);
    listing.rows.push_back({{lever->name},
                            {std::string(to_string(lever->kind))},
                            {after.count},
                            {ratio(after, before)},
                            {lever->report.step.count()},
                            {time_ratio(lever->report, table.now())},
                            {lever->report.fits},
                            {lever->caution},
                            {lever->does}});
  }
  return listing;
}

std::string draw(const LeverTable& table, const Levers& levers, Measure measure,
                 const Style& style) {
  const Bytes before = measured(table.now(), measure);
  const SizeUnit size(before);
  TextTable text;
  text.add_column({"lever", Align::Left});
  text.add_column({std::string(to_string(measure)), Align::Right, 10, std::string(size.name())});
  text.add_column({"change"});
  text.add_column({"time", Align::Right, 10, "per sample"});
  text.add_column({"fits", Align::Left});
  text.add_column({"what it does, and ! what it changes beside", Align::Wrapped});
  for (const TriedLever* lever : levers) {
    const Bytes after = measured(lever->report, measure);
    text.add_row({{lever->name},
                  {size(after)},
                  {change_text(ratio(after, before))},
                  {change_text(time_ratio(lever->report, table.now()))},
                  {lever->report.fits ? "yes" : "no"},
                  {lever->caution.empty() ? lever->does
                                          : fmt::format("{}; ! {}", lever->does, lever->caution)}});
  }
  return text.draw(style, "--format json");
}

std::string heading(const LeverTable& table, const Levers& levers, Measure measure) {
  const Report& now = table.now();
  const std::string what = fmt::format(
      "{} · {}: {} {}, {}", table.comparison.scenario.model.name, now.strategy, to_string(measure),
      to_text(measured(now, measure)), now.fits ? "fits" : "does not fit");
  if (levers.empty()) return what + "\nNothing that Tidemark knows lowers this peak.\n";
  return fmt::format("{} in {} ({})\n{} What would lower this peak{}:\n", what,
                     to_text(now.capacity), table.comparison.scenario.device.title,
                     origin_of_numbers(table.comparison),
                     now.fits ? "" : ", first what makes it fit");
}

}  // namespace

std::string print_levers(const LeverTable& table, Measure measure, Format format,
                         const Style& style) {
  const Levers levers = lowering(table, measure);
  if (format != Format::Table) return print(listing_of(table, levers, measure), format, style);
  const std::string head = heading(table, levers, measure);
  return levers.empty() ? head : head + draw(table, levers, measure, style);
}

}  // namespace tidemark::cli
