// How long a run of a trace takes alone on a device, and which share of it it holds meanwhile.
#pragma once

#include <vector>

#include "simulator/cost/alike_ops.h"
#include "simulator/cost/kernel_cost.h"
#include "simulator/cost/traffic.h"
#include "simulator/parallel/exchanges.h"
#include "simulator/schedule.h"

namespace tidemark {

/// Costs of runs of one trace on one device: which kernels a run consists of, and what they move.
/// What depends on nothing but the op is computed at once, and once for all ops that are alike.
class CostModel {
 public:
  /// All of them must outlive it. Paged states of the optimizer stay on the device, or move to it
  /// and back with each update.
  CostModel(const Trace& trace, const Needs& needs, const Device& device,
            bool moves_paged_states = false);
  CostModel(const Trace& trace, const Needs& needs, Device&& device,
            bool moves_paged_states = false) = delete;

  Cost of(const Schedule& schedule, const Run& run) const;
  /// A copy between host and device.
  Cost of_copy(Bytes bytes) const { return kernels_.copy(bytes); }
  const Device& device() const { return device_; }

 private:
  void tabulate();
  const Cost* tabulated(const Schedule& schedule, const Run& run) const;
  Cost compute(const Schedule& schedule, const Run& run) const;
  const Curve* curve_of(const Schedule& schedule, const Run& run) const;
  Cost update(const Schedule& schedule, const Run& run) const;
  double updated(const Buffer& buffer) const;
  Cost orthogonalization(TensorId matrix) const;
  Cost roofline(const Schedule& schedule, const Run& run) const;
  Cost forward(const Op& op) const;
  Cost backward(const Schedule& schedule, const Run& run) const;
  Cost gradient(const Op& op, const GradientTraffic& moved) const;
  Cost product_gradient(const Op& op, const GradientTraffic& moved) const;
  Cost attention_gradient(const Op& op, const GradientTraffic& moved) const;
  Cost beside_ring(const Op& op, Cost attention, double times) const;
  Cost opaque(const Op& op, const OpaquePass& pass, double bytes, double elements) const;
  Cost norm_gradient(const Op& op, const GradientTraffic& moved) const;
  Cost forward(const Schedule& schedule, const Run& run) const;
  bool moves_ranges(const Schedule& schedule, const Run& run) const;
  Cost conversion(const Schedule& schedule, const Run& run) const;
  Cost packing(const Schedule& schedule, const Run& run) const;
  Cost adding(const Schedule& schedule, const Run& run) const;
  Cost vocabulary_loss(const Op& op, double bytes) const;
  Cost fused_loss(const Tensor& logits, double bytes) const;
  Cost native_loss(const Tensor& softmax, double bytes) const;
  Cost native_loss_gradient(const Op& op, const GradientTraffic& moved) const;
  Cost collective(const Exchange& exchange) const;
  Cost exposed(const Run& run, Cost exchange) const;
  bool is_beside_products(const Run& run) const;

  const Trace& trace_;
  const Device& device_;
  const Framework& framework_;
  KernelCosts kernels_;
  Traffic traffic_;
  AlikeOps alike_;
  const std::vector<std::int64_t> updated_;  ///< by tensor; empty: all that is kept
  const std::vector<std::vector<OpId>>
      beside_;                   ///< by op: products that hide its exchange; or empty
  const bool buffers_are_wide_;  ///< of many gradients: fp32
  const bool moves_paged_states_;
  std::vector<Cost> forward_, backward_;  ///< by group of ops; of a backward that reads no codes
  std::vector<Cost> weights_;             ///< as backward_, of steps that split it
};

}  // namespace tidemark
