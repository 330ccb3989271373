// The extents of a convolution by name, and how it walks over its arrays.
#pragma once

#include "kernels/cpu/rows.h"
#include "kernels/cpu/workspace.h"

namespace tidemark::cpu {

struct Geometry {
  Geometry(const Call& call, const Array& y)
      : images(call.inputs[0].shape[0]),
        height(call.inputs[0].shape[2]),
        width(call.inputs[0].shape[3]),
        kernel_height(call.inputs[1].shape[2]),
        kernel_width(call.inputs[1].shape[3]),
        out_height(y.shape[2]),
        out_width(y.shape[3]),
        stride(call.settings.stride),
        padding(call.settings.padding),
        groups(call.settings.groups),
        in_channels(call.inputs[1].shape[1]),
        out_channels(call.inputs[1].shape[0] / groups) {}

  /// Weights of one output channel.
  std::int64_t taps() const { return in_channels * kernel_height * kernel_width; }
  bool is_depthwise() const { return in_channels == 1 && out_channels == 1; }

  std::int64_t images, height, width, kernel_height, kernel_width, out_height, out_width;
  std::int64_t stride, padding, groups;
  std::int64_t in_channels, out_channels;  ///< of one group
};

/// Row `row` of a plane of an array [images, channels, height, width].
inline Run plane_row(const Array& x, std::int64_t image, std::int64_t channel, std::int64_t row) {
  const std::int64_t offset = image * x.strides[0] + channel * x.strides[1] + row * x.strides[2];
  return {x.data + offset * size_of(x.dtype), x.dtype, x.strides[3]};
}

void depthwise_forward(const Call& call, Workspace& workspace);
/// The gradients of x and of the weight.
void depthwise_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu
