// The values that are present while the joint graph is written: which version of each storage, how
// many reads of it are still to come after the forward pass, and what brings an absent one back.
#pragma once

#include "simulator/graph/named_instances.h"
#include "simulator/needs.h"
#include "simulator/plan.h"

namespace tidemark {

/// A tensor's codes, while it has some, and the ranges by which they are decoded.
struct Coded {
  InstanceId codes = no_instance;
  InstanceId ranges = no_instance;
};

class PresentValues {
 public:
  PresentValues(const Trace& trace, const Plan& plan, const Needs& needs, GraphBuilder& graph,
                NamedInstances& names);

  /// A micro-batch begins. `reads`, by storage: how often it is read after the forward pass.
  void expect(const std::vector<std::uint32_t>& reads);

  InstanceId of(TensorId storage) const { return value_[index(storage)]; }
  bool is_value_or_codes(TensorId storage) const {
    return is_present(storage) || coded_[index(storage)].codes != no_instance;
  }
  /// Adds to the operands: the value if it is present, else its codes and their ranges.
  void read_value_or_codes(TensorId storage, Operation& operation) const;
  bool is_on_host(TensorId storage) const { return on_host_[index(storage)] != no_instance; }
  /// The node that copied it to the host, or no_node.
  NodeId copied_out_by(TensorId storage) const {
    return copied_out_by_.empty() ? no_node : copied_out_by_[index(storage)];
  }
  bool is_present(TensorId storage) const { return of(storage) != no_instance; }
  std::uint32_t reads_to_come(TensorId storage) const { return reads_[index(storage)]; }

  /// A parameter or an input: there all the time.
  void place(TensorId storage);
  /// What a node writes of the storage: a new version, over the present one if there is one.
  InstanceId write(TensorId storage);
  /// Brings an absent value back from its codes or from the host.
  void ensure_present(TensorId storage, Lane lane);
  /// The last forward read is done: keeps, codes, copies out or lets go, as the plan says.
  void end_forward(TensorId storage, bool is_made_again);
  /// One read less to come. True if it was the last: somebody has to forget the storage.
  bool count_read(TensorId storage) { return --reads_[index(storage)] == 0; }
  /// No read to come any more. `at`: the op whose gradients come next or are under way; no_op in
  /// the forward.
  void forget(TensorId storage, OpId at);
  /// Lets go of the value alone.
  void drop(TensorId storage, OpId at);

  /// The ranges of a quantizer, which stay: of the storage's own, or of another one.
  void place_ranges(TensorId storage) { coded_[index(storage)].ranges = add_ranges(storage); }
  InstanceId add_ranges(TensorId storage);
  /// The node that writes the value notes its extremes, for it is quantized next.
  void note_extremes(TensorId storage, Operation& operation);
  void quantize(TensorId storage, Coded& coded);
  void dequantize(const Coded& coded, TensorId storage, Lane lane);

 private:
  InstanceId next_ranges(InstanceId& ranges);
  InstanceId add(TensorId storage);
  void copy_out(TensorId storage);
  void add_copy_by_group(TensorId storage);

  const Trace& trace_;
  const Plan& plan_;
  const Needs& needs_;
  GraphBuilder& graph_;
  NamedInstances& names_;
  std::vector<std::uint32_t> reads_;
  std::vector<InstanceId> value_, on_host_;
  std::vector<Coded> coded_;
  std::vector<NodeId> copied_out_by_;
  Operation operation_;
};

}  // namespace tidemark
