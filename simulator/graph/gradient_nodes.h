// Nodes that compute gradients of an op's inputs from that of its output, and sum them up.
#pragma once

#include "simulator/graph/present_gradients.h"
#include "simulator/graph/saved_values.h"

namespace tidemark {

class GradientNodes {
 public:
  /// All of them must outlive it.
  GradientNodes(const Trace& trace, const Plan& plan, const Needs& needs, GraphBuilder& graph,
                SavedValues& values, PresentGradients& gradients)
      : trace_(trace),
        plan_(plan),
        needs_(needs),
        graph_(graph),
        values_(values),
        gradients_(gradients) {}

  /// What the op's backward needs is brought back; what it was the last to need is released.
  void append(OpId op, Lane lane);

 private:
  struct Contribution {
    std::uint8_t input;
    TensorId tensor;
    InstanceId gradient;
  };

  Operands decoded(std::size_t op) const;
  void bring_saved(std::size_t op, Lane lane);
  InstanceId add_gradient(const Op& op, std::uint8_t k);
  void add_input_gradients(std::size_t op, InstanceId incoming);
  void append_backward(std::size_t op, InstanceId incoming, Lane lane);
  void add_inner_tensors(std::size_t op);
  void add_temporary(Bytes size);
  Bytes scattered_beside(const Op& op) const;
  void add_batched_weight_gradient(std::size_t op);
  void release(std::size_t op);

  const Trace& trace_;
  const Plan& plan_;
  const Needs& needs_;
  GraphBuilder& graph_;
  SavedValues& values_;
  PresentGradients& gradients_;
  std::vector<Contribution> contributions_;  ///< of the op at hand
  Operation operation_;                      ///< the node at hand
};

}  // namespace tidemark
