// A schedule bound to memory: what each of its runs does, as kernel calls on addresses.
#pragma once

#include <span>
#include <vector>

#include "kernels/call.h"
#include "simulator/plan.h"
#include "simulator/schedule.h"

namespace tidemark::profiler {

/// Where the bytes of a replay are.
struct Addresses {
  std::byte* arena = nullptr;
  std::vector<std::int64_t> offsets;  ///< by buffer, as planned
  GroupRange* ranges = nullptr;       ///< of quantized tensors; quantizer_groups() of them
};

/// How many groups the schedule's quantizers have.
std::int64_t quantizer_groups(const Trace& trace, const Schedule& schedule);

class Binding {
 public:
  /// `plan` must be the one that `schedule` was lowered from. InputError names the op that no
  /// kernel can run, and why.
  Binding(const Trace& trace, const Plan& plan, const Schedule& schedule,
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
