// The file of a cluster: which figures it has, how they are read, written and shown.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "simulator/cost/figure_text.h"
#include "simulator/parallel/cluster.h"

namespace tidemark {
namespace {

constexpr std::string_view cluster_format = "tidemark-cluster-1";
constexpr std::string_view curve_key = "all_reduce_curve";

/// In file order: the only list of them. What is not required is 0 where it is not said; what has
/// no unit is counted, so it is whole.
struct ClusterFigure {
  std::string_view key, unit;
  double min, max;
  double Interconnect::*member;
  bool is_required = false;
};

constexpr std::array cluster_figures = {
    ClusterFigure{"gpus_per_node", "", 1, 1e4, &Interconnect::gpus_per_node, true},
    ClusterFigure{"link_bytes_per_second", "B/s", 1e6, 1e14, &Interconnect::link_bytes_per_second,
                  true},
    ClusterFigure{"link_is_pcie", "", 0, 1, &Interconnect::link_is_pcie, true},
    ClusterFigure{"latency_protocol_limit", "B/s", 0, 1e14, &Interconnect::latency_protocol_limit},
    ClusterFigure{"gather_base_seconds", "s", 0, 1, &Interconnect::gather_base_seconds},
    ClusterFigure{"gather_step_seconds", "s", 0, 1, &Interconnect::gather_step_seconds},
    ClusterFigure{"network_cards", "", 0, 1e4, &Interconnect::network_cards},
    ClusterFigure{"network_bytes_per_second", "B/s", 0, 1e14,
                  &Interconnect::network_bytes_per_second},
    ClusterFigure{"channels", "", 1, 64, &Interconnect::channels, true},
    ClusterFigure{"multicast_channels", "", 0, 64, &Interconnect::multicast_channels},
    ClusterFigure{"multicast_bytes_per_second", "B/s", 0, 1e14,
                  &Interconnect::multicast_bytes_per_second},
    ClusterFigure{"multicast_two_nodes", "B/s", 0, 1e14, &Interconnect::multicast_two_nodes},
    ClusterFigure{"multicast_more_nodes", "B/s", 0, 1e14, &Interconnect::multicast_more_nodes}};

double read_figure(const JsonView& value, const ClusterFigure& spec) {
  if (!spec.unit.empty()) return value.number(spec.min, spec.max);
  return static_cast<double>(
      value.integer(static_cast<std::int64_t>(spec.min), static_cast<std::int64_t>(spec.max)));
}

BusPoint read_point(const JsonView& pair) {
  std::array<double, 2> numbers{};
  if (pair.items().size() != numbers.size()) pair.fail("found another list; need [bytes, B/s]");
  std::size_t i = 0;
  for (const JsonView number : pair.items()) numbers[i++] = number.number(1, 1e15);
  return {numbers[0], numbers[1]};
}

std::vector<BusPoint> read_bus_curve(const JsonView& list) {
  std::vector<BusPoint> curve;
  for (const JsonView pair : list.items()) {
    const BusPoint point = read_point(pair);
    if (!curve.empty() && point.bytes <= curve.back().bytes)
      pair.fail("found fewer bytes than in the point before; need rising bytes");
    curve.push_back(point);
  }
  if (curve.empty()) list.fail("found an empty curve; need points [bytes, B/s]");
  return curve;
}

void read_figures(const JsonView& listed, Cluster& cluster) {
  std::vector<std::string_view> keys = {curve_key};
  for (const ClusterFigure& spec : cluster_figures) {
    keys.push_back(spec.key);
    if (!spec.is_required && !listed.find(spec.key)) continue;
    const JsonView figure = listed.at(spec.key);
    figure.allow_only({"value", "kind", "source"});
    cluster.interconnect.*spec.member = read_figure(figure.at("value"), spec);
    cluster.sources[std::string(spec.key)] = read_source(figure);
  }
  if (const auto curve = listed.find(curve_key)) {
    curve->allow_only({"value", "kind", "source"});
    cluster.interconnect.all_reduce = read_bus_curve(curve->at("value"));
    cluster.sources[std::string(curve_key)] = read_source(*curve);
  }
  listed.allow_only({keys.begin(), keys.end()});
  const Interconnect& joined = cluster.interconnect;
  if ((joined.gather_base_seconds > 0) != (joined.gather_step_seconds > 0))
    listed.fail("found half of a line; need gather_base_seconds and gather_step_seconds");
  if ((joined.network_cards > 0) != (joined.network_bytes_per_second > 0))
    listed.fail("found half of a network; need network_cards and network_bytes_per_second");
  const bool has_trees = joined.multicast_bytes_per_second > 0;
  if (has_trees != (joined.multicast_two_nodes > 0) ||
      has_trees != (joined.multicast_more_nodes > 0))
    listed.fail(
        "found a part of multicast's trees; need multicast_bytes_per_second, multicast_two_nodes "
        "and multicast_more_nodes");
}

std::string curve_text(const std::vector<BusPoint>& curve) {
  std::string text;
  for (const BusPoint& point : curve)
    text += fmt::format("{}[{}, {}]", text.empty() ? "" : ", ", point.bytes,
                        number_text(point.bus_bytes_per_second));
  return "[" + text + "]";
}

const FigureSource& source_of(const Cluster& cluster, std::string_view key) {
  static const FigureSource none;
  const auto found = cluster.sources.find(key);
  return found == cluster.sources.end() ? none : found->second;
}

}  // namespace

std::vector<Figure> figures(const Cluster& cluster) {
  std::vector<Figure> listed;
  for (const ClusterFigure& spec : cluster_figures) {
    if (!spec.is_required && !cluster.sources.contains(spec.key)) continue;
    const double number = cluster.interconnect.*spec.member;
    listed.push_back({.key = std::string(spec.key),
                      .number = number,
                      .unit = std::string(spec.unit),
                      .text = display_text(number, spec.unit),
                      .source = source_of(cluster, spec.key)});
  }
  return listed;
}

Cluster read_cluster(std::string_view json, std::string_view file) {
  const JsonDocument document(json, file);
  const JsonView root = document.root();
  root.allow_only({"format", "name", "title", "device", "figures"});
  const JsonView format = root.at("format");
  if (format.text() != cluster_format)
    format.fail(fmt::format("found another format; need '{}'", cluster_format));
  Cluster cluster;
  cluster.name = plain_name(root.at("name"));
  cluster.title = plain_text(root.at("title"));
  cluster.device = plain_name(root.at("device"));
  const auto is_it = [&](const Device& device) { return device.name == cluster.device; };
  if (std::ranges::none_of(known_devices(), is_it))
    root.at("device").fail("found no device that is known; tidemark devices lists them");
  read_figures(root.at("figures"), cluster);
  cluster.interconnect.cluster = cluster.name;
  return cluster;
}

std::string write_cluster(const Cluster& cluster) {
  std::string lines;
  const auto add = [&](std::string_view key, const std::string& value) {
    lines += fmt::format("{}    \"{}\": {}", lines.empty() ? "" : ",\n", key,
                         sourced(value, source_of(cluster, key)));
  };
  for (const Figure& figure : figures(cluster)) add(figure.key, number_text(figure.number));
  if (!cluster.interconnect.all_reduce.empty())
    add(curve_key, curve_text(cluster.interconnect.all_reduce));
  return fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"name\": {},\n  \"title\": {},\n  \"device\": {},\n"
      "  \"figures\": {{\n{}\n  }}\n}}\n",
      cluster_format, json_quoted(cluster.name), json_quoted(cluster.title),
      json_quoted(cluster.device), lines);
}

}  // namespace tidemark
