// Kernels on a GPU: bytes per second and their share of the device's own copy, or FLOP/s of matrix
// products. Each is first run on a small batch and compared with the CPU, then timed on operands of
// half a GiB and more, ten times a second-level cache, with no clock between its launches. Without
// a GPU there are no such benchmarks.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/cpu/workspace.h"
#include "traces/trace.h"

namespace tidemark {
namespace {

// Of ViT-B; the classes are GPT-2's tokens.
constexpr std::int64_t tokens = 197, width = 768, hidden = 3072, heads = 12, classes = 50257;
constexpr std::int64_t small_batch = 2;
constexpr double large_bytes = double{512 << 20};

Backend* gpu() {
  static const std::unique_ptr<Backend> backend = []() -> std::unique_ptr<Backend> {
    try {
      return load_cuda_backend();
    } catch (const InputError&) {
      return nullptr;
    }
  }();
  return backend.get();
}

/// Where the operands of a case are.
enum class Side : std::uint8_t { Both, Device };

/// Normal numbers times a factor, in blocks of a MiB that repeat: a few thousand different ones are
/// enough. On the device alone no host memory of its size is taken.
struct Operand {
  Operand(const Shape& shape, DType dtype, unsigned seed, float mean, Side side)
      : bytes(numel(shape) * size_of(dtype)),
        device(gpu()->allocate({bytes}, MemoryKind::Device)),
        array(array_at(nullptr, dtype, dense(shape))) {
    if (side == Side::Both) {
      host.resize(static_cast<std::size_t>(bytes));
      array.data = host.data();
    }
    if (seed != 0) fill(seed, mean);
  }

  void fill(unsigned seed, float mean) {
    const std::int64_t block = std::min(bytes, std::int64_t{1} << 20);
    const std::int64_t count = block / size_of(array.dtype);
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(mean);
    std::vector<float> numbers(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = i < 4096 ? normal(random) : numbers[i % 4096];
    std::vector<std::byte> made(static_cast<std::size_t>(block));
    Call cast;
    cast.kind = OpKind::Cast;
    cast.inputs = {
        array_at(reinterpret_cast<std::byte*>(numbers.data()), DType::Float32, dense({count}))};
    cast.outputs = {array_at(made.data(), array.dtype, dense({count}))};
    cpu::Workspace workspace;
    cpu::run(cast, workspace);
    for (std::int64_t at = 0; at < bytes; at += block) {
      const std::int64_t part = std::min(block, bytes - at);
      gpu()->upload(device->data() + at, made.data(), {part});
      if (!host.empty()) std::copy_n(made.data(), part, host.data() + at);
    }
  }
  void fill_with(const std::vector<GroupRange>& ranges) {
    gpu()->upload(device->data(), ranges.data(), {bytes});
    if (!host.empty()) std::memcpy(host.data(), ranges.data(), host.size());
  }
  Array on_device() const {
    Array moved = array;
    moved.data = device->data();
    return moved;
  }

  std::int64_t bytes;
  std::vector<std::byte> host;  ///< empty on the device alone
  std::unique_ptr<Memory> device;
  Array array;
};

double value(const Array& array, std::int64_t i) {
  const std::byte* at = array.data + i * size_of(array.dtype);
  float x = 0;
  Call cast;
  cast.kind = OpKind::Cast;
  const Layout one = dense({1});
  cast.inputs = {array_at(const_cast<std::byte*>(at), array.dtype, one)};
  cast.outputs = {array_at(reinterpret_cast<std::byte*>(&x), DType::Float32, one)};
  cpu::Workspace workspace;
  cpu::run(cast, workspace);
  return static_cast<double>(x);
}

/// A kernel's call with its operands for one batch.
class Case {
 public:
  Case(Side side, Pass pass, OpKind kind) : side_(side) { call.pass = pass, call.kind = kind; }

  Case& input(const Shape& shape, DType dtype) { return add(&Call::inputs, shape, dtype, ++seed_); }
  Case& output(const Shape& shape, DType dtype) { return add(&Call::outputs, shape, dtype, 0); }
  Case& saved(const Shape& shape, DType dtype, float mean = 0) {
    return add(&Call::outputs, shape, dtype, ++seed_, mean);
  }
  Case& d_output(const Shape& shape, DType dtype) {
    return add(&Call::d_outputs, shape, dtype, ++seed_);
  }
  Case& d_input(const Shape& shape, DType dtype) { return add(&Call::d_inputs, shape, dtype, 0); }
  Case& absent(std::vector<Array> Call::*list, const Shape& shape, DType dtype) {
    (call.*list).push_back(array_at(nullptr, dtype, dense(shape)));
    (device_call_.*list).push_back((call.*list).back());
    return *this;
  }
  /// Mesa's codes of `shape` in place of an output's values, by heads; with their ranges.
  Case& codes(std::vector<Array> Call::*list, const Shape& shape) {
    add(list, shape, DType::UInt8, 0);
    Operand& ranges = *operands_.emplace_back(new Operand({heads, 4}, DType::Float32, 0, 0, side_));
    ranges.fill_with(std::vector<GroupRange>(heads, {.range = 6, .minimum = -3}));
    call.quantizer = {.groups = heads, .group_axis = static_cast<std::int64_t>(shape.rank()) - 1};
    device_call_.quantizer = call.quantizer;
    call.quantizer.ranges = elements<GroupRange>(ranges.array);
    device_call_.quantizer.ranges = elements<GroupRange>(ranges.on_device());
    if (list != &Call::inputs) return *this;
    for (Call* one : {&call, &device_call_})
      (one->*list).back() = coded((one->*list).back().data, shape, one->quantizer);
    return *this;
  }
  Case& flops(double count) { return flops_ = count, *this; }

  /// Each floating-point result, at some hundred places, within a few roundings of bf16.
  bool agrees_with_cpu() {
    cpu::Workspace workspace;
    cpu::run(call, workspace);
    run_on_device(1);
    return std::ranges::all_of(operands_, [](const auto& operand) { return is_alike(*operand); });
  }

  /// Seconds of so many launches, one after the other.
  double run_on_device(std::uint32_t launches) {
    finish_call();
    gpu()->time_by(Timing::WholeStep);
    gpu()->begin_step(1, 0, {});
    for (std::uint32_t i = 0; i < launches; ++i) gpu()->run(i, 0, device_call_);
    gpu()->finish();
    return std::chrono::duration<double>(gpu()->step_time().value()).count();
  }

  double bytes() const { return bytes_; }
  double flops() const { return flops_; }

  Call call;

 private:
  Case& add(std::vector<Array> Call::*list, const Shape& shape, DType dtype, unsigned seed,
            float mean = 0) {
    const Operand& operand = *operands_.emplace_back(new Operand(shape, dtype, seed, mean, side_));
    (call.*list).push_back(operand.array);
    (device_call_.*list).push_back(operand.on_device());
    bytes_ += static_cast<double>(operand.bytes);
    return *this;
  }

  /// What the case's maker set.
  void finish_call() {
    device_call_.pass = call.pass, device_call_.kind = call.kind;
    device_call_.settings = call.settings, device_call_.moves = call.moves;
  }

  static bool is_alike(const Operand& operand) {
    const Array host = operand.array;
    if (!is_floating(host.dtype)) return true;
    std::vector<std::byte> found(operand.host.size());
    gpu()->download(found.data(), operand.device->data(), operand.device->size());
    const Array device = array_at(found.data(), host.dtype, dense(host.shape));
    const std::int64_t count = numel(host.shape), step = std::max(count / 500, std::int64_t{1});
    for (std::int64_t i = 0; i < count; i += step) {
      const double wanted = value(host, i), got = value(device, i);
      if (!(std::abs(got - wanted) <= 0.05 * std::max(1.0, std::abs(wanted)))) return false;
    }
    return true;
  }

  Side side_;
  Call device_call_;
  std::vector<std::unique_ptr<Operand>> operands_;
  double bytes_ = 0, flops_ = 0;
  unsigned seed_ = 0;
};

using Make = std::function<Case(Side, DType, std::int64_t batch)>;

/// Bytes per second, read and written, of a copy within the device.
double copy_rate() {
  static const double rate = [] {
    constexpr std::uint32_t copies = 10;
    const Bytes size{std::int64_t{1} << 30};
    const auto from = gpu()->allocate(size, MemoryKind::Device);
    const auto to = gpu()->allocate(size, MemoryKind::Device);
    double best = 0;
    for (int trial = 0; trial < 3; ++trial) {
      gpu()->time_by(Timing::WholeStep);
      gpu()->begin_step(1, 0, {});
      for (std::uint32_t i = 0; i < copies; ++i) gpu()->copy(i, 0, to->data(), from->data(), size);
      gpu()->finish();
      const double seconds = std::chrono::duration<double>(gpu()->step_time().value()).count();
      best = std::max(best, 2.0 * copies * static_cast<double>(size.count) / seconds);
    }
    return best;
  }();
  return rate;
}

void time_case(const Make& make, DType dtype, benchmark::State& state) {
  std::int64_t batch = 0;
  {
    Case small = make(Side::Both, dtype, small_batch);
    if (!small.agrees_with_cpu()) return state.SkipWithError("differs from the CPU's result");
    batch = small_batch * static_cast<std::int64_t>(std::ceil(large_bytes / small.bytes()));
  }
  Case large = make(Side::Device, dtype, batch);
  constexpr std::uint32_t launches = 20;  // behind one that chooses algorithms and scratch
  large.run_on_device(1);
  for (auto _ : state) state.SetIterationTime(large.run_on_device(launches));
  using benchmark::Counter;
  const double done = static_cast<double>(state.iterations()) * launches;
  if (large.flops() > 0) {
    state.counters["FLOP/s"] = Counter(done * large.flops(), Counter::kIsRate);
  } else {
    state.counters["GB/s"] = Counter(done * large.bytes() / 1e9, Counter::kIsRate);
    state.counters["of_copy"] = Counter(done * large.bytes() / copy_rate(), Counter::kIsRate);
  }
}

Make unary(OpKind kind) {
  return [=](Side side, DType dtype, std::int64_t batch) {
    const Shape shape = {batch, tokens, hidden};
    Case made(side, Pass::Forward, kind);
    made.input(shape, dtype).output(shape, dtype);
    if (kind == OpKind::ReGelu2) made.output({numel(shape) / 4}, DType::UInt8);
    return made;
  };
}

Make unary_gradient(OpKind kind) {
  return [=](Side side, DType dtype, std::int64_t batch) {
    const Shape shape = {batch, tokens, hidden};
    Case made(side, Pass::Backward, kind);
    if (kind == OpKind::ReGelu2) {
      made.absent(&Call::inputs, shape, dtype).absent(&Call::outputs, shape, dtype);
      made.output({numel(shape) / 4}, DType::UInt8);
    } else {
      made.input(shape, dtype).absent(&Call::outputs, shape, dtype);
    }
    made.d_output(shape, dtype).d_input(shape, dtype);
    return made;
  };
}

Make norm(OpKind kind) {
  return [=](Side side, DType dtype, std::int64_t batch) {
    const Shape shape = {batch, tokens, width}, row = shape.with_back(1);
    Case made(side, Pass::Forward, kind);
    made.input(shape, dtype);
    if (kind == OpKind::LayerNorm) made.input({width}, dtype).input({width}, dtype);
    made.output(shape, dtype).output(row, DType::Float32);
    if (kind == OpKind::LayerNorm) made.output(row, DType::Float32);
    return made;
  };
}

Make norm_gradient(OpKind kind) {
  return [=](Side side, DType dtype, std::int64_t batch) {
    const Shape shape = {batch, tokens, width}, row = shape.with_back(1);
    const bool is_exact = kind == OpKind::LayerNorm;
    Case made(side, Pass::Backward, kind);
    if (is_exact) {
      made.input(shape, dtype).input({width}, dtype).absent(&Call::inputs, {width}, dtype);
      made.absent(&Call::outputs, shape, dtype);
      made.saved(row, DType::Float32).saved(row, DType::Float32);
    } else {
      made.absent(&Call::inputs, shape, dtype);
      made.saved(shape, dtype).saved(row, DType::Float32);
    }
    return std::move(made.d_output(shape, dtype).d_input(shape, dtype));
  };
}

/// Of LayerNorm with its weight and bias, as a step computes it.
Make whole_layer_norm_gradient() {
  return [=](Side side, DType dtype, std::int64_t batch) {
    Case made = norm_gradient(OpKind::LayerNorm)(side, dtype, batch);
    return std::move(made.d_input({width}, dtype).d_input({width}, dtype));
  };
}

Make sum_of_two() {
  return [](Side side, DType dtype, std::int64_t batch) {
    const Shape shape = {batch, tokens, hidden};
    Case made(side, Pass::Forward, OpKind::Add);
    return std::move(made.input(shape, dtype).input(shape, dtype).output(shape, dtype));
  };
}

Make softmax(Pass pass) {
  return [=](Side side, DType dtype, std::int64_t batch) {
    const Shape shape = {batch, heads, tokens, tokens};
    Case made(side, pass, OpKind::Softmax);
    if (pass == Pass::Forward) return std::move(made.input(shape, dtype).output(shape, dtype));
    made.absent(&Call::inputs, shape, dtype).saved(shape, dtype);
    return std::move(made.d_output(shape, dtype).d_input(shape, dtype));
  };
}

/// Over GPT-2's tokens: rows that no shared memory holds in fp32.
Make log_softmax() {
  return [](Side side, DType dtype, std::int64_t batch) {
    const Shape shape = {batch, classes};
    Case made(side, Pass::Forward, OpKind::LogSoftmax);
    return std::move(made.input(shape, dtype).output(shape, dtype));
  };
}

Make linear(Pass pass) {
  return [=](Side side, DType dtype, std::int64_t batch) {
    const Shape x = {batch, tokens, width}, y = {batch, tokens, hidden}, w = {hidden, width};
    Case made(side, pass, OpKind::Linear);
    made.input(x, dtype).input(w, dtype);
    const double flops = 2.0 * static_cast<double>(batch) * tokens * width * hidden;
    if (pass == Pass::Forward) return std::move(made.output(y, dtype).flops(flops));
    made.absent(&Call::outputs, y, dtype).d_output(y, dtype);
    return std::move(made.d_input(x, dtype).d_input(w, dtype).flops(2 * flops));
  };
}

/// Of a linear layer's bias alone: a sum over all rows.
Make bias_gradient() {
  return [](Side side, DType dtype, std::int64_t batch) {
    const Shape x = {batch, tokens, width}, y = {batch, tokens, hidden}, w = {hidden, width};
    Case made(side, Pass::Backward, OpKind::Linear);
    made.absent(&Call::inputs, x, dtype).absent(&Call::inputs, w, dtype);
    made.absent(&Call::inputs, {hidden}, dtype).absent(&Call::outputs, y, dtype);
    made.d_output(y, dtype).absent(&Call::d_inputs, x, dtype).absent(&Call::d_inputs, w, dtype);
    return std::move(made.d_input({hidden}, dtype));
  };
}

/// ViT-B's patches, which are its im2col and a product.
Make patches() {
  return [](Side side, DType dtype, std::int64_t batch) {
    constexpr std::int64_t image = 224, patch = 16, across = image / patch;
    Case made(side, Pass::Forward, OpKind::Conv2d);
    made.call.settings.stride = patch;
    made.input({batch, 3, image, image}, dtype).input({width, 3, patch, patch}, dtype);
    return std::move(made.output({batch, width, across, across}, dtype));
  };
}

/// Where the elements of an op that only moves them go.
Rearrangement split_of(const Shape& from, const Shape& to) {
  Trace trace;
  trace.tensors.resize(2);
  trace.tensors[0].shape = from, trace.tensors[1].shape = to;
  trace.operands = {static_cast<TensorId>(0), static_cast<TensorId>(1)};
  trace.attributes = {
      {AttributeKey::LayoutTransform, static_cast<double>(LayoutTransform::SplitHeads)}};
  Op op;
  op.kind = OpKind::Copy, op.inputs = op.outputs = op.attributes = 1;
  trace.ops.push_back(op);
  return rearrangement_of(trace, trace.ops[0]);
}

/// Queries, keys or values by heads: [b, t, h · d] to [b, h, t, d].
Make split_heads() {
  return [](Side side, DType dtype, std::int64_t batch) {
    const Shape from = {batch, tokens, width}, to = {batch, heads, tokens, width / heads};
    Case made(side, Pass::Forward, OpKind::Copy);
    made.call.moves = {split_of(from, to)};
    return std::move(made.input(from, dtype).output(to, dtype));
  };
}

constexpr float usual_lse = 5.8f;  // of 197 normal scores: log 197 and one half

Make attention(Pass pass) {
  return [=](Side side, DType dtype, std::int64_t batch) {
    const Shape head = {batch, heads, tokens, width / heads}, lse = {batch, heads, tokens};
    const double flops = 4.0 * static_cast<double>(batch) * tokens * tokens * width;
    Case made(side, pass, OpKind::FlashAttention);
    for (int i = 0; i < 3; ++i) made.input(head, dtype);
    if (pass == Pass::Forward)
      return std::move(made.output(head, dtype).output(lse, DType::Float32).flops(flops));
    made.saved(head, dtype).saved(lse, DType::Float32, usual_lse).d_output(head, dtype);
    for (int i = 0; i < 3; ++i) made.d_input(head, dtype);
    return std::move(made.flops(2.5 * flops));  // five products instead of two
  };
}

Make mesa(Pass pass) {
  return [=](Side side, DType dtype, std::int64_t batch) {
    const Shape shape = {batch, tokens, hidden};
    Case made(side, pass, OpKind::View);
    if (pass == Pass::Quantize)
      return std::move(made.input(shape, dtype).codes(&Call::outputs, shape));
    return std::move(made.codes(&Call::inputs, shape).output(shape, dtype));
  };
}

constexpr float positive = 8;  // standard deviations: second moments are no less than 0

/// Of parameters, gradients and moments of one dtype.
Make adamw() {
  return [](Side side, DType dtype, std::int64_t batch) {
    const Shape shape = {batch, hidden, width};
    Case made(side, Pass::Update, OpKind::View);
    return std::move(made.input(shape, dtype)
                         .saved(shape, dtype)
                         .saved({2, batch, hidden, width}, dtype, positive));
  };
}

const bool registered = [] {
  if (gpu() == nullptr) return false;
  const std::vector<std::pair<std::string, Make>> cases = {
      {"gelu", unary(OpKind::Gelu)},
      {"gelu gradient", unary_gradient(OpKind::Gelu)},
      {"regelu2", unary(OpKind::ReGelu2)},
      {"regelu2 gradient", unary_gradient(OpKind::ReGelu2)},
      {"silu", unary(OpKind::Silu)},
      {"add", sum_of_two()},
      {"softmax", softmax(Pass::Forward)},
      {"softmax gradient", softmax(Pass::Backward)},
      {"layer norm", norm(OpKind::LayerNorm)},
      {"layer norm gradient", norm_gradient(OpKind::LayerNorm)},
      {"layer norm gradient with weight and bias", whole_layer_norm_gradient()},
      {"ms-layer norm", norm(OpKind::MsLayerNorm)},
      {"ms-layer norm gradient", norm_gradient(OpKind::MsLayerNorm)},
      {"ms-rms norm", norm(OpKind::MsRmsNorm)},
      {"ms-rms norm gradient", norm_gradient(OpKind::MsRmsNorm)},
      {"linear", linear(Pass::Forward)},
      {"linear gradient", linear(Pass::Backward)},
      {"attention", attention(Pass::Forward)},
      {"attention gradient", attention(Pass::Backward)},
      {"linear bias gradient", bias_gradient()},
      {"patch embedding", patches()},
      {"split heads", split_heads()},
      {"log-softmax of 50257", log_softmax()},
      {"mesa quantize", mesa(Pass::Quantize)},
      {"mesa dequantize", mesa(Pass::Dequantize)},
      {"adamw", adamw()},
  };
  for (const auto& [name, make] : cases)
    for (const DType dtype : {DType::Float32, DType::BFloat16})
      benchmark::RegisterBenchmark(
          ("gpu/" + name + "/" + std::string(to_string(dtype))).c_str(),
          [make = make, dtype](benchmark::State& state) { time_case(make, dtype, state); })
          ->UseManualTime()
          ->MinTime(0.1);
  return true;
}();

}  // namespace
}  // namespace tidemark
