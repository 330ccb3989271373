// Clusters: devices by the node, and what joins them. They are data: one JSON file each in
// simulator/clusters/, embedded in the program; a user may bring more.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/cost/device.h"
#include "simulator/parallel/interconnect.h"

namespace tidemark {

struct Cluster {
  std::string name;    ///< "dgx-h100"
  std::string title;   ///< "NVIDIA DGX H100, 8 GPUs per node, NDR InfiniBand"
  std::string device;  ///< of the known ones: "h100"
  Interconnect interconnect;
  std::map<std::string, FigureSource, std::less<>> sources;  ///< by the figure's key in the file

  bool operator==(const Cluster&) const = default;
};

/// In file order; without the curve.
std::vector<Figure> figures(const Cluster& cluster);

/// The embedded clusters, by name.
const std::vector<Cluster>& known_clusters();

/// A known cluster (in any case of letters), or one read from a path that ends in ".json" or has a
/// '/'. An unknown name is a UsageError that lists the known ones.
Cluster find_cluster(const std::string& name_or_path);

/// Reads a cluster file; `file` is its name for messages. Throws InputError.
Cluster read_cluster(std::string_view json, std::string_view file);

/// The text of a cluster file, the same to the byte for equal clusters.
std::string write_cluster(const Cluster& cluster);

/// Its device, joined as the cluster joins it.
Device device_of(const Cluster& cluster);

/// The device's own, or that of the first known cluster of its name; null: none is known.
const Interconnect* interconnect_of(const Device& device);

}  // namespace tidemark
