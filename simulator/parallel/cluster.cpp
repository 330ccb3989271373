// Clusters found by name among the embedded ones or read from a file, and devices joined by them.
#include "simulator/parallel/cluster.h"

#include <algorithm>
#include <span>

#include "base/embedded_file.h"
#include "base/error.h"
#include "base/files.h"

namespace tidemark {

std::span<const EmbeddedFile> embedded_clusters();  // made from simulator/clusters/ at build time

const std::vector<Cluster>& known_clusters() {
  static const std::vector<Cluster> clusters = [] {
    std::vector<Cluster> read;
    for (const EmbeddedFile& file : embedded_clusters())
      read.push_back(read_cluster(file.text, file.name));
    std::ranges::sort(read, {}, &Cluster::name);
    return read;
  }();
  return clusters;
}

Cluster find_cluster(const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json"))
    return read_cluster(read_file(name_or_path, FileKind::Device), name_or_path);
  std::string name = name_or_path;
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const std::vector<Cluster>& clusters = known_clusters();
  const auto found = std::ranges::find(clusters, name, &Cluster::name);
  if (found != clusters.end()) return *found;
  std::vector<std::string_view> names;
  for (const Cluster& cluster : clusters) names.push_back(cluster.name);
  throw UsageError(unknown_name("cluster", name, names) + "; a cluster file's name ends in .json");
}

Device device_of(const Cluster& cluster) {
  Device device = find_device(cluster.device);
  device.interconnect = cluster.interconnect;
  return device;
}

const Interconnect* interconnect_of(const Device& device) {
  if (device.interconnect) return &*device.interconnect;
  const std::vector<Cluster>& clusters = known_clusters();
  const auto found = std::ranges::find(clusters, device.name, &Cluster::device);
  return found == clusters.end() ? nullptr : &found->interconnect;
}

}  // namespace tidemark
