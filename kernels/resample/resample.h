// Planes of another size: x [n, c, h, w] → y [n, c, h', w'], or squares of tokens x [n, h·h, c] → y
// [n, h'·h', c]. Each element is a weighted sum of neighbours along both axes (taps.h):
//
//   StretchBilinear, StretchBicubic  as torch.nn.functional.interpolate without aligned corners
//   AdaptiveMean                     as adaptive_avg_pool2d
//   PadOrCrop                        zeros behind the end, or what is behind it left out
//
// dx = the transposed sum, in fp32, in the order of y's rows and columns. Any strides and data
// dtypes; fp32 arithmetic, rounded once: 4 ulp of Σ|terms|. An absent dy counts as zero.
#pragma once

#include <cmath>

#include "kernels/cpu/workspace.h"
#include "kernels/resample/taps.h"
#include "traces/formula.h"

namespace tidemark {

inline Resampling resampling_of(Formula formula) {
  return formula == Formula::StretchBilinear  ? Resampling::Bilinear
         : formula == Formula::StretchBicubic ? Resampling::Bicubic
         : formula == Formula::AdaptiveMean   ? Resampling::Mean
                                              : Resampling::Place;
}

/// Squares of tokens as planes.
inline Array as_planes(const Array& x) {
  if (x.shape.rank() == 4) return x;
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(x.shape[1])));
  const auto& s = x.strides;
  return {
      x.data, x.dtype, Shape{x.shape[0], x.shape[2], side, side}, {s[0], s[2], s[1] * side, s[1]}};
}

}  // namespace tidemark

namespace tidemark::cpu {

void resample_forward(const Call& call, Workspace& workspace);
void resample_backward(const Call& call, Workspace& workspace);

}  // namespace tidemark::cpu

namespace tidemark::cuda {

struct Launch;

void resample_forward(const Call& call, Launch& launch);
void resample_backward(const Call& call, Launch& launch);

}  // namespace tidemark::cuda
