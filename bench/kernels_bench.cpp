// Memory-bound CPU kernels on one core: bytes per second, and their share of what memcpy reaches
// on as many bytes. Each kernel's answer is checked against double before it is timed.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <vector>

#include "kernels/accumulate/accumulate.h"
#include "kernels/activation/activation.h"
#include "kernels/dropout/dropout.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/layout_transform/layout_transform.h"
#include "kernels/mesa/mesa.h"
#include "kernels/norm/norm.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/softmax/softmax.h"

namespace tidemark::cpu {
namespace {

// A block's activations: [batch, tokens, width] of ViT-B, 77 MB in fp32, beyond every cache.
const Shape activations = {128, 196, 768};

/// Memory of one operand, filled with normal numbers.
class Operand {
 public:
  explicit Operand(const Shape& shape, DType dtype = DType::Float32, double scale = 1)
      : memory_(static_cast<std::size_t>(numel(shape) * size_of(dtype))),
        array_(array_at(memory_.data(), dtype, dense(shape))) {
    if (dtype != DType::Float32) return;
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, static_cast<float>(scale));
    // A few thousand different numbers are enough, and quick to make.
    std::vector<float> numbers(4096);
    for (float& x : numbers) x = normal(random);
    for (std::int64_t i = 0; i < numel(shape); ++i)
      floats()[i] = numbers[static_cast<std::size_t>(i) % numbers.size()];
  }
  const Array& array() const { return array_; }
  float* floats() const { return elements<float>(array_); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.size()); }

 private:
  std::vector<std::byte> memory_;
  Array array_;
};

/// Bytes per second of memcpy, reading and writing half of `bytes` each; the best of five.
double copy_rate(std::int64_t bytes) {
  const auto half = static_cast<std::size_t>(bytes / 2);
  std::vector<std::byte> from(half, std::byte{1}), to(half);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const std::clock_t begin = std::clock();  // of the processor, as the benchmark's rates
    std::memcpy(to.data(), from.data(), half);
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
    const double taken = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    best = std::max(best, 2 * static_cast<double>(half) / taken);
  }
  return best;
}

void require(benchmark::State& state, bool is_right) {
  if (!is_right) state.SkipWithError("wrong result");
}

bool is_near(float got, double wanted, double tolerance = 1e-5) {
  return std::abs(static_cast<double>(got) - wanted) <= tolerance * std::max(1.0, std::abs(wanted));
}

void time(benchmark::State& state, Kernel kernel, const Call& call, std::int64_t bytes,
          const std::function<bool()>& is_right) {
  Workspace workspace;
  kernel(call, workspace);
  require(state, is_right());
  const double copy = copy_rate(bytes);
  const std::clock_t begin = std::clock();
  for (auto _ : state) {
    kernel(call, workspace);
    benchmark::ClobberMemory();
  }
  const double taken = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const double rate = static_cast<double>(bytes) * static_cast<double>(state.iterations()) / taken;
  state.counters["GB/s"] = rate / 1e9;
  state.counters["of_memcpy"] = rate / copy;
}

Call call_of(std::vector<Array> inputs, std::vector<Array> outputs,
             std::vector<Array> d_outputs = {}, std::vector<Array> d_inputs = {}) {
  Call call;
  call.inputs = std::move(inputs), call.outputs = std::move(outputs);
  call.d_outputs = std::move(d_outputs), call.d_inputs = std::move(d_inputs);
  return call;
}

double exact_gelu(double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
double gelu_slope(double x) {
  return 0.5 * std::erfc(-x * std::sqrt(0.5)) + x * std::exp(-x * x / 2) / 2.5066282746310002;
}

void unary_forward(benchmark::State& state, Kernel kernel, double (*exact)(double)) {
  const Operand x(activations), y(activations);
  time(state, kernel, call_of({x.array()}, {y.array()}), x.bytes() + y.bytes(),
       [&] { return is_near(y.floats()[7], exact(static_cast<double>(x.floats()[7]))); });
}
void gelu(benchmark::State& state) { unary_forward(state, gelu_forward, exact_gelu); }
void silu(benchmark::State& state) {
  unary_forward(state, silu_forward, [](double x) { return x / (1 + std::exp(-x)); });
}
void tanh_itself(benchmark::State& state) {
  unary_forward(state, tanh_forward, [](double x) { return std::tanh(x); });
}

void gelu_gradient(benchmark::State& state) {
  const Operand x(activations), dy(activations), dx(activations);
  time(state, gelu_backward, call_of({x.array()}, {}, {dy.array()}, {dx.array()}), 3 * x.bytes(),
       [&] {
         return is_near(dx.floats()[7], static_cast<double>(dy.floats()[7]) *
                                            gelu_slope(static_cast<double>(x.floats()[7])));
       });
}

void regelu2(benchmark::State& state) {
  const Operand x(activations), y(activations), codes({numel(activations) / 4}, DType::UInt8);
  time(state, regelu2_forward, call_of({x.array()}, {y.array(), codes.array()}),
       2 * x.bytes() + codes.bytes(),
       [&] { return is_near(y.floats()[7], exact_gelu(static_cast<double>(x.floats()[7]))); });
}

void regelu2_gradient(benchmark::State& state) {
  const Operand dy(activations), dx(activations), codes({numel(activations) / 4}, DType::UInt8);
  std::memset(codes.array().data, 0xff, static_cast<std::size_t>(codes.bytes()));
  time(state, regelu2_backward,
       call_of({Array{}}, {Array{}, codes.array()}, {dy.array()}, {dx.array()}),
       2 * dy.bytes() + codes.bytes(),
       [&] { return is_near(dx.floats()[7], static_cast<double>(dy.floats()[7])); });
}

void add(benchmark::State& state) {
  const Operand a(activations), b(activations), y(activations);
  time(state, add_forward, call_of({a.array(), b.array()}, {y.array()}), 3 * a.bytes(),
       [&] { return y.floats()[7] == a.floats()[7] + b.floats()[7]; });
}

void accumulate_in_place(benchmark::State& state) {
  const Operand a(activations), b(activations, DType::Float32, 1e-3);
  const float before = a.floats()[7];
  time(state, accumulate, call_of({a.array(), b.array()}, {a.array()}), 3 * a.bytes(),
       [&] { return a.floats()[7] == before + b.floats()[7]; });
}

void sum_over_batch(benchmark::State& state) {
  const Operand dy(activations), dx({1, 196, 768});
  time(state, add_backward, call_of({}, {}, {dy.array()}, {dx.array()}), dy.bytes(), [&] {
    double wanted = 0;
    for (std::int64_t b = 0; b < 128; ++b)
      wanted += static_cast<double>(dy.floats()[b * 196 * 768 + 7]);
    return is_near(dx.floats()[7], wanted);
  });
}

void cast_to(benchmark::State& state, DType dtype) {
  const Operand x(activations), y(activations, dtype), back(activations);
  Workspace workspace;
  time(state, cast_forward, call_of({x.array()}, {y.array()}), x.bytes() + y.bytes(), [&] {
    cast_forward(call_of({y.array()}, {back.array()}), workspace);
    return is_near(back.floats()[7], static_cast<double>(x.floats()[7]), 0x1p-8);
  });
}
void cast_to_bfloat16(benchmark::State& state) { cast_to(state, DType::BFloat16); }
void cast_to_float16(benchmark::State& state) { cast_to(state, DType::Float16); }

void drop(benchmark::State& state) {
  const Operand x(activations), y(activations), mask(activations, DType::Bool);
  Call call = call_of({x.array()}, {y.array(), mask.array()});
  call.settings.probability = 0.1;
  time(state, dropout_forward, call, 2 * x.bytes() + mask.bytes(), [&] {
    const bool kept = elements<bool>(mask.array())[7];
    return is_near(y.floats()[7], kept ? static_cast<double>(x.floats()[7]) / 0.9 : 0);
  });
}

/// x, γ, β, y and the statistics of a norm, computed.
struct Normed {
  Normed() {
    std::fill_n(gamma.floats(), 768, 1.0f), std::fill_n(beta.floats(), 768, 0.0f);
    Workspace workspace;
    layer_norm_forward(forward, workspace);
  }
  bool is_right() const {
    double sum = 0, square = 0;
    for (int i = 0; i < 768; ++i) {
      const auto value = static_cast<double>(y.floats()[i]);
      sum += value, square += value * value;
    }
    return std::abs(sum) < 1e-3 && std::abs(square / 768 - 1) < 1e-3;
  }
  Operand x{activations}, gamma{{768}}, beta{{768}}, y{activations}, mean{{128, 196, 1}},
      rstd{{128, 196, 1}};
  Call forward =
      call_of({x.array(), gamma.array(), beta.array()}, {y.array(), mean.array(), rstd.array()});
};

void layer_norm(benchmark::State& state) {
  const Normed norm;
  time(state, layer_norm_forward, norm.forward, 2 * norm.x.bytes(),
       [&] { return norm.is_right(); });
}

// The gradient of a norm is orthogonal to constants and to its output.
bool is_norm_gradient(const float* dx, const float* y) {
  double sum = 0, product = 0;
  for (int i = 0; i < 768; ++i) {
    sum += static_cast<double>(dx[i]);
    product += static_cast<double>(dx[i]) * static_cast<double>(y[i]);
  }
  return std::abs(sum) < 1e-2 && std::abs(product) < 1e-2;
}

void layer_norm_gradient(benchmark::State& state) {
  const Normed norm;
  const Operand dy(activations, DType::Float32, 0.5), dx(activations), d_gamma({768}),
      d_beta({768});
  time(state, layer_norm_backward,
       call_of({norm.x.array(), norm.gamma.array(), norm.beta.array()},
               {norm.y.array(), norm.mean.array(), norm.rstd.array()}, {dy.array()},
               {dx.array(), d_gamma.array(), d_beta.array()}),
       3 * dy.bytes(), [&] { return is_norm_gradient(dx.floats(), norm.y.floats()); });
}

void ms_layer_norm_gradient(benchmark::State& state) {
  const Normed norm;
  const Operand dy(activations, DType::Float32, 0.5), dx(activations);
  time(state, ms_layer_norm_backward,
       call_of({norm.x.array()}, {norm.y.array(), norm.rstd.array()}, {dy.array()}, {dx.array()}),
       3 * dy.bytes(), [&] { return is_norm_gradient(dx.floats(), norm.y.floats()); });
}

void softmax(benchmark::State& state) {
  const Shape scores = {32, 12, 197, 197};
  const Operand x(scores), y(scores);
  time(state, softmax_forward, call_of({x.array()}, {y.array()}), 2 * x.bytes(), [&] {
    double sum = 0;
    for (int i = 0; i < 197; ++i) sum += static_cast<double>(y.floats()[i]);
    return is_near(1, sum) && is_near(y.floats()[1] / y.floats()[0],
                                      std::exp(static_cast<double>(x.floats()[1] - x.floats()[0])));
  });
}

void softmax_gradient(benchmark::State& state) {
  const Shape scores = {32, 12, 197, 197};
  const Operand x(scores), y(scores), dy(scores), dx(scores);
  Workspace workspace;
  softmax_forward(call_of({x.array()}, {y.array()}), workspace);
  time(state, softmax_backward, call_of({Array{}}, {y.array()}, {dy.array()}, {dx.array()}),
       3 * x.bytes(), [&] {
         double sum = 0;
         for (int i = 0; i < 197; ++i) sum += static_cast<double>(dx.floats()[i]);
         return std::abs(sum) < 1e-5;
       });
}

void adamw(benchmark::State& state) {
  const Operand g(activations), p(activations), moments({2, numel(activations)});
  std::fill_n(moments.floats(), 2 * numel(activations), 0.0f);
  const float before = p.floats()[7];
  // the first step is ± the learning rate, after decay
  const double wanted =
      static_cast<double>(before) * (1 - 1e-5) - std::copysign(1e-3, g.floats()[7]);
  time(state, update, call_of({g.array()}, {p.array(), moments.array()}), 7 * g.bytes(),
       [&] { return is_near(p.floats()[7], wanted); });
}

struct Quantized {
  Quantized() {
    to_codes.quantizer = {.groups = 12, .group_axis = 2, .ranges = ranges};
    from_codes.inputs = {coded(codes.array().data, activations, to_codes.quantizer)};
  }
  GroupRange ranges[12] = {};
  Operand x{activations}, codes{activations, DType::UInt8}, back{activations};
  Call to_codes = call_of({x.array()}, {codes.array()});
  Call from_codes = call_of({}, {back.array()});
  bool is_right() const {
    Workspace workspace;
    dequantize(from_codes, workspace);
    return std::abs(back.floats()[7] - x.floats()[7]) < 1.01f * ranges[0].range / code_levels(8);
  }
};

// Extremes need a first pass over the value.
void mesa_quantize(benchmark::State& state) {
  const Quantized all;
  time(state, quantize, all.to_codes, 2 * all.x.bytes() + all.codes.bytes(),
       [&] { return all.is_right(); });
}
void mesa_dequantize(benchmark::State& state) {
  const Quantized all;
  Workspace workspace;
  quantize(all.to_codes, workspace);
  time(state, dequantize, all.from_codes, all.x.bytes() + all.codes.bytes(),
       [&] { return all.is_right(); });
}

// [b, t, (h d)] → [b, h, t, d], and a transposition.
void copy_by(benchmark::State& state, const Shape& to, std::vector<Rearrangement::Factor> factors,
             std::int64_t from_at, std::int64_t to_at) {
  const Operand x(activations), y(to);
  Call call = call_of({x.array()}, {y.array()});
  call.moves.resize(1);
  call.moves[0].source = activations, call.moves[0].target = to;
  call.moves[0].factors = std::move(factors);
  time(state, copy_forward, call, 2 * x.bytes(),
       [&] { return y.floats()[to_at] == x.floats()[from_at]; });
}
void split_heads(benchmark::State& state) {
  copy_by(state, {128, 12, 196, 64},
          {{128, 0, 1, 0}, {12, 2, 64, 1}, {196, 1, 1, 2}, {64, 2, 1, 3}}, 768 + 64 + 3,
          196 * 64 + 64 + 3);
}
void transpose(benchmark::State& state) {
  copy_by(state, {128, 768, 196}, {{128, 0, 1, 0}, {768, 2, 1, 1}, {196, 1, 1, 2}}, 5 * 768 + 3,
          3 * 196 + 5);
}

#define TIDEMARK_KERNEL_BENCH(function) \
  BENCHMARK(function)->Name("cpu_kernel/" #function)->Unit(benchmark::kMillisecond)
TIDEMARK_KERNEL_BENCH(add);
TIDEMARK_KERNEL_BENCH(accumulate_in_place);
TIDEMARK_KERNEL_BENCH(sum_over_batch);
TIDEMARK_KERNEL_BENCH(cast_to_bfloat16);
TIDEMARK_KERNEL_BENCH(cast_to_float16);
TIDEMARK_KERNEL_BENCH(gelu);
TIDEMARK_KERNEL_BENCH(gelu_gradient);
TIDEMARK_KERNEL_BENCH(silu);
TIDEMARK_KERNEL_BENCH(tanh_itself);
TIDEMARK_KERNEL_BENCH(regelu2);
TIDEMARK_KERNEL_BENCH(regelu2_gradient);
TIDEMARK_KERNEL_BENCH(layer_norm);
TIDEMARK_KERNEL_BENCH(layer_norm_gradient);
TIDEMARK_KERNEL_BENCH(ms_layer_norm_gradient);
TIDEMARK_KERNEL_BENCH(softmax);
TIDEMARK_KERNEL_BENCH(softmax_gradient);
TIDEMARK_KERNEL_BENCH(drop);
TIDEMARK_KERNEL_BENCH(adamw);
TIDEMARK_KERNEL_BENCH(mesa_quantize);
TIDEMARK_KERNEL_BENCH(mesa_dequantize);
TIDEMARK_KERNEL_BENCH(split_heads);
TIDEMARK_KERNEL_BENCH(transpose);

}  // namespace
}  // namespace tidemark::cpu
