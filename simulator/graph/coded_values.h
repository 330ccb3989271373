// Quantization, a part of differentiation: values that are kept in codes of a few bits between
// forward and backward. A plan that quantizes nothing has no such part.
#pragma once

#include "simulator/graph/present_values.h"
#include "simulator/graph/recovery.h"

namespace tidemark {

class CodedValues {
 public:
  /// All of them must outlive it.
  CodedValues(const Trace& trace, const Plan& plan, const Needs& needs, const Recovery& recovery,
              GraphBuilder& graph, PresentValues& values);

  /// A quantizer's ranges are there before the first step and after the last.
  void place_ranges();
  /// The node that computes these outputs notes the extremes of what is quantized next, or writes
  /// the codes in passing.
  void note_extremes(const Op& op, Operation& operation);
  /// As the public Mesa code does it: the op quantizes a copy of its own of each tensor that it
  /// saves.
  void quantize_operands(std::size_t op);

  bool has(TensorId storage) const { return coded_[index(storage)].codes != no_instance; }
  /// Adds the codes and their ranges to what is read.
  void read(TensorId storage, Operation& operation) const;
  /// A node of its own, unless the codes were written with the value.
  void quantize(TensorId storage) {
    if (!has(storage)) quantize(storage, coded_[index(storage)]);
  }
  void dequantize(TensorId storage, Lane lane) {
    dequantize(coded_[index(storage)], storage, lane);
  }
  void release(TensorId storage);

  /// The number of the op's first saved operand; the others follow.
  std::uint32_t first_use(std::size_t op) const { return first_use_.empty() ? 0 : first_use_[op]; }
  /// Does this operand have codes that are nobody else's?
  bool has_use(std::uint32_t use) const {
    return !coded_use_.empty() && coded_use_[use].codes != no_instance;
  }
  void dequantize_use(std::uint32_t use, TensorId storage, Lane lane) {
    dequantize(coded_use_[use], storage, lane);
  }
  void release_use(std::uint32_t use);

 private:
  /// Codes, while there are some, and the ranges by which they are decoded, if they are.
  struct Coded {
    InstanceId codes = no_instance;
    InstanceId ranges = no_instance;
  };

  static void read(const Coded& coded, Operation& operation);
  void number_uses();
  bool is_quantized(TensorId storage) const {
    return plan_.decisions[index(storage)].action == Action::Quantize;
  }
  bool is_coded_after_forward(TensorId storage) const;
  InstanceId add_ranges(TensorId storage);
  InstanceId add_codes(TensorId storage);
  InstanceId next_ranges(InstanceId& ranges);
  void quantize(TensorId storage, Coded& coded);
  void dequantize(const Coded& coded, TensorId storage, Lane lane);
  void add_copy_by_group(TensorId storage);

  const Trace& trace_;
  const Plan& plan_;
  const Needs& needs_;
  const Recovery& recovery_;
  GraphBuilder& graph_;
  PresentValues& values_;
  std::vector<Coded> coded_;              ///< by storage
  std::vector<std::uint32_t> first_use_;  ///< by op; empty where storages have the codes
  std::vector<Coded> coded_use_;          ///< by saved operand, then
  Operation operation_;                   ///< the node at hand
};

}  // namespace tidemark
