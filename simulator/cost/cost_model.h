// How long a run of a trace takes alone on a device, and which share of it it holds meanwhile.
#pragma once

#include <string>

#include "simulator/cost/kernel_cost.h"
#include "simulator/schedule.h"

namespace tidemark {

/// Costs of runs of one trace on one device: which kernels a run consists of, and what they move.
class CostModel {
 public:
  /// Both must outlive it.
  CostModel(const Trace& trace, const Device& device);
  CostModel(const Trace& trace, Device&& device) = delete;

  Cost of(const Schedule& schedule, const Run& run) const;
  /// Under which the device's curves have this kind of run: "backward linear float32".
  std::string curve_key(const Schedule& schedule, const Run& run) const;
  /// What a curve counts: FLOP of matrix products, else bytes moved.
  static double work_of(const Cost& cost) { return cost.flops > 0 ? cost.flops : cost.bytes; }
  /// A copy between host and device.
  Cost of_copy(Bytes bytes) const { return kernels_.copy(bytes); }

 private:
  Cost roofline(const Schedule& schedule, const Run& run) const;
  Cost forward(const Op& op) const;
  Cost backward(const Op& op, std::uint32_t gradients, double decoded) const;
  Cost norm_backward(const Op& op, std::uint32_t gradients, double decoded) const;
  Cost conversion(const Schedule& schedule, const Run& run) const;
  Cost forward_product(const Op& op) const;
  Cost backward_product(const Op& op, std::uint32_t gradients) const;
  double operand_bytes(const Op& op) const;

  const Trace& trace_;
  const Device& device_;
  const Framework& framework_;
  KernelCosts kernels_;
  std::vector<std::uint32_t> gradients_;  ///< per op: inputs that get a gradient
};

}  // namespace tidemark
