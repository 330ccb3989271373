// Convolution where every channel is a group of its own: plane by plane, without a matrix product.
#include "kernels/conv/geometry.h"
#include "kernels/cpu/clones.h"
#include "kernels/cpu/sums.h"

namespace tidemark::cpu {
namespace {

constexpr std::int64_t lanes = 16;  // floats in the widest registers

/// How the taps of a kernel lie in a Plane, from the first one on.
struct Taps {
  std::int64_t height, width, stride, phase, pitch;
  std::int64_t count() const { return height * width; }
};

/// row[i] += Σ kernel[tap] · what the tap meets at i. All taps at once: the sums of sixteen
/// neighbours stay in registers.
TIDEMARK_CLONES void add_taps(const Taps& taps, const float* first, const float* kernel,
                              float* __restrict row, std::int64_t n) {
  std::int64_t i = 0;
  for (std::int64_t width = lanes; i < n; i += width) {
    width = i + lanes <= n ? lanes : 1;
    float sums[lanes];
    for (std::int64_t lane = 0; lane < width; ++lane) sums[lane] = row[i + lane];
    for (std::int64_t ky = 0; ky < taps.height; ++ky)
      for (std::int64_t phase = 0; phase < taps.stride; ++phase) {
        const float* met = first + ky * taps.pitch + phase * taps.phase + i;
        for (std::int64_t kx = phase; kx < taps.width; kx += taps.stride, ++met) {
          const float weight = kernel[ky * taps.width + kx];
          if (width == lanes)
            for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += weight * met[lane];
          else
            sums[0] += weight * met[0];
        }
      }
    for (std::int64_t lane = 0; lane < width; ++lane) row[i + lane] = sums[lane];
  }
}

/// sums[tap][i mod 16] += what the tap meets at i · errors[i]
TIDEMARK_CLONES void add_products(const Taps& taps, const float* first, const float* errors,
                                  std::int64_t n, float* __restrict all_sums) {
  for (std::int64_t ky = 0; ky < taps.height; ++ky)
    for (std::int64_t phase = 0; phase < taps.stride; ++phase) {
      const float* met = first + ky * taps.pitch + phase * taps.phase;
      for (std::int64_t kx = phase; kx < taps.width; kx += taps.stride, ++met) {
        float* const to = all_sums + (ky * taps.width + kx) * lanes;
        float sums[lanes];
        for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] = to[lane];
        std::int64_t i = 0;
        for (; i + lanes <= n; i += lanes)
          for (std::int64_t lane = 0; lane < lanes; ++lane)
            sums[lane] += met[i + lane] * errors[i + lane];
        for (std::int64_t lane = 0; i < n; ++i, ++lane) sums[lane] += met[i] * errors[i];
        for (std::int64_t lane = 0; lane < lanes; ++lane) to[lane] = sums[lane];
      }
    }
}

/// One channel of one image with its border of zeros. Each row is kept as `stride` phases:
/// column i is in phase i mod stride at place i / stride, so that the columns which one tap of the
/// kernel meets are neighbours, whatever the stride.
class Plane {
 public:
  Plane(const Geometry& g, Workspace& workspace)
      : g_(g),
        phase_((g.width + 2 * g.padding + g.stride - 1) / g.stride),
        pitch_(phase_ * g.stride),
        data_(workspace.floats(static_cast<std::size_t>((g.height + 2 * g.padding) * pitch_), 3)) {}

  void clear() { std::ranges::fill(data_, 0.0f); }

  /// The border must be clear.
  void load(const Array& x, std::int64_t image, std::int64_t channel) {
    for_pieces(x, image, channel,
               [](const Run& run, std::int64_t n, float* piece) { gather(run, n, piece); });
  }
  void store(const Array& x, std::int64_t image, std::int64_t channel) {
    for_pieces(x, image, channel,
               [](const Run& run, std::int64_t n, const float* piece) { scatter(piece, n, run); });
  }

  Taps taps() const { return {g_.kernel_height, g_.kernel_width, g_.stride, phase_, pitch_}; }

  /// What tap (ky, kx) meets for row `oy` of the result.
  float* met(std::int64_t oy, std::int64_t ky, std::int64_t kx) {
    return data_.data() + (oy * g_.stride + ky) * pitch_ + kx % g_.stride * phase_ + kx / g_.stride;
  }

 private:
  template <typename Body>
  void for_pieces(const Array& x, std::int64_t image, std::int64_t channel, Body&& body) {
    for (std::int64_t row = 0; row < g_.height; ++row) {
      float* const to = data_.data() + (row + g_.padding) * pitch_;
      const Run run = plane_row(x, image, channel, row);
      for (std::int64_t column = 0; column < std::min(g_.stride, g_.width); ++column) {
        const std::int64_t padded = column + g_.padding;
        const Run piece{run.from(column).data, run.dtype, run.stride * g_.stride};
        body(piece, (g_.width - column + g_.stride - 1) / g_.stride,
             to + padded % g_.stride * phase_ + padded / g_.stride);
      }
    }
  }

  const Geometry& g_;
  std::int64_t phase_, pitch_;
  std::span<float> data_;
};

/// The kernel of one channel, row-major.
void load_kernel(const Geometry& g, const Array& weight, std::int64_t channel, float* to) {
  for (std::int64_t ky = 0; ky < g.kernel_height; ++ky)
    gather(plane_row(weight, channel, 0, ky), g.kernel_width, to + ky * g.kernel_width);
}

template <typename Body>
void for_taps(const Geometry& g, Body&& body) {
  for (std::int64_t ky = 0, tap = 0; ky < g.kernel_height; ++ky)
    for (std::int64_t kx = 0; kx < g.kernel_width; ++kx, ++tap) body(ky, kx, tap);
}

void input_gradient(const Geometry& g, const Call& call, Plane& plane, float* kernel, float* row,
                    const Array& dx) {
  const Array& dy = call.d_outputs[0];
  for (std::int64_t channel = 0; channel < g.groups; ++channel) {
    load_kernel(g, call.inputs[1], channel, kernel);
    for (std::int64_t image = 0; image < g.images; ++image) {
      plane.clear();
      for (std::int64_t oy = 0; oy < g.out_height; ++oy) {
        const float* const errors = read(plane_row(dy, image, channel, oy), g.out_width, row);
        for_taps(g, [&](std::int64_t ky, std::int64_t kx, std::int64_t tap) {
          add_to(plane.met(oy, ky, kx), errors, g.out_width, kernel[tap]);
        });
      }
      plane.store(dx, image, channel);
    }
  }
}

void weight_gradient(const Geometry& g, const Call& call, Plane& plane, float* sums, float* row,
                     const Array& dw) {
  const Array& dy = call.d_outputs[0];
  plane.clear();
  for (std::int64_t channel = 0; channel < g.groups; ++channel) {
    std::fill_n(sums, g.taps() * lanes, 0.0f);
    for (std::int64_t image = 0; image < g.images; ++image) {
      plane.load(call.inputs[0], image, channel);
      for (std::int64_t oy = 0; oy < g.out_height; ++oy) {
        const float* const errors = read(plane_row(dy, image, channel, oy), g.out_width, row);
        add_products(plane.taps(), plane.met(oy, 0, 0), errors, g.out_width, sums);
      }
    }
    for (std::int64_t tap = 0; tap < g.taps(); ++tap) sums[tap] = sum(sums + tap * lanes, lanes);
    for (std::int64_t ky = 0; ky < g.kernel_height; ++ky)
      scatter(sums + ky * g.kernel_width, g.kernel_width, plane_row(dw, channel, 0, ky));
  }
}

}  // namespace

void depthwise_forward(const Call& call, Workspace& workspace) {
  const Geometry g(call, call.outputs[0]);
  const bool has_bias = call.inputs.size() > 2 && call.inputs[2];
  const Array bias = has_bias ? call.inputs[2] : Array{};
  Plane plane(g, workspace);
  plane.clear();
  float* const kernel = workspace.floats(static_cast<std::size_t>(g.taps()), 4).data();
  float* const row = workspace.floats(static_cast<std::size_t>(g.out_width), 5).data();
  for (std::int64_t channel = 0; channel < g.groups; ++channel) {
    load_kernel(g, call.inputs[1], channel, kernel);
    const float first =
        has_bias ? value_at(bias.data + channel * bias.strides[0] * size_of(bias.dtype), bias.dtype)
                 : 0;
    for (std::int64_t image = 0; image < g.images; ++image) {
      plane.load(call.inputs[0], image, channel);
      for (std::int64_t oy = 0; oy < g.out_height; ++oy) {
        std::fill_n(row, g.out_width, first);
        add_taps(plane.taps(), plane.met(oy, 0, 0), kernel, row, g.out_width);
        scatter(row, g.out_width, plane_row(call.outputs[0], image, channel, oy));
      }
    }
  }
}

void depthwise_backward(const Call& call, Workspace& workspace) {
  const Geometry g(call, call.d_outputs[0]);
  Plane plane(g, workspace);
  float* const kernel = workspace.floats(static_cast<std::size_t>(g.taps() * lanes), 4).data();
  float* const row = workspace.floats(static_cast<std::size_t>(g.out_width), 5).data();
  if (const Array& dx = call.d_inputs[0]) input_gradient(g, call, plane, kernel, row, dx);
  if (const Array& dw = call.d_inputs[1]) weight_gradient(g, call, plane, kernel, row, dw);
}

}  // namespace tidemark::cpu
