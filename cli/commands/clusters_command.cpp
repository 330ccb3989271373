// `tidemark clusters`: lists the known clusters, or every figure of one with its source.
#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/reports/figure_listing.h"
#include "simulator/parallel/cluster.h"

namespace tidemark::cli {
namespace {

struct ShownFigure {
  std::string_view key, title;
};

constexpr std::array shown_figures = {ShownFigure{"gpus_per_node", "GPUs per node"},
                                      ShownFigure{"link_bytes_per_second", "on a node"},
                                      ShownFigure{"network_cards", "cards"},
                                      ShownFigure{"network_bytes_per_second", "each"}};

ListCell cluster_cell(const std::vector<Figure>& all, std::string_view key) {
  const auto figure = std::ranges::find(all, key, &Figure::key);
  if (figure == all.end()) return {FieldValue(), "–"};
  return {number_of(*figure), figure->text};
}

Listing list_clusters() {
  Listing listing{{{"name", "name"}, {"title", "title"}, {"device", "device"}}, {}};
  for (const ShownFigure& column : shown_figures)
    listing.columns.push_back({std::string(column.key), std::string(column.title), Align::Right});
  for (const Cluster& cluster : known_clusters()) {
    const std::vector<Figure> all = figures(cluster);
    std::vector<ListCell> row = {{cluster.name}, {cluster.title}, {cluster.device}};
    for (const ShownFigure& column : shown_figures) row.push_back(cluster_cell(all, column.key));
    listing.rows.push_back(std::move(row));
  }
  return listing;
}

}  // namespace

Result run_clusters(const Options& options) {
  const Format format = format_of(options, for_clusters);
  const Style style = style_of(options);
  if (options.subject.empty()) return {print(list_clusters(), format, style), "", ExitCode::Ok};
  const Cluster cluster = find_cluster(options.subject);
  if (format == Format::Json) return {write_cluster(cluster), "", ExitCode::Ok};
  std::string text = print(figure_listing(figures(cluster)), format, style);
  if (format == Format::Table) text = cluster.title + "\n\n" + text;
  return {text, "", ExitCode::Ok};
}

}  // namespace tidemark::cli
