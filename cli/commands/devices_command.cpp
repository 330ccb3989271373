// `tidemark devices`: lists the known devices, or every figure of one with its source.
#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/reports/figure_listing.h"

namespace tidemark::cli {
namespace {

struct Wanted {
  std::string_view key;
  std::string_view title;
  int importance;
};

constexpr std::array wanted = {Wanted{"capacity", "memory", 9},
                               Wanted{"bytes_per_second", "bandwidth", 8},
                               Wanted{"fp32_flops_per_second", "fp32", 5},
                               Wanted{"tf32_flops_per_second", "tf32", 4},
                               Wanted{"fp16_flops_per_second", "fp16", 6},
                               Wanted{"bf16_flops_per_second", "bf16", 3},
                               Wanted{"sm_count", "SMs", 2}};

ListCell device_cell(const std::vector<Figure>& all, std::string_view key) {
  const auto figure = std::ranges::find(all, key, &Figure::key);
  if (figure == all.end() || figure->number == 0) return {FieldValue(), "–"};
  return {number_of(*figure), figure->text};
}

Listing list_devices() {
  Listing listing{{{"name", "name"}, {"title", "title"}}, {}};
  for (const Wanted& column : wanted)
    listing.columns.push_back(
        {std::string(column.key), std::string(column.title), Align::Right, column.importance});
  for (const Device& device : known_devices()) {
    const std::vector<Figure> all = figures(device);
    std::vector<ListCell> row = {{device.name}, {device.title}};
    for (const Wanted& column : wanted) row.push_back(device_cell(all, column.key));
    listing.rows.push_back(std::move(row));
  }
  return listing;
}

Listing list_figures(const Device& device) {
  Listing listing = figure_listing(figures(device));
  if (const auto source = device.sources.find("compute_capability"); source != device.sources.end())
    listing.rows.insert(listing.rows.begin(), {{std::string("compute_capability")},
                                               {device.compute_capability},
                                               {std::string(), ""},
                                               kind_cell(source->second),
                                               {source->second.text}});
  return listing;
}

}  // namespace

Result run_devices(const Options& options) {
  const Format format = format_of(options, for_devices);
  const Style style = style_of(options);
  if (options.subject.empty()) return {print(list_devices(), format, style), "", ExitCode::Ok};
  const Device device = find_device(options.subject);
  if (format == Format::Json) return {write_device(device), "", ExitCode::Ok};
  std::string text = print(list_figures(device), format, style);
  if (format == Format::Table) text = device.title + "\n\n" + text;
  return {text, "", ExitCode::Ok};
}

}  // namespace tidemark::cli
