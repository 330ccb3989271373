// What becomes of each value between forward and backward, as the plan says, and what brings an
// absent one back: from the host or from codes. Recovery runs ops again instead: region_recovery.h.
#pragma once

#include <optional>

#include "simulator/derived.h"
#include "simulator/graph/coded_values.h"
#include "simulator/graph/offloaded_values.h"

namespace tidemark {

struct SavedValues {
  /// All of them must outlive it.
  SavedValues(const Trace& trace, const Plan& plan, const Derived& derived, GraphBuilder& graph,
              NamedInstances& names);

  bool is_value_or_codes(TensorId storage) const {
    return present.is_present(storage) || (coded && coded->has(storage));
  }
  /// Adds to the operands: the value if it is present, else its codes and their ranges.
  void read_value_or_codes(TensorId storage, Operation& operation) const;
  /// Brings an absent value back from its codes or from the host.
  void ensure_present(TensorId storage, Lane lane);
  /// The last forward read is done: keeps, codes, copies out or lets go.
  void end_forward(TensorId storage);
  /// No read to come any more. `at` as in PresentValues::drop().
  void forget(TensorId storage, OpId at);

  const Plan& plan;
  const Derived& derived;
  PresentValues present;
  std::optional<CodedValues> coded;          ///< of plans that quantize
  std::optional<OffloadedValues> offloaded;  ///< of plans that copy to the host
};

}  // namespace tidemark
