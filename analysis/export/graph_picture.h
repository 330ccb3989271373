// A joint graph, or a part of one, for graphviz and for programs.
#pragma once

#include <string>

#include "simulator/graph/graph_slice.h"

namespace tidemark::exports {

struct ShownGraph {
  const Trace& trace;
  const JointGraph& graph;
  GraphSlice slice;
  std::string strategy;     ///< as on the command line
  std::string part;         ///< what the slice is: "block blocks.6"
  std::string prefix = {};  ///< "blocks.6.": what names of tensors need not repeat
};

/// "44 of 655 nodes, and 9 beside them; 602 are left out".
std::string count_text(const ShownGraph& shown);

/// In graphviz's language. Each op of the trace is a row, in which its nodes stand beside each
/// other; lanes are clusters, colours those of tasks, and each arrow an instance with its bytes.
/// Comments at the head say what is shown and what is not.
std::string graph_dot(const ShownGraph& shown);

/// The same as data (docs/graph_format.md).
std::string graph_json(const ShownGraph& shown);

}  // namespace tidemark::exports
