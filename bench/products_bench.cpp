// Matrix products of the CPU kernels on one core: operations per second, and their share of what a
// plain sgemm of the same shape reaches. Each answer is checked against double before it is timed.
#include <benchmark/benchmark.h>

#include <cmath>
#include <ctime>
#include <functional>
#include <random>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/conv/conv.h"
#include "kernels/cpu/gemm.h"
#include "kernels/linear/linear.h"

namespace tidemark::cpu {
namespace {

/// Memory of one operand, filled with normal numbers that the dtype can hold.
class Operand {
 public:
  Operand(const Shape& shape, DType dtype, unsigned seed)
      : memory_(static_cast<std::size_t>(numel(shape) * size_of(dtype))),
        array_(array_at(memory_.data(), dtype, dense(shape))) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < numel(shape); ++i)
      set_value(memory_.data() + i * size_of(dtype), dtype, normal(random));
  }
  const Array& array() const { return array_; }
  double value(std::int64_t i) const {
    const std::byte* const at = memory_.data() + i * size_of(array_.dtype);
    return static_cast<double>(value_at(at, array_.dtype));
  }

 private:
  std::vector<std::byte> memory_;
  Array array_;
};

DType dtype_of(const benchmark::State& state) { return static_cast<DType>(state.range(0)); }

/// Operations per second of c [m, n] = a · b in plain fp32, the best of five.
double sgemm_rate(std::int64_t m, std::int64_t n, std::int64_t k) {
  const Operand a({m, k}, DType::Float32, 1), b({n, k}, DType::Float32, 2);
  const Operand c({m, n}, DType::Float32, 3);
  Workspace workspace;
  const auto matrix = [](const Operand& x) { return last_axes(x.array(), x.array().data); };
  const auto repeats = 1 + (std::int64_t{1} << 29) / (2 * m * n * k);  // some milliseconds
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const std::clock_t begin = std::clock();
    for (std::int64_t i = 0; i < repeats; ++i)
      gemm(matrix(a), matrix(b).transposed(), matrix(c), {}, workspace);
    const double taken = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    best = std::max(best, static_cast<double>(2 * m * n * k * repeats) / taken);
  }
  return best;
}

void time(benchmark::State& state, Kernel kernel, const Call& call, double operations,
          double plain_rate, const std::function<bool()>& is_right) {
  Workspace workspace;
  kernel(call, workspace);
  if (!is_right()) return state.SkipWithError("wrong result");
  const std::clock_t begin = std::clock();
  for (auto _ : state) kernel(call, workspace);
  const double taken = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const double rate = operations * static_cast<double>(state.iterations()) / taken;
  state.counters["flops"] = rate;
  state.counters["of_sgemm"] = rate / plain_rate;
  state.SetLabel(std::string(to_string(dtype_of(state))));
}

bool is_near(double got, double wanted, DType dtype) {
  const double epsilon = dtype == DType::BFloat16 ? 0x1p-8 : 0x1p-10;
  return std::abs(got - wanted) <= epsilon * std::max(1.0, std::abs(wanted));
}

// The second linear layer of a ViT-S block, 16 images.
constexpr std::int64_t rows = 16 * 197, in = 1536, out = 384;

void linear(benchmark::State& state) {
  const DType dtype = dtype_of(state);
  const Operand x({rows, in}, dtype, 1), weight({out, in}, dtype, 2), y({rows, out}, dtype, 3);
  Call call;
  call.inputs = {x.array(), weight.array()}, call.outputs = {y.array()};
  time(state, linear_forward, call, 2.0 * rows * in * out, sgemm_rate(rows, out, in), [&] {
    double wanted = 0;
    for (std::int64_t k = 0; k < in; ++k)
      wanted += x.value((rows - 1) * in + k) * weight.value((out - 1) * in + k);
    return is_near(y.value(rows * out - 1), wanted, dtype);
  });
}

void linear_gradients(benchmark::State& state) {
  const DType dtype = dtype_of(state);
  const Operand x({rows, in}, dtype, 1), weight({out, in}, dtype, 2), dy({rows, out}, dtype, 3);
  const Operand dx({rows, in}, dtype, 4), dw({out, in}, dtype, 5);
  Call call;
  call.inputs = {x.array(), weight.array()}, call.d_outputs = {dy.array()};
  call.d_inputs = {dx.array(), dw.array()};
  time(state, linear_backward, call, 4.0 * rows * in * out, sgemm_rate(rows, out, in), [&] {
    double wanted = 0;
    for (std::int64_t row = 0; row < rows; ++row)
      wanted += x.value(row * in + in - 1) * dy.value(row * out + out - 1);
    return is_near(dw.value(out * in - 1), wanted, dtype);
  });
}

/// A call of attention of ViT-S, 8 images.
struct Heads {
  explicit Heads(DType dtype)
      : q(shape, dtype, 1),
        k(shape, dtype, 2),
        v(shape, dtype, 3),
        y(shape, dtype, 4),
        dy(shape, dtype, 5),
        dq(shape, dtype, 6),
        dk(shape, dtype, 7),
        dv(shape, dtype, 8),
        lse({8, 6, tokens}, DType::Float32, 9) {
    call.inputs = {q.array(), k.array(), v.array()}, call.outputs = {y.array(), lse.array()};
    call.d_outputs = {dy.array()}, call.d_inputs = {dq.array(), dk.array(), dv.array()};
  }
  /// Sums of weights are 1, so over all keys Σ dv = Σ dy.
  bool sums_of_dv_are_those_of_dy() const {
    double got = 0, wanted = 0, size = 0;
    for (std::int64_t i = 0; i < tokens; ++i) {
      got += dv.value(i * width), wanted += dy.value(i * width);
      size += std::abs(dv.value(i * width));
    }
    return std::abs(got - wanted) <= 0x1p-7 * size;
  }
  /// y of the first query by its definition.
  double first_result() const {
    double sum = 0, result = 0;
    for (std::int64_t j = 0; j < tokens; ++j) {
      double score = 0;
      for (std::int64_t c = 0; c < width; ++c) score += q.value(c) * k.value(j * width + c);
      const double weight = std::exp(score / std::sqrt(static_cast<double>(width)));
      sum += weight, result += weight * v.value(j * width);
    }
    return result / sum;
  }

  static constexpr std::int64_t tokens = 197, width = 64;
  static constexpr double products = 2.0 * 8 * 6 * tokens * tokens * width;
  const Shape shape{8, 6, tokens, width};
  Operand q, k, v, y, dy, dq, dk, dv, lse;
  Call call;
};

void attention(benchmark::State& state) {
  const Heads heads(dtype_of(state));
  time(state, flash_attention_forward, heads.call, 2 * Heads::products,
       sgemm_rate(Heads::tokens, Heads::tokens, Heads::width),
       [&] { return is_near(heads.y.value(0), heads.first_result(), dtype_of(state)); });
}

void attention_gradients(benchmark::State& state) {
  const Heads heads(dtype_of(state));
  Workspace workspace;
  flash_attention_forward(heads.call, workspace);
  time(state, flash_attention_backward, heads.call, 5 * Heads::products,
       sgemm_rate(Heads::tokens, Heads::tokens, Heads::width),
       [&] { return heads.sums_of_dv_are_those_of_dy(); });
}

// The patch embedding of ViT-S, 8 images.
void patch_embedding(benchmark::State& state) {
  const DType dtype = dtype_of(state);
  const Operand x({8, 3, 224, 224}, dtype, 1), weight({384, 3, 16, 16}, dtype, 2);
  const Operand y({8, 384, 14, 14}, dtype, 3);
  Call call;
  call.inputs = {x.array(), weight.array()}, call.outputs = {y.array()};
  call.settings.stride = 16;
  time(state, conv2d_forward, call, 2.0 * 8 * 196 * 384 * 768, sgemm_rate(384, 196, 768), [&] {
    double wanted = 0;
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t u = 0; u < 16; ++u)
        for (std::int64_t v = 0; v < 16; ++v)
          wanted += x.value((c * 224 + u) * 224 + v) * weight.value((c * 16 + u) * 16 + v);
    return is_near(y.value(0), wanted, dtype);
  });
}

void all_dtypes(benchmark::internal::Benchmark* one) {
  for (const DType dtype : {DType::Float32, DType::BFloat16, DType::Float16})
    one->Arg(static_cast<std::int64_t>(dtype));
}

BENCHMARK(linear)->Apply(all_dtypes);
BENCHMARK(linear_gradients)->Apply(all_dtypes);
BENCHMARK(attention)->Apply(all_dtypes);
BENCHMARK(attention_gradients)->Apply(all_dtypes);
BENCHMARK(patch_embedding)->Apply(all_dtypes);

}  // namespace
}  // namespace tidemark::cpu
