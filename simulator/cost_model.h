// How long a run takes alone on a device, and which share of the device it holds meanwhile.
#pragma once

#include <string>

#include "simulator/device.h"
#include "simulator/schedule.h"
#include "traces/trace.h"

namespace tidemark {

/// One run on an otherwise idle device.
struct Cost {
  Nanoseconds time{};  ///< max(compute, memory) over its kernels, gaps between them included
  int kernels = 0;     ///< what the host launches
  double flops = 0;
  double bytes = 0;         ///< moved from and to device memory
  double sm_share = 0;      ///< fraction of the block slots that it holds, averaged over its time
  double memory_share = 0;  ///< fraction of the memory bandwidth that it uses
};

/// Costs of runs of one trace on one device. Compute time knows the tile and wave quantization of
/// matrix products on the device's SMs; memory time knows the bytes moved.
class CostModel {
 public:
  CostModel(const Trace& trace, const Device& device);

  Cost of(const Schedule& schedule, const Run& run) const;
  /// Under which the device's curves have this kind of run: "backward linear float32".
  std::string curve_key(const Schedule& schedule, const Run& run) const;
  /// What a curve counts: FLOP of matrix products, else bytes moved.
  static double work_of(const Cost& cost) { return cost.flops > 0 ? cost.flops : cost.bytes; }
  /// A copy between host and device.
  Cost of_copy(Bytes bytes) const;

 private:
  Cost roofline(const Schedule& schedule, const Run& run) const;
  Cost forward(const Op& op) const;
  Cost backward(const Op& op, std::uint32_t gradients, double decoded) const;
  Cost elementwise(double bytes, double elements, int kernels) const;
  Cost norm_backward(const Op& op, std::uint32_t gradients, double decoded) const;
  Cost conversion(const Schedule& schedule, const Run& run) const;
  Cost product(double batch, double m, double n, double k, DType dtype, double bytes) const;
  Cost forward_product(const Op& op) const;
  Cost backward_product(const Op& op, std::uint32_t gradients) const;
  double operand_bytes(const Op& op) const;

  const Trace& trace_;
  const Device& device_;
  Precision precision_;
  const Framework& framework_;
  double bytes_per_ns_;
  std::vector<std::uint32_t> gradients_;  ///< per op: inputs that get a gradient
};

}  // namespace tidemark
