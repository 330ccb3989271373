// Mean pooling over rows; max pooling on planes loaded as fp32, window by window.
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "kernels/cpu/sums.h"
#include "kernels/pooling/pooling.h"

namespace tidemark::cpu {
namespace {

/// `x` [b, ..., c] at index `b` of its first axis, as rows [..., c].
Array slice_of(const Array& x, std::int64_t b) {
  Array slice{
      x.data + b * x.strides[0] * size_of(x.dtype), x.dtype, Shape(x.shape.dims().subspan(1)), {}};
  std::copy(x.strides.begin() + 1, x.strides.end(), slice.strides.begin());
  return slice;
}

/// How many rows make one mean.
std::int64_t pooled_rows(const Array& x) {
  return numel(x.shape) / std::max<std::int64_t>(1, x.shape[0] * x.shape.back());
}

/// Row `b` of [b, c].
Array row_of(const Array& y, std::int64_t b) { return slice_of(y, b); }

std::byte* element(const Array& x, const std::array<std::int64_t, 4>& at) {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < 4; ++axis) offset += at[axis] * x.strides[axis];
  return x.data + offset * size_of(x.dtype);
}

template <typename Body>
void for_planes(const Array& x, Body&& body) {
  for (std::int64_t image = 0; image < x.shape[0]; ++image)
    for (std::int64_t channel = 0; channel < x.shape[1]; ++channel) body(image, channel);
}

/// One plane of an array [n, c, h, w], dense and in fp32.
void load_plane(const Array& x, std::int64_t image, std::int64_t channel, float* to) {
  for (std::int64_t row = 0; row < x.shape[2]; ++row, to += x.shape[3])
    gather({element(x, {image, channel, row, 0}), x.dtype, x.strides[3]}, x.shape[3], to);
}

void store_plane(const float* from, const Array& x, std::int64_t image, std::int64_t channel) {
  for (std::int64_t row = 0; row < x.shape[2]; ++row, from += x.shape[3])
    scatter(from, x.shape[3], {element(x, {image, channel, row, 0}), x.dtype, x.strides[3]});
}

/// The part of a window that lies inside [0, extent).
struct Extent {
  std::int64_t begin, end;
};
Extent window_at(const Settings& settings, std::int64_t i, std::int64_t extent) {
  const std::int64_t begin = i * settings.stride - settings.padding;
  const Extent inside{std::max<std::int64_t>(begin, 0), std::min(begin + settings.window, extent)};
  CHECK(inside.begin < inside.end);
  return inside;
}

/// The place of the maximum within the plane.
std::int64_t place_of_maximum(const float* plane, std::int64_t width, Extent rows, Extent columns) {
  std::int64_t best = rows.begin * width + columns.begin;
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int64_t i = row * width + columns.begin; i < row * width + columns.end; ++i)
      if (plane[i] > plane[best] || std::isnan(plane[i])) best = i;
  return best;
}

}  // namespace

void mean_pool_forward(const Call& call, Workspace& workspace) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  const std::int64_t width = x.shape.back();
  const float factor = 1 / static_cast<float>(pooled_rows(x));
  Array sums{nullptr, DType::Float32, {width}, {1}};
  float* const row = workspace.floats(static_cast<std::size_t>(width), 3).data();
  sums.data = reinterpret_cast<std::byte*>(row);
  for (std::int64_t b = 0; b < x.shape[0]; ++b) {
    sum_rows(slice_of(x, b), sums, workspace);
    for (std::int64_t i = 0; i < width; ++i) row[i] *= factor;
    const Array to = row_of(y, b);
    scatter(row, width, {to.data, to.dtype, to.strides[0]});
  }
}

void mean_pool_backward(const Call& call, Workspace& workspace) {
  const Array &dy = call.d_outputs[0], &dx = call.d_inputs[0];
  if (!dx) return;
  if (!dy) return set_zero(dx);
  const std::int64_t width = dx.shape.back();
  const float factor = 1 / static_cast<float>(pooled_rows(dx));
  float* const row = workspace.floats(static_cast<std::size_t>(width), 0).data();
  for (std::int64_t b = 0; b < dx.shape[0]; ++b) {
    const Array from = row_of(dy, b);
    gather({from.data, from.dtype, from.strides[0]}, width, row);
    for (std::int64_t i = 0; i < width; ++i) row[i] *= factor;
    const Array to = slice_of(dx, b);
    for_rows(std::array{&to},
             [&](const auto& rows, std::int64_t) { scatter(row, width, rows[0]); });
  }
}

void max_pool_forward(const Call& call, Workspace& workspace) {
  const Array &x = call.inputs[0], &y = call.outputs[0];
  const Array places = call.outputs.size() > 1 ? call.outputs[1] : Array{};
  const std::int64_t height = x.shape[2], width = x.shape[3];
  float* const plane = workspace.floats(static_cast<std::size_t>(height * width), 0).data();
  for_planes(y, [&](std::int64_t image, std::int64_t channel) {
    load_plane(x, image, channel, plane);
    for (std::int64_t i = 0; i < y.shape[2]; ++i) {
      const Extent rows = window_at(call.settings, i, height);
      for (std::int64_t j = 0; j < y.shape[3]; ++j) {
        const std::int64_t best =
            place_of_maximum(plane, width, rows, window_at(call.settings, j, width));
        set_value(element(y, {image, channel, i, j}), y.dtype, plane[best]);
        if (places) std::memcpy(element(places, {image, channel, i, j}), &best, sizeof best);
      }
    }
  });
}

void max_pool_backward(const Call& call, Workspace& workspace) {
  const Array &dy = call.d_outputs[0], &places = call.outputs[1], &dx = call.d_inputs[0];
  if (!dx) return;
  if (!dy) return set_zero(dx);
  const std::int64_t area = dx.shape[2] * dx.shape[3];
  float* const plane = workspace.floats(static_cast<std::size_t>(area), 0).data();
  for_planes(dx, [&](std::int64_t image, std::int64_t channel) {
    std::fill_n(plane, area, 0.0f);
    for (std::int64_t i = 0; i < dy.shape[2]; ++i)
      for (std::int64_t j = 0; j < dy.shape[3]; ++j) {
        std::int64_t place;
        std::memcpy(&place, element(places, {image, channel, i, j}), sizeof place);
        CHECK(place >= 0 && place < area);
        plane[place] += value_at(element(dy, {image, channel, i, j}), dy.dtype);
      }
    store_plane(plane, dx, image, channel);
  });
}

}  // namespace tidemark::cpu
