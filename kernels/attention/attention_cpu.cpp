// Forward: for each tile of queries, over the tiles of keys that it sees.
#include <limits>

#include "kernels/attention/attention.h"
#include "kernels/attention/tiles.h"

namespace tidemark::cpu {
namespace {

/// y and lse of one tile of rows.
class ForwardTile {
 public:
  ForwardTile(const Attention& attention, Range rows, Workspace& workspace)
      : attention_(attention), rows_(rows), workspace_(workspace) {
    const auto height = static_cast<std::size_t>(rows.size());
    const auto widest = static_cast<std::size_t>(std::min(attention.side, attention.keys));
    scores_ = workspace.floats(height * widest, 3).data();
    sums_ = workspace.floats(height * static_cast<std::size_t>(attention.e), 4);
    maxima_ = workspace.floats(2 * height, 5).data();
    totals_ = maxima_ + height;
  }

  void run(std::int64_t b, std::int64_t h) {
    std::ranges::fill(sums_, 0.0f);
    std::fill_n(maxima_, rows_.size(), -std::numeric_limits<float>::infinity());
    std::fill_n(totals_, rows_.size(), 0.0f);
    const Attention& a = attention_;
    const Matrix values = head_of(a.v, b, h / (a.heads / a.key_heads));
    for_tiles(a.visible(rows_), a.side, [&](Range seen) {
      a.score(b, h, rows_, seen, scores_, workspace_);
      weigh(seen.size());
      gemm(dense_matrix(scores_, rows_.size(), seen.size()),
           values.block(seen.begin, 0, seen.size(), a.e),
           dense_matrix(sums_.data(), rows_.size(), a.e), {.adds = true}, workspace_);
    });
  }

  void store(const Matrix& y, const Run& lse) {
    for (std::int64_t i = 0; i < rows_.size(); ++i) {
      float* const sums = sums_.data() + i * attention_.e;
      scale_row(sums, attention_.e, totals_[i] == 0 ? 0.0f : 1 / totals_[i]);
      scatter(sums, attention_.e, y.row(rows_.begin + i));
      if (!lse) continue;
      const float value = log_sum_exp({maxima_[i], totals_[i]});
      set_value(lse.from(rows_.begin + i).data, lse.dtype, value);
    }
  }

 private:
  /// Scores become weights relative to the maximum so far, and so do the sums.
  void weigh(std::int64_t width) {
    for (std::int64_t i = 0; i < rows_.size(); ++i) {
      RunningSoftmax running{maxima_[i], totals_[i]};
      const float factor = add_scores(running, scores_ + i * width, width);
      if (factor != 1) scale_row(sums_.data() + i * attention_.e, attention_.e, factor);
      maxima_[i] = running.maximum, totals_[i] = running.sum;
    }
  }

  const Attention& attention_;
  Range rows_;
  Workspace& workspace_;
  float* scores_;
  std::span<float> sums_;
  float *maxima_, *totals_;
};

}  // namespace

void flash_attention_forward(const Call& call, Workspace& workspace) {
  const Attention attention(call);
  const Array& y = call.outputs[0];
  const Array lse = call.outputs.size() > 1 ? call.outputs[1] : Array{};
  for (std::int64_t b = 0; b < attention.batches; ++b)
    for (std::int64_t h = 0; h < attention.heads; ++h) {
      const std::int64_t row = b * lse.strides[0] + h * lse.strides[1];
      const Run statistics{lse ? lse.data + row * size_of(lse.dtype) : nullptr, lse.dtype,
                           lse.strides[2]};
      for_tiles({0, attention.tokens}, attention.side, [&](Range rows) {
        ForwardTile tile(attention, rows, workspace);
        tile.run(b, h);
        tile.store(head_of(y, b, h), statistics);
      });
    }
}

}  // namespace tidemark::cpu
