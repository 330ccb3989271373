// How long one kernel takes alone on a device, from its shape.
#pragma once

#include <array>

#include "simulator/cost/device.h"
#include "simulator/cost/row_alignment.h"
#include "traces/trace.h"

namespace tidemark {

/// One run on an otherwise idle device.
struct Cost {
  Nanoseconds time{};  ///< max(compute, memory) over its kernels, gaps between them included
  int kernels = 0;     ///< what the host launches
  double flops = 0;
  double bytes = 0;         ///< moved from and to device memory
  double sm_share = 0;      ///< fraction of the SMs that it needs for that, averaged over its time
  double memory_share = 0;  ///< fraction of the memory bandwidth that it uses
  double link_share = 0;    ///< fraction of the links to other ranks that it uses
};

/// Of a step, and of one kernel: 2.3 years. Sums and multiples of some such times can be counted,
/// too.
inline constexpr Nanoseconds longest_time{std::int64_t{1} << 56};

/// InputError if it is longer than longest_time, or no number.
void require_countable(double ns);

/// InputError if it cannot be counted. `ns` must not be negative.
Nanoseconds rounded_ns(double ns);

/// One after the other.
Cost then(const Cost& a, const Cost& b);

/// Memory time knows the bytes moved, compute time the tile and wave quantization of matrix
/// products on the device's SMs. Counts are doubles, because their products exceed 64 bits.
class KernelCosts {
 public:
  KernelCosts(const Device& device, Precision precision);

  /// Of each of so many kernels its share of `bytes`, one thread block per 512 of `elements`.
  Cost elementwise(double bytes, double elements, int kernels) const;
  /// As elementwise, but with arithmetic that may take longer.
  Cost with_flops(double flops, DType dtype, double bytes, double elements, int kernels) const;
  /// m × k times k × n, `batch` times, of rows that begin at multiples of `alignment` elements.
  Cost product(double batch, double m, double n, double k, DType dtype, double bytes,
               int alignment = aligned_rows) const;
  /// The same in fused attention, which is slower.
  Cost attention(double batch, double m, double n, double k, DType dtype, double bytes) const;
  /// Sums over rows, one thread block per 32 columns: few blocks, which cannot use all bandwidth.
  Cost sum_by_columns(double bytes, double columns) const;
  /// Between host and device.
  Cost copy(Bytes bytes) const;

  /// That kernels reach.
  double bytes_per_ns() const { return bytes_per_ns_; }

 private:
  Cost in_tiles(double batch, double m, double n, double k, double flops_per_ns,
                double bytes) const;
  double flops_per_ns(DType dtype) const;
  double share_of_rows(DType dtype, int alignment) const;

  const Device& device_;
  Precision precision_;
  double bytes_per_ns_;
  std::array<double, math_unit_names.size()> flops_per_ns_{};  ///< by unit
};

}  // namespace tidemark
