// Tiles of scores by gemm: q·kᵀ scaled, plus the bias, with −∞ where a row does not see a key.
#include <cmath>
#include <limits>

#include "kernels/attention/tiles.h"
#include "kernels/cpu/sums.h"

namespace tidemark::cpu {

Matrix head_of(const Array& x, std::int64_t batch, std::int64_t head) {
  const std::int64_t offset = batch * x.strides[0] + head * x.strides[1];
  return last_axes(x, x.data + offset * size_of(x.dtype));
}

Bias::Bias(const Array& array) : data_(array.data), dtype_(array.dtype) {
  const std::size_t missing = 4 - array.shape.rank();
  for (std::size_t axis = missing; axis < 4; ++axis) {
    extent_[axis] = array.shape[axis - missing];
    stride_[axis] = extent_[axis] == 1 ? 0 : array.strides[axis - missing];
  }
}

Run Bias::row(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) const {
  const std::int64_t offset = batch % extent_[0] * stride_[0] + head % extent_[1] * stride_[1] +
                              i % extent_[2] * stride_[2] + j * stride_[3];
  return {data_ + offset * size_of(dtype_), dtype_, stride_[3]};
}

Attention::Attention(const Call& call)
    : q(call.inputs[0]),
      k(call.inputs[1]),
      v(call.inputs[2]),
      batches(q.shape[0]),
      heads(q.shape[1]),
      key_heads(k.shape[1]),
      tokens(q.shape[2]),
      keys(k.shape[2]),
      d(q.shape[3]),
      e(v.shape[3]),
      scale(static_cast<float>(call.settings.factor / std::sqrt(static_cast<double>(d)))),
      causal(call.settings.causal),
      window(call.settings.window),
      side(causal || window > 0 ? narrow_tile : wide_tile) {
  if (call.inputs.size() > 3 && call.inputs[3]) bias = Bias(call.inputs[3]);
}

Range Attention::visible(std::int64_t row) const { return visible(Range{row, row + 1}); }

Range Attention::visible(Range rows) const {
  const std::int64_t begin = window > 0 ? std::max<std::int64_t>(0, rows.begin - window + 1) : 0;
  const std::int64_t end = causal ? std::min(keys, rows.end) : keys;
  return {std::min(begin, end), end};
}

void Attention::score(std::int64_t b, std::int64_t h, Range rows, Range seen, float* scores,
                      Workspace& workspace) const {
  const std::int64_t height = rows.size(), width = seen.size();
  gemm(head_of(q, b, h).block(rows.begin, 0, height, d),
       head_of(k, b, h / (heads / key_heads)).block(seen.begin, 0, width, d).transposed(),
       dense_matrix(scores, height, width), {.alpha = scale}, workspace);
  float* const scratch = workspace.floats(static_cast<std::size_t>(width), 0).data();
  for (std::int64_t i = rows.begin; i < rows.end; ++i, scores += width) {
    if (bias) add_to(scores, read(bias.row(b, h, i, seen.begin), width, scratch), width);
    const Range own = visible(i);
    const auto column = [&](std::int64_t key) {
      return std::clamp<std::int64_t>(key - seen.begin, 0, width);
    };
    constexpr float hidden = -std::numeric_limits<float>::infinity();
    std::fill(scores, scores + column(own.begin), hidden);
    std::fill(scores + column(own.end), scores + width, hidden);
  }
}

}  // namespace tidemark::cpu
