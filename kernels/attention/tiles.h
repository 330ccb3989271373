// What forward and backward of attention share: which keys a row sees, and tiles of scores.
#pragma once

#include "kernels/attention/score_rows.h"
#include "kernels/cpu/gemm.h"

namespace tidemark::cpu {

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Rows and columns of a tile of scores. 256 KiB are a part of a second-level cache and give
/// products large enough for the full rate of sgemm. Where tiles are skipped because nobody sees
/// them, smaller ones skip more: 197 causal tokens were 20 % faster by 128 (measured on Zen 5), as
/// many that see all of each other 8 % slower.
inline constexpr std::int64_t wide_tile = 256, narrow_tile = 128;

/// Calls body(range) for pieces of at most `side`.
template <typename Body>
void for_tiles(Range whole, std::int64_t side, Body&& body) {
  for (std::int64_t i = whole.begin; i < whole.end; i += side)
    body(Range{i, std::min(i + side, whole.end)});
}

/// The matrix [tokens, width] of one head.
Matrix head_of(const Array& x, std::int64_t batch, std::int64_t head);

/// A bias, or its gradient, seen as four axes.
class Bias {
 public:
  Bias() = default;
  explicit Bias(const Array& array);

  explicit operator bool() const { return data_ != nullptr; }
  std::int64_t extent(std::size_t axis) const { return extent_[axis]; }
  /// From key `j` on, as the scores of that row read it.
  Run row(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) const;

 private:
  std::byte* data_ = nullptr;
  DType dtype_ = DType::Float32;
  std::array<std::int64_t, 4> extent_{1, 1, 1, 1}, stride_{};
};

/// The operands of a call, by name.
struct Attention {
  explicit Attention(const Call& call);

  Range visible(std::int64_t row) const;
  /// What at least one of the rows sees.
  Range visible(Range rows) const;

  /// scores [rows, keys] = q · kᵀ / √d + bias; −∞ where hidden.
  void score(std::int64_t b, std::int64_t h, Range rows, Range seen, float* scores,
             Workspace& workspace) const;

  Array q, k, v;
  Bias bias;
  std::int64_t batches, heads, key_heads, tokens, keys, d, e;
  float scale;
  bool causal;
  std::int64_t window;
  std::int64_t side;  ///< of the tiles
};

}  // namespace tidemark::cpu
