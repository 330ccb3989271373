// Products take the longer of arithmetic in waves of tiles and traffic; other kernels stream.
#include "simulator/cost/kernel_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"

namespace tidemark {
namespace {

// A streaming kernel's block handles 512 elements: 128 threads of 4, as PyTorch's vectorized
// elementwise kernels (ATen/native/cuda/thread_constants.h). An SM holds 16 such blocks (2048
// threads; 1024 on Turing and 1536 on Ampere's and Ada's consumer chips, where waves are more).
constexpr double elements_per_block = 512;
constexpr double blocks_per_sm = 16;

// Tiles of output that a matrix-product kernel computes per block, one block per SM (cuBLAS and
// CUTLASS names of the usual kernels: 256x128, 128x128, 128x64, 64x64, 32x32).
struct Tile {
  double m, n;
  double per_m = 1 / m, per_n = 1 / n;  // exact: they are powers of two
};
constexpr std::array tiles = {Tile{256, 128}, Tile{128, 256}, Tile{128, 128}, Tile{128, 64},
                              Tile{64, 128},  Tile{64, 64},   Tile{32, 32}};

// PyTorch before 2.0 reduces dγ and dβ of a layer norm with one block per 32 columns of 32 × 16
// threads, each with two rows of two tensors in flight (ATen/native/cuda/layer_norm_kernel.cu,
// kColwiseReduceTileSize). A block can move no more than its bytes in flight per memory latency:
// 290 cycles on Ampere (arXiv 2208.11174, table IV).
constexpr double columns_per_block = 32;
constexpr double bytes_in_flight_per_block = 32 * 16 * 2 * 2 * 4;
constexpr double memory_latency_cycles = 290;

// What an SM takes per cycle from beyond its own cache: the second-level cache's measured rate, by
// SMs and clock. Memory cannot come faster, so a kernel that only streams needs so many SMs. Where
// no measurement is known the least, with which it needs most.
struct SmRate {
  std::string_view capability;
  double bytes_per_cycle;
};
// RRZE-HPC/gpu-benches, gpu-l2-cache and (A40) gpu-l2-stream: A100 5.43 TB/s by 108 SMs at 1.41
// GHz, A40 3.2 by 84 at 1.74, L40 5.2 by 142 at 2.49, H100 PCIe 6.95 by 114 at 1.755.
constexpr std::array sm_rates = {SmRate{"8.0", 35.7}, SmRate{"8.6", 21.9}, SmRate{"8.9", 14.7},
                                 SmRate{"9.0", 34.7}};
constexpr double least_sm_rate = 14.7;

// The share of the SMs that saturates the memory. A kernel that holds a few cores of a CPU needs
// them all.
double streaming_demand(const Device& device, double bytes_per_ns) {
  if (device.product_share) return 1;
  const auto* const known =
      std::ranges::find(sm_rates, device.compute_capability, &SmRate::capability);
  const double per_cycle = known == sm_rates.end() ? least_sm_rate : known->bytes_per_cycle;
  return std::min(1.0, bytes_per_ns / (device.sm_count * per_cycle * device.clock_hz / 1e9));
}

// std::ceil for block counts, without its call for special values.
double ceiling(double x) {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(x));
  return whole < x ? whole + 1 : whole;
}

// Share of the SMs at work on average: full waves have all, the last one what is left.
double wave_share(double blocks, double slots) {
  if (blocks <= 0) return 0;
  return blocks / (ceiling(blocks / slots) * slots);
}

MathUnit unit_for(DType dtype, Precision precision) {
  switch (dtype) {
    case DType::Float16:
      return MathUnit::Fp16;
    case DType::BFloat16:
      return MathUnit::Bf16;
    case DType::Float32:
    case DType::Float64:
    case DType::Int64:
    case DType::UInt8:
    case DType::Bool:
    case DType::Float8:
    case DType::Float4x2:
      break;
  }
  return precision == Precision::Tf32 ? MathUnit::Tf32 : MathUnit::Fp32;
}

}  // namespace

void require_countable(double ns) {
  if (ns <= static_cast<double>(longest_time.count())) return;
  throw InputError(
      fmt::format("the step would take {:.2g} s; time is counted up to 2^56 ns, which is two years "
                  "(use a smaller "
                  "batch, sequence, image or model)",
                  ns / 1e9));
}

Nanoseconds rounded_ns(double ns) {
  require_countable(ns);
  return Nanoseconds{static_cast<std::int64_t>(ns + 0.5)};
}

Cost then(const Cost& a, const Cost& b) {
  const double ta = static_cast<double>(a.time.count()), tb = static_cast<double>(b.time.count());
  const double total = std::max(ta + tb, 1.0);
  return {a.time + b.time,
          a.kernels + b.kernels,
          a.flops + b.flops,
          a.bytes + b.bytes,
          (a.sm_share * ta + b.sm_share * tb) / total,
          (a.memory_share * ta + b.memory_share * tb) / total};
}

KernelCosts::KernelCosts(const Device& device, Precision precision)
    : device_(device), precision_(precision), bytes_per_ns_(stream_bytes_per_second(device) / 1e9) {
  for (std::size_t unit = 0; unit < flops_per_ns_.size(); ++unit)
    flops_per_ns_[unit] = gemm_flops_per_second(device, static_cast<MathUnit>(unit)) / 1e9;
}

double KernelCosts::flops_per_ns(DType dtype) const {
  if (dtype == DType::Float8 && device_.fp8_flops_per_second)
    return *device_.fp8_flops_per_second * device_.fp8_gemm_efficiency.value_or(1) / 1e9;
  if (dtype == DType::Float4x2 && device_.fp4_flops_per_second)
    return *device_.fp4_flops_per_second * device_.fp4_gemm_efficiency.value_or(1) / 1e9;
  return flops_per_ns_[static_cast<std::size_t>(unit_for(dtype, precision_))];
}

Cost KernelCosts::elementwise(double bytes, double elements, int kernels) const {
  if (kernels == 0) return {};
  const double memory = bytes / bytes_per_ns_;
  const double gap = static_cast<double>(device_.kernel_gap.count()) * kernels;
  const double blocks = ceiling(elements / elements_per_block);
  const double demand = std::min(wave_share(blocks, device_.sm_count * blocks_per_sm),
                                 streaming_demand(device_, bytes_per_ns_));
  return {rounded_ns(memory + gap),
          kernels,
          0,
          bytes,
          demand * memory / std::max(memory + gap, 1.0),
          memory / std::max(memory + gap, 1.0)};
}

Cost KernelCosts::with_flops(double flops, DType dtype, double bytes, double elements,
                             int kernels) const {
  Cost cost = elementwise(bytes, elements, kernels);
  if (kernels == 0 || flops <= 0) return cost;
  const double compute = flops / flops_per_ns(dtype);
  const double memory = bytes / bytes_per_ns_;
  cost.flops = flops;
  const double gap = static_cast<double>(device_.kernel_gap.count()) * kernels;
  if (compute <= memory) {
    cost.sm_share = std::max(cost.sm_share, compute / std::max(memory + gap, 1.0));
    return cost;
  }
  const double total = compute + gap;
  cost.time = rounded_ns(total);
  cost.sm_share = compute / std::max(total, 1.0);
  cost.memory_share = memory / std::max(total, 1.0);
  return cost;
}

// The best tile is the one whose waves could do the fewest multiplications.
Cost KernelCosts::in_tiles(double batch, double m, double n, double k, double flops_per_ns,
                           double bytes) const {
  const double sms = device_.sm_count;
  double fewest = 0, used = 0;
  for (const Tile& tile : tiles) {
    const double blocks = batch * ceiling(m * tile.per_m) * ceiling(n * tile.per_n);
    const double multiplications = ceiling(blocks / sms) * sms * tile.m * tile.n * k;
    if (used > 0 && multiplications >= fewest) continue;
    fewest = multiplications, used = blocks;
  }
  const double share = wave_share(used, sms);
  const double compute = fewest * 2 / flops_per_ns;
  const double memory = bytes / bytes_per_ns_;
  const double total = std::max(compute, memory) + static_cast<double>(device_.kernel_gap.count());
  // While memory is what it waits for, fewer SMs would do.
  const double needed =
      std::max(share * compute, std::min(share, streaming_demand(device_, bytes_per_ns_)) * memory);
  return {rounded_ns(total),
          1,
          2 * batch * m * n * k,
          bytes,
          needed / std::max(total, 1.0),
          memory / std::max(total, 1.0)};
}

Cost KernelCosts::product(double batch, double m, double n, double k, DType dtype, double bytes,
                          int alignment) const {
  const double rate = flops_per_ns(dtype) * share_of_rows(dtype, alignment);
  return in_tiles(batch, m, n, k, rate, bytes);
}

double KernelCosts::share_of_rows(DType dtype, int alignment) const {
  if (size_of(dtype) != 2 || alignment == aligned_rows) return 1;
  return (alignment > 1 ? device_.even_rows_gemm_share : device_.odd_rows_gemm_share).value_or(1);
}

Cost KernelCosts::attention(double batch, double m, double n, double k, DType dtype,
                            double bytes) const {
  const double rate = attention_flops_per_second(device_, unit_for(dtype, precision_)) / 1e9;
  return in_tiles(batch, m, n, k, rate, bytes);
}

Cost KernelCosts::sum_by_columns(double bytes, double columns) const {
  const double sms = device_.sm_count;
  const double blocks = std::min(sms, ceiling(columns / columns_per_block));
  const double block_bytes_per_ns =
      bytes_in_flight_per_block / (memory_latency_cycles / (device_.clock_hz / 1e9));
  const double rate = std::min(bytes_per_ns_, blocks * block_bytes_per_ns);
  const double time = bytes / rate;
  const double total = time + static_cast<double>(device_.kernel_gap.count());
  return {rounded_ns(total),
          1,
          0,
          bytes,
          blocks / sms * time / total,
          rate / bytes_per_ns_ * time / total};
}

Cost KernelCosts::copy(Bytes bytes) const {
  const double time = static_cast<double>(bytes.count) / device_.host_link_bytes_per_second * 1e9;
  return {rounded_ns(time), 1, 0, static_cast<double>(bytes.count), 0, 0};
}

}  // namespace tidemark
