// Which nodes of a graph nothing tells apart.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace tidemark {

/// A label: equal for equal numbers in the same order.
std::uint64_t label_of(std::initializer_list<std::int64_t> numbers);

struct LabelledEdge {
  std::uint32_t from, to;
};

/// By node: the first node that is like it. Nodes are alike that have equal labels and neighbours
/// that are alike, of edges in each direction: colour refinement (Weisfeiler and Leman 1968,
/// arXiv 1907.09582 section 2). Of graphs that consist of equal parts, those of one part are like
/// those of the others. Time: edges times the longest way that two nodes' surroundings are alike.
std::vector<std::uint32_t> first_alike(std::vector<std::uint64_t> labels,
                                       std::span<const LabelledEdge> edges);

}  // namespace tidemark
