// Kernels on a GPU: bytes per second and their share of the device's own copy, or FLOP/s of matrix
// products. Each answer is compared with the CPU's before it is timed, and then each repetition has
// operands of its own, or the second-level cache would be measured. Without a GPU there are no such
// benchmarks.
#include <benchmark/benchmark.h>

#include <cmath>
#include <functional>
#include <random>

#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/cpu/workspace.h"

namespace tidemark {
namespace {

// ViT-B, batch 64: the hidden activations of a block's MLP.
constexpr std::int64_t batch = 64, tokens = 197, width = 768, hidden = 3072, heads = 12;

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

/// One operand, on both sides.
struct Operand {
  Operand(const Shape& shape, DType dtype, unsigned seed)
      : host(static_cast<std::size_t>(numel(shape) * size_of(dtype))),
        device(gpu()->allocate({static_cast<std::int64_t>(host.size())}, MemoryKind::Device)),
        array(array_at(host.data(), dtype, dense(shape))) {
    if (seed != 0) fill(seed);
  }

  /// Normal numbers; a few thousand different ones are enough.
  void fill(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(static_cast<std::size_t>(numel(array.shape)));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = i < 4096 ? normal(random) : numbers[i % 4096];
    Call cast;
    cast.kind = OpKind::Cast;
    cast.inputs = {
        array_at(reinterpret_cast<std::byte*>(numbers.data()), DType::Float32, dense(array.shape))};
    cast.outputs = {array};
    cpu::Workspace workspace;
    cpu::run(cast, workspace);
    gpu()->upload(device->data(), host.data(), device->size());
  }
  Array on_device() const { return moved_to(*device); }
  Array moved_to(const Memory& memory) const {
    Array moved = array;
    moved.data = memory.data();
    return moved;
  }

  std::vector<std::byte> host;
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

/// A kernel's call with its operands.
class Case {
 public:
  Case(Pass pass, OpKind kind) { call_.pass = pass, call_.kind = kind; }

  Case& input(const Shape& shape, DType dtype) { return add(&Call::inputs, shape, dtype, ++seed_); }
  Case& output(const Shape& shape, DType dtype) { return add(&Call::outputs, shape, dtype, 0); }
  Case& saved(const Shape& shape, DType dtype) {
    return add(&Call::outputs, shape, dtype, ++seed_);
  }
  Case& d_output(const Shape& shape, DType dtype) {
    return add(&Call::d_outputs, shape, dtype, ++seed_);
  }
  Case& d_input(const Shape& shape, DType dtype) { return add(&Call::d_inputs, shape, dtype, 0); }
  Case& absent(std::vector<Array> Call::*list, const Shape& shape, DType dtype) {
    (call_.*list).push_back(array_at(nullptr, dtype, dense(shape)));
    (device_call_.*list).push_back((call_.*list).back());
    return *this;
  }
  Case& flops(double count) { return flops_ = count, *this; }

  void run(benchmark::State& state) {
    device_call_.pass = call_.pass, device_call_.kind = call_.kind;
    cpu::Workspace workspace;
    cpu::run(call_, workspace);
    run_on_device({&device_call_});
    if (!agrees()) return state.SkipWithError("differs from the CPU's result");
    const std::vector<Call> sets = more_sets();
    std::vector<const Call*> calls;
    for (std::size_t i = 0; i <= repeats; ++i) calls.push_back(&sets[i % sets.size()]);
    for (auto _ : state) state.SetIterationTime(run_on_device(calls));
    using benchmark::Counter;
    const double done = static_cast<double>(state.iterations()) * repeats;
    if (flops_ > 0) {
      state.counters["FLOP/s"] = Counter(done * flops_, Counter::kIsRate);
    } else {
      state.counters["GB/s"] = Counter(done * bytes_ / 1e9, Counter::kIsRate);
      state.counters["of_copy"] = Counter(done * bytes_ / copy_rate(), Counter::kIsRate);
    }
  }

 private:
  static constexpr int repeats = 20;  // one launch alone is shorter than its own overhead

  Case& add(std::vector<Array> Call::*list, const Shape& shape, DType dtype, unsigned seed) {
    const Operand& operand = *operands_.emplace_back(new Operand(shape, dtype, seed));
    (call_.*list).push_back(operand.array);
    (device_call_.*list).push_back(operand.on_device());
    bytes_ += static_cast<double>(operand.host.size());
    return *this;
  }

  /// Calls like device_call_ on other memory, of a quarter GiB and more together.
  std::vector<Call> more_sets() {
    constexpr double enough = double{1 << 28};
    const auto count = static_cast<std::size_t>(std::clamp(enough / bytes_, 1.0, double{repeats}));
    std::vector<Call> sets = {device_call_};
    for (std::size_t set = 0; set < count; ++set) {
      Call& call = sets.emplace_back(device_call_);
      for (auto* list : {&call.inputs, &call.outputs, &call.d_outputs, &call.d_inputs})
        for (Array& array : *list) {
          if (!array) continue;
          const auto operand = std::ranges::find_if(
              operands_, [&](const auto& o) { return o->device->data() == array.data; });
          const auto& memory =
              copies_.emplace_back(gpu()->allocate((*operand)->device->size(), MemoryKind::Device));
          gpu()->upload(memory->data(), (*operand)->host.data(), memory->size());
          array.data = memory->data();
        }
    }
    return sets;
  }

  /// Seconds from the end of the first, which waits for the host, to that of the last.
  static double run_on_device(const std::vector<const Call*>& calls) {
    gpu()->begin_step(1, 0, {});
    for (std::uint32_t i = 0; i < calls.size(); ++i) gpu()->run(i, 0, *calls[i]);
    const std::vector<Ran> ran = gpu()->finish();
    return std::chrono::duration<double>(ran.back().end - ran.front().end).count();
  }

  /// Each floating-point result, at some hundred places, within a few roundings of bf16.
  bool agrees() const {
    for (const auto& operand : operands_) {
      const Array host = operand->array;
      if (!is_floating(host.dtype)) continue;
      std::vector<std::byte> found(operand->host.size());
      gpu()->download(found.data(), operand->device->data(), operand->device->size());
      const Array device = array_at(found.data(), host.dtype, dense(host.shape));
      const std::int64_t count = numel(host.shape), step = std::max(count / 500, std::int64_t{1});
      for (std::int64_t i = 0; i < count; i += step) {
        const double wanted = value(host, i), got = value(device, i);
        if (!(std::abs(got - wanted) <= 0.05 * std::max(1.0, std::abs(wanted)))) return false;
      }
    }
    return true;
  }

  /// Bytes per second, read and written, of a copy within the device.
  static double copy_rate() {
    static const double rate = [] {
      const Bytes size{std::int64_t{1} << 30};
      const auto from = gpu()->allocate(size, MemoryKind::Device);
      const auto to = gpu()->allocate(size, MemoryKind::Device);
      gpu()->begin_step(1, 0, {});
      for (std::uint32_t i = 0; i < 10; ++i) gpu()->copy(i, 0, to->data(), from->data(), size);
      const std::vector<Ran> ran = gpu()->finish();
      double best = 0;
      for (const Ran& one : ran) {
        const double seconds = std::chrono::duration<double>(one.end - one.begin).count();
        best = std::max(best, 2 * static_cast<double>(size.count) / seconds);
      }
      return best;
    }();
    return rate;
  }

  Call call_, device_call_;
  std::vector<std::unique_ptr<Operand>> operands_;
  std::vector<std::unique_ptr<Memory>> copies_;
  double bytes_ = 0, flops_ = 0;
  unsigned seed_ = 0;
};

using Make = std::function<Case(DType)>;

Make unary(OpKind kind) {
  return [=](DType dtype) {
    const Shape shape = {batch, tokens, hidden};
    Case made(Pass::Forward, kind);
    made.input(shape, dtype).output(shape, dtype);
    if (kind == OpKind::ReGelu2) made.output({numel(shape) / 4}, DType::UInt8);
    return made;
  };
}

Make unary_gradient(OpKind kind) {
  return [=](DType dtype) {
    const Shape shape = {batch, tokens, hidden};
    Case made(Pass::Backward, kind);
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
  return [=](DType dtype) {
    const Shape shape = {batch, tokens, width}, row = shape.with_back(1);
    Case made(Pass::Forward, kind);
    made.input(shape, dtype);
    if (kind == OpKind::LayerNorm) made.input({width}, dtype).input({width}, dtype);
    made.output(shape, dtype).output(row, DType::Float32);
    if (kind == OpKind::LayerNorm) made.output(row, DType::Float32);
    return made;
  };
}

Make norm_gradient(OpKind kind) {
  return [=](DType dtype) {
    const Shape shape = {batch, tokens, width}, row = shape.with_back(1);
    const bool is_exact = kind == OpKind::LayerNorm;
    Case made(Pass::Backward, kind);
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
  return [=](DType dtype) {
    Case made = norm_gradient(OpKind::LayerNorm)(dtype);
    return std::move(made.d_input({width}, dtype).d_input({width}, dtype));
  };
}

Make sum_of_two() {
  return [](DType dtype) {
    const Shape shape = {batch, tokens, hidden};
    Case made(Pass::Forward, OpKind::Add);
    return std::move(made.input(shape, dtype).input(shape, dtype).output(shape, dtype));
  };
}

Make softmax(Pass pass) {
  return [=](DType dtype) {
    const Shape shape = {batch, heads, tokens, tokens};
    Case made(pass, OpKind::Softmax);
    if (pass == Pass::Forward) return std::move(made.input(shape, dtype).output(shape, dtype));
    made.absent(&Call::inputs, shape, dtype).saved(shape, dtype);
    return std::move(made.d_output(shape, dtype).d_input(shape, dtype));
  };
}

Make linear(Pass pass) {
  return [=](DType dtype) {
    const Shape x = {batch, tokens, width}, y = {batch, tokens, hidden}, w = {hidden, width};
    Case made(pass, OpKind::Linear);
    made.input(x, dtype).input(w, dtype);
    const double flops = 2.0 * batch * tokens * width * hidden;
    if (pass == Pass::Forward) return std::move(made.output(y, dtype).flops(flops));
    made.absent(&Call::outputs, y, dtype).d_output(y, dtype);
    return std::move(made.d_input(x, dtype).d_input(w, dtype).flops(2 * flops));
  };
}

Make attention() {
  return [](DType dtype) {
    const Shape head = {batch, heads, tokens, width / heads};
    Case made(Pass::Forward, OpKind::FlashAttention);
    for (int i = 0; i < 3; ++i) made.input(head, dtype);
    made.output(head, dtype).output({batch, heads, tokens}, DType::Float32);
    return std::move(made.flops(4.0 * batch * tokens * tokens * width));
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
      {"attention", attention()},
  };
  for (const auto& [name, make] : cases)
    for (const DType dtype : {DType::Float32, DType::BFloat16})
      benchmark::RegisterBenchmark(
          ("gpu/" + name + "/" + std::string(to_string(dtype))).c_str(),
          [make = make, dtype](benchmark::State& state) { make(dtype).run(state); })
          ->UseManualTime()
          ->MinTime(0.1);
  return true;
}();

}  // namespace
}  // namespace tidemark
