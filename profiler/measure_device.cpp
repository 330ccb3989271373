// Times copies, products, small kernels and the host link on a backend, alone and side by side.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "kernels/number_formats.h"
#include "profiler/calibrate.h"

namespace tidemark::profiler {
namespace {

constexpr int repetitions = 5;

/// Large enough to leave every cache behind, to hide the start of a kernel, and to fill the device.
struct Sizes {
  std::int64_t copy, product_side, attention_batch;
};
Sizes sizes_for(const Backend& backend) {
  // A second-level cache of 60 MB (H200) would hold half of two arrays of 64 MiB; and of a product
  // of 1024 a device's processors get half a tile each.
  if (backend.ground() == Ground::Device) return {std::int64_t{512} << 20, 4096, 64};
  return {std::int64_t{64} << 20, 1024, 1};
}

/// A call on memory of its own.
struct Piece {
  std::unique_ptr<Memory> memory;
  Call call;
};

Array part(std::byte*& at, DType dtype, const Shape& shape) {
  const Array array = array_at(at, dtype, dense(shape));
  at += round_up(numel(shape) * size_of(dtype), 512);
  return array;
}

Piece copy_of(Backend& backend, std::int64_t bytes) {
  Piece piece{backend.allocate({2 * bytes + 1024}, MemoryKind::Device), {}};
  std::byte* at = piece.memory->data();
  const Shape shape = {bytes / 4};
  piece.call.pass = Pass::Accumulate;
  piece.call.inputs = {part(at, DType::Float32, shape)};
  piece.call.outputs = {part(at, DType::Float32, shape)};
  return piece;
}

template <typename T>
void fill(Backend& backend, const Array& array) {
  std::vector<T> numbers(static_cast<std::size_t>(numel(array.shape)));
  std::uint32_t state = 1;
  for (T& number : numbers) {
    state = state * 1664525u + 1013904223u;  // Press et al., Numerical Recipes, "quick and dirty"
    number = from_float<T>(static_cast<float>(state >> 8) * 0x1p-23f - 1);
  }
  backend.upload(array.data, numbers.data(), {numel(array.shape) * size_of(array.dtype)});
}

/// Numbers in [−1, 1): a device multiplies zeros faster, because they take less power.
void fill_with_numbers(Backend& backend, const Array& array) {
  switch (array.dtype) {
    case DType::BFloat16:
      return fill<BFloat16>(backend, array);
    case DType::Float16:
      return fill<Float16>(backend, array);
    case DType::Float32:
      return fill<float>(backend, array);
    case DType::Float64:
    case DType::Int64:
    case DType::UInt8:
    case DType::Bool:
    case DType::Float8:
    case DType::Float4x2:
      break;
  }
  CHECK(false);  // the others are not measured
}

// [side, row] × [row, row].
Piece product_of(Backend& backend, DType dtype, std::int64_t side, std::int64_t row) {
  const std::int64_t bytes = round_up(side * side * size_of(dtype), 512);
  Piece piece{backend.allocate({3 * bytes}, MemoryKind::Device), {}};
  std::byte* at = piece.memory->data();
  piece.call.kind = OpKind::Linear;
  piece.call.inputs = {part(at, dtype, {side, row}), part(at, dtype, {row, row})};
  piece.call.outputs = {part(at, dtype, {side, row})};
  for (const Array& factor : piece.call.inputs) fill_with_numbers(backend, factor);
  return piece;
}

/// Fused attention of bf16, forward and backward, on the same memory.
struct AttentionPieces {
  std::unique_ptr<Memory> memory;
  Call forward, backward;
  double flops = 0;  ///< of both: two products and five (arXiv 2205.14135, section B.4)
};

AttentionPieces attention_of(Backend& backend, std::int64_t batch) {
  constexpr std::int64_t heads = 8, tokens = 512, width = 64;
  const Shape head = {batch, heads, tokens, width}, row = {batch, heads, tokens};
  constexpr std::int64_t operands = 8;  // q, k, v, y and their gradients
  const std::int64_t bytes = numel(head) * size_of(DType::BFloat16);
  AttentionPieces pieces{
      backend.allocate({operands * (bytes + 512) + numel(row) * size_of(DType::Float32)},
                       MemoryKind::Device),
      {},
      {},
      7 * 2.0 * static_cast<double>(numel(head)) * tokens};
  std::byte* at = pieces.memory->data();
  const auto next = [&] { return part(at, DType::BFloat16, head); };
  pieces.forward.kind = pieces.backward.kind = OpKind::FlashAttention;
  pieces.backward.pass = Pass::Backward;
  pieces.forward.inputs = {next(), next(), next()};
  pieces.forward.outputs = {next(), part(at, DType::Float32, row)};
  pieces.backward.inputs = pieces.forward.inputs;
  pieces.backward.outputs = pieces.forward.outputs;
  pieces.backward.d_outputs = {next()};
  pieces.backward.d_inputs = {next(), next(), next()};
  for (const Array& input : pieces.forward.inputs) fill_with_numbers(backend, input);
  fill_with_numbers(backend, pieces.backward.d_outputs[0]);
  return pieces;
}

/// The shortest of several times that each of the calls takes on a stream of its own, all at once.
double time_of(Backend& backend, const std::vector<const Call*>& calls) {
  double best = 0;
  for (int i = 0; i <= repetitions; ++i) {
    backend.begin_step(calls.size(), 0, {});
    // Each stream repeats its call: the middle ones run beside each other for sure.
    for (std::uint32_t repeat = 0; repeat < 3; ++repeat)
      for (std::size_t stream = 0; stream < calls.size(); ++stream)
        backend.run(repeat, stream, *calls[stream]);
    double sum = 0;
    for (const Ran& ran : backend.finish())
      if (ran.step == 1) sum += static_cast<double>((ran.end - ran.begin).count());
    const double time = sum / static_cast<double>(calls.size());
    if (i > 0 && (best == 0 || time < best)) best = time;  // the first one touches the memory
  }
  return std::max(best, 1.0);
}

/// What one kernel holds of the device alone, given its time alone and beside its like: 1 if they
/// take turns, one half if they do not notice each other.
double share_of(double alone, double beside) { return std::clamp(beside / alone / 2, 0.5, 1.0); }

void note(Device& device, std::string_view key, std::string text) {
  device.sources.insert_or_assign(std::string(key),
                                  FigureSource{FigureKind::Measured, std::move(text)});
}

void assume(Device& device, std::string_view key, std::string text) {
  device.sources.insert_or_assign(std::string(key),
                                  FigureSource{FigureKind::Assumed, std::move(text)});
}

void measure_streams(Backend& backend, Device& device) {
  const std::int64_t stream_bytes = sizes_for(backend).copy;
  const Piece a = copy_of(backend, stream_bytes), b = copy_of(backend, stream_bytes);
  const double alone = time_of(backend, {&a.call}), beside = time_of(backend, {&a.call, &b.call});
  device.bytes_per_second = 2 * static_cast<double>(stream_bytes) / alone * 1e9;
  device.memory_efficiency = 1;
  device.stream_share = share_of(alone, beside);
  const std::string how = fmt::format("copy of {} MiB on one stream", stream_bytes >> 20);
  note(device, "bytes_per_second", how);
  note(device, "memory_efficiency", "the bandwidth is that of the copy");
  note(device, "stream_share", "two such copies on two streams");
}

void measure_products(Backend& backend, Device& device) {
  constexpr std::array dtypes = {DType::Float32, DType::Float32, DType::Float16, DType::BFloat16};
  const std::int64_t product_side = sizes_for(backend).product_side;
  const double flops = 2 * std::pow(static_cast<double>(product_side), 3);
  for (const MathUnit unit : {MathUnit::Fp32, MathUnit::Fp16, MathUnit::Bf16}) {
    const auto u = static_cast<std::size_t>(unit);
    const Piece piece = product_of(backend, dtypes[u], product_side, product_side);
    const double time = time_of(backend, {&piece.call});
    device.flops_per_second[u] = flops / time * 1e9;
    device.gemm_efficiency[u] = 1;
    const std::string key(math_unit_names[u]);
    note(device, key + "_flops_per_second",
         fmt::format("product of two {0} x {0} matrices", product_side));
    note(device, key + "_gemm_efficiency", "the rate is that of the product");
  }
  note(device, "tf32_flops_per_second", "not a precision of this backend");
  const Piece a = product_of(backend, DType::Float32, product_side, product_side);
  const Piece b = product_of(backend, DType::Float32, product_side, product_side);
  device.product_share =
      share_of(time_of(backend, {&a.call}), time_of(backend, {&a.call, &b.call}));
  note(device, "product_share", "two such products on two streams");
}

// Of bf16, as the rate beside which it stands. A processor's cores take any rows alike.
void measure_rows(Backend& backend, Device& device) {
  if (backend.ground() != Ground::Device) return;
  const std::int64_t side = sizes_for(backend).product_side;
  const auto share_of_rows = [&](std::int64_t row) {
    const Piece piece = product_of(backend, DType::BFloat16, side, row);
    const auto flops = 2 * static_cast<double>(side * row * row);
    const double rate = flops / time_of(backend, {&piece.call}) * 1e9;
    return std::min(1.0, rate / device.flops_per_second[static_cast<std::size_t>(MathUnit::Bf16)]);
  };
  device.even_rows_gemm_share = share_of_rows(side - 2);
  device.odd_rows_gemm_share = share_of_rows(side - 1);
  note(device, "even_rows_gemm_share",
       fmt::format("product of rows of {} elements, bf16", side - 2));
  note(device, "odd_rows_gemm_share",
       fmt::format("product of rows of {} elements, bf16", side - 1));
}

void measure_attention(Backend& backend, Device& device) {
  const AttentionPieces pieces = attention_of(backend, sizes_for(backend).attention_batch);
  const double forward = time_of(backend, {&pieces.forward});  // first: the backward reads it
  const double time = forward + time_of(backend, {&pieces.backward});
  const double rate = device.flops_per_second[static_cast<std::size_t>(MathUnit::Fp16)];
  device.attention_efficiency = pieces.flops / time * 1e9 / rate;
  note(
      device, "attention_efficiency",
      "forward and backward of 512 tokens, heads of 64 channels, bf16; of the fp16 product's rate");
}

// How long the host takes to hand over one call, the device being busy with others.
Nanoseconds issue_time(Backend& backend, const Call& call) {
  constexpr std::uint32_t calls = 1000;
  backend.begin_step(1, 0, {});
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < calls; ++i) backend.run(i, 0, call);
  const auto time = std::chrono::steady_clock::now() - begin;
  backend.finish();
  return std::chrono::duration_cast<Nanoseconds>(time) / calls;
}

/// Of calls one after the other on one stream, without a clock between them; nothing from backends
/// whose clocks are free.
std::optional<Nanoseconds> whole_time(Backend& backend, const std::vector<const Call*>& calls) {
  backend.time_by(Timing::WholeStep);
  backend.begin_step(1, 0, {});
  for (std::uint32_t i = 0; i < calls.size(); ++i) backend.run(i, 0, *calls[i]);
  backend.finish();
  const std::optional<Nanoseconds> time = backend.step_time();
  backend.time_by(Timing::EachRun);
  return time;
}

/// Of one small kernel behind others. Large ones go first: while they run the host gets ahead.
std::optional<Nanoseconds> gap_behind_others(Backend& backend, const Call& tiny) {
  constexpr int large_ones = 8, tiny_ones = 500;  // half of what a stream's queue holds
  const Piece large = copy_of(backend, sizes_for(backend).copy);
  std::vector<const Call*> calls(large_ones, &large.call);
  const std::optional<Nanoseconds> first = whole_time(backend, calls);
  if (!first) return {};
  const Nanoseconds before = *whole_time(backend, calls);
  calls.insert(calls.end(), tiny_ones, &tiny);
  return std::max(Nanoseconds{1}, (*whole_time(backend, calls) - before) / tiny_ones);
}

void measure_gaps(Backend& backend, Device& device) {
  const Piece tiny = copy_of(backend, 4096);
  const std::optional<Nanoseconds> behind = gap_behind_others(backend, tiny.call);
  device.kernel_gap =
      behind.value_or(Nanoseconds{static_cast<std::int64_t>(time_of(backend, {&tiny.call}))});
  device.host_launch = issue_time(backend, tiny.call);
  note(device, "kernel_gap",
       behind ? "a kernel that copies 4 KiB, mean over 500 behind large ones"
              : "a kernel that copies 4 KiB");
  note(device, "host_launch", "mean over 1000 such kernels, issued one after the other");
}

/// A device's link to pinned memory of the host, towards the host.
void measure_host_link(Backend& backend, Device& device) {
  if (backend.ground() != Ground::Device) {
    device.host_link_bytes_per_second = device.bytes_per_second;
    note(device, "host_link_bytes_per_second", "host memory is the device's: the copy's bandwidth");
    return;
  }
  const Bytes size{std::int64_t{256} << 20};
  const auto on_device = backend.allocate(size, MemoryKind::Device);
  const auto on_host = backend.allocate(size, MemoryKind::Host);
  double best = 0;
  for (int i = 0; i < repetitions; ++i) {
    backend.begin_step(1, 0, {});
    backend.copy(0, 0, on_host->data(), on_device->data(), size);
    const Ran ran = backend.finish().front();
    const auto time =
        static_cast<double>(std::max((ran.end - ran.begin).count(), Nanoseconds::rep{1}));
    best = std::max(best, static_cast<double>(size.count) / time * 1e9);
  }
  device.host_link_bytes_per_second = best;
  note(device, "host_link_bytes_per_second", "copy of 256 MiB to pinned memory of the host");
}

}  // namespace

Nanoseconds clock_cost(Backend& backend) {
  // Long enough for the host to stay ahead of it, as of most kernels of a step.
  const Piece copy = copy_of(backend, sizes_for(backend).copy / 8);
  const std::vector<const Call*> calls(100, &copy.call);
  if (!whole_time(backend, calls)) return {};  // and touches the memory
  const Nanoseconds together = *whole_time(backend, calls);
  backend.begin_step(1, 0, {});
  for (std::uint32_t i = 0; i < calls.size(); ++i) backend.run(i, 0, *calls[i]);
  const std::vector<Ran> ran = backend.finish();
  const Nanoseconds apart = ran.back().end - ran.front().begin;
  return std::max(Nanoseconds{}, (apart - together) / std::ssize(calls));
}

Device measure_device(Backend& backend) {
  Device device;
  device.name = backend.name();
  device.title = backend.description();
  const std::optional<DeviceTraits> traits = backend.traits();
  device.compute_capability = traits ? traits->compute_capability : "none";
  device.capacity = std::max(backend.capacity(), Bytes{1 << 20});
  note(device, "capacity", "as the system reports it");
  if (traits) {
    device.l2_cache = traits->l2_cache;
    device.sm_count = traits->processors;
    device.clock_hz = traits->clock_hz;
    for (const char* key : {"l2_cache", "sm_count", "clock_hz"})
      note(device, key, "as the driver reports it");
  } else {
    device.l2_cache = Bytes{1};
    assume(device, "l2_cache", "no prediction reads it");
    device.sm_count = 1;
    assume(device, "sm_count", "the rates are those of one kernel; the shares say what it holds");
    device.clock_hz = 1e9;
    assume(device, "clock_hz", "no prediction for this backend reads it");
  }
  measure_gaps(backend, device);
  measure_streams(backend, device);
  measure_products(backend, device);
  measure_rows(backend, device);
  measure_attention(backend, device);
  measure_host_link(backend, device);
  return device;
}

}  // namespace tidemark::profiler
