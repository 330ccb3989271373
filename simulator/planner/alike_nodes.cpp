// Each node's label becomes a hash of itself and of its neighbours' labels, until that tells no
// more nodes apart.
#include "simulator/planner/alike_nodes.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tidemark {
namespace {

// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): every bit changes half of the others.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::size_t count_of_different(std::vector<std::uint64_t> labels) {
  std::ranges::sort(labels);
  return static_cast<std::size_t>(std::unique(labels.begin(), labels.end()) - labels.begin());
}

}  // namespace

std::uint64_t label_of(std::initializer_list<std::int64_t> numbers) {
  std::uint64_t label = 0;
  for (const std::int64_t number : numbers)
    label = mixed(label + static_cast<std::uint64_t>(number));
  return label;
}

std::vector<std::uint32_t> first_alike(std::vector<std::uint64_t> labels,
                                       std::span<const LabelledEdge> edges) {
  std::size_t before = 0;
  for (std::size_t now = count_of_different(labels); now > before;) {
    // A sum does not depend on the order of neighbours.
    std::vector<std::uint64_t> next;
    for (const std::uint64_t label : labels) next.push_back(mixed(label));
    for (const LabelledEdge& edge : edges) {
      next[edge.to] += mixed(mixed(labels[edge.from]) + 1);
      next[edge.from] += mixed(mixed(labels[edge.to]) + 2);
    }
    labels = std::move(next);
    before = std::exchange(now, count_of_different(labels));
  }
  std::unordered_map<std::uint64_t, std::uint32_t> first;
  std::vector<std::uint32_t> alike;
  for (std::uint32_t node = 0; node < labels.size(); ++node)
    alike.push_back(first.try_emplace(labels[node], node).first->second);
  return alike;
}

}  // namespace tidemark
