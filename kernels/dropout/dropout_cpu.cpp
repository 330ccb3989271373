// Dropout and stochastic depth on the CPU; see dropout.h.
#include <cstring>

#include "base/error.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/random.h"
#include "kernels/dropout/dropout.h"
#include "kernels/philox.h"

namespace tidemark::cpu {
namespace {

static_assert(longest_run <= most_words);

float scale_of(double probability) {
  return probability < 1 ? static_cast<float>(1 / (1 - probability)) : 0.0f;
}

// (word + 1)·2^-24 > p, in integers: exact for every p.
std::uint32_t threshold_of(double probability) {
  return static_cast<std::uint32_t>(probability * 16777216.0);
}

TIDEMARK_CLONES void keep_loop(std::int64_t n, std::uint8_t* __restrict mask,
                               const std::uint32_t* __restrict words, std::uint32_t threshold) {
  for (std::int64_t i = 0; i < n; ++i) mask[i] = words[i] + 1 > threshold ? 1 : 0;
}

TIDEMARK_CLONES void select_loop(std::int64_t n, float* __restrict y, const float* __restrict x,
                                 const std::uint8_t* __restrict mask, float scale) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * (static_cast<float>(mask[i]) * scale);
}

void store_bytes(const Run& run, std::int64_t n, const std::uint8_t* from) {
  if (run.stride == 1) return std::memcpy(run.data, from, static_cast<std::size_t>(n)), void();
  for (std::int64_t i = 0; i < n; ++i) run.data[i * run.stride] = std::byte{from[i]};
}

const std::uint8_t* read_bytes(const Run& run, std::int64_t n, std::uint8_t* to) {
  if (run.stride == 1) return reinterpret_cast<const std::uint8_t*>(run.data);
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = std::to_integer<std::uint8_t>(run.data[i * run.stride]);
  return to;
}

/// y with its first axis divided so that one mask element stands for one index of it, and the mask
/// with as many axes.
struct PerSample {
  PerSample(const Array& y, const Array& x, const Array& mask) {
    const std::int64_t samples = numel(mask.shape), each = y.shape[0] / samples;
    // dims are those of y with `samples` in front
    y_ = divided(y, samples, each), x_ = divided(x, samples, each);
    std::array<std::int64_t, Shape::max_rank> dims;
    dims.fill(1);
    dims[0] = samples;
    mask_ = {mask.data, mask.dtype, Shape(std::span(dims).first(y_.shape.rank())), {}};
    mask_.strides[0] = 1;
  }
  Array y_, x_, mask_;

 private:
  static Array divided(const Array& array, std::int64_t samples, std::int64_t each) {
    if (each == 1) return array;
    const std::size_t rank = array.shape.rank();
    CHECK(rank < Shape::max_rank);
    std::array<std::int64_t, Shape::max_rank> dims{};
    Array result = array;
    dims[0] = samples, dims[1] = each;
    result.strides[0] = array.strides[0] * each, result.strides[1] = array.strides[0];
    for (std::size_t i = 1; i < rank; ++i)
      dims[i + 1] = array.shape[i], result.strides[i + 1] = array.strides[i];
    result.shape = Shape(std::span<const std::int64_t>(dims).first(rank + 1));
    return result;
  }
};

}  // namespace

void dropout_forward(const Call& call, Workspace& workspace) {
  const Array &x = call.inputs[0], &y = call.outputs[0], &mask = call.outputs[1];
  const RandomTensor random{workspace.state.seed, workspace.state.number, call.key};
  const float scale = scale_of(call.settings.probability);
  const std::uint32_t threshold = threshold_of(call.settings.probability);
  alignas(64) float in[longest_run], out[longest_run];
  alignas(64) std::uint32_t buffer[word_buffer];
  alignas(64) std::uint8_t kept[longest_run];
  std::int64_t first = 0;
  for_runs(
      x.shape, std::array{&y, &x, &mask},
      [&](const auto& runs, std::int64_t n) {
        keep_loop(n, kept, random_words(random, first, n, buffer), threshold);
        float* const results = place(runs[0], out);
        select_loop(n, results, read(runs[1], n, in), kept, scale);
        write(runs[0], n, results);
        if (runs[2]) store_bytes(runs[2], n, kept);
        first += n;
      },
      true);
}

void dropout_backward(const Call& call, Workspace&) {
  const Array &dx = call.d_inputs[0], &dy = call.d_outputs[0];
  if (!dx) return;
  if (!dy) return set_all(dx, 0.0f);
  const float scale = scale_of(call.settings.probability);
  alignas(64) float in[longest_run], out[longest_run];
  alignas(64) std::uint8_t bytes[longest_run];
  for_runs(std::array{&dx, &dy, &call.outputs[1]}, [&](const auto& runs, std::int64_t n) {
    float* const results = place(runs[0], out);
    select_loop(n, results, read(runs[1], n, in), read_bytes(runs[2], n, bytes), scale);
    write(runs[0], n, results);
  });
}

void drop_path_forward(const Call& call, Workspace& workspace) {
  const Array& mask = call.outputs[1];
  const StepState& state = workspace.state;
  const float scale = scale_of(call.settings.probability);
  const std::uint32_t threshold = threshold_of(call.settings.probability);
  std::uint32_t buffer[word_buffer];
  const PerSample arrays(call.outputs[0], call.inputs[0], mask);
  for (std::int64_t i = 0; i < numel(mask.shape); ++i) {
    const std::uint32_t word = *random_words({state.seed, state.number, call.key}, i, 1, buffer);
    set_value(mask.data + i * size_of(mask.dtype), mask.dtype, word + 1 > threshold ? scale : 0.0f);
  }
  map(arrays.y_, multiply_loop, arrays.x_, arrays.mask_);
}

void drop_path_backward(const Call& call, Workspace&) {
  if (!call.d_inputs[0]) return;
  if (!call.d_outputs[0]) return set_all(call.d_inputs[0], 0.0f);
  const PerSample arrays(call.d_inputs[0], call.d_outputs[0], call.outputs[1]);
  map(arrays.y_, multiply_loop, arrays.x_, arrays.mask_);
}

}  // namespace tidemark::cpu
