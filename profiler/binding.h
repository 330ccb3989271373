// A schedule bound to memory: what each of its runs does, as kernel calls on addresses. A run is a
// node of the joint graph, and the graph says what each operand is.
#pragma once

#include <span>
#include <vector>

#include "kernels/call.h"
#include "simulator/graph/joint_graph.h"
#include "simulator/strategies/strategy.h"

namespace tidemark::profiler {

/// Where the bytes of a replay are.
struct Addresses {
  std::byte* arena = nullptr;
  std::vector<std::int64_t> offsets;  ///< by buffer, as planned
};

class Binding {
 public:
  /// `graph` must be that of the step, and `schedule` where it was placed. InputError names the op
  /// that no kernel can run, and why.
  Binding(const PlannedStep& step, const JointGraph& graph, const Schedule& schedule,
          const Addresses& addresses);

  /// The calls of a step: one for most runs, one per parameter for the optimizer, none for what is
  /// no run.
  std::span<const Call> calls(std::size_t step) const {
    return std::span(calls_).subspan(first_[step], first_[step + 1] - first_[step]);
  }

 private:
  std::vector<Call> calls_;
  std::vector<std::uint32_t> first_;  ///< by step
};

}  // namespace tidemark::profiler
