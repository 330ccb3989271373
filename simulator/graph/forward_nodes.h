// Nodes that compute what an op makes: in the forward pass, and where it runs again.
#pragma once

#include "simulator/graph/saved_values.h"

namespace tidemark {

class ForwardNodes {
 public:
  /// All of them must outlive it.
  ForwardNodes(const Trace& trace, GraphBuilder& graph, SavedValues& values)
      : trace_(trace), graph_(graph), values_(values) {}

  void append(Task task, OpId op, Lane lane);

 private:
  const Trace& trace_;
  GraphBuilder& graph_;
  SavedValues& values_;
  Operation operation_;  ///< the node at hand
};

/// Memory that is there only while a node of the op runs, named after what the op makes.
void add_workspace(const Trace& trace, const Op& op, Bytes size, GraphBuilder& graph,
                   Operation& operation);

}  // namespace tidemark
