// Backward: the weights of each tile are made again from the scores and the saved log-sum-exp.
#include <limits>

#include "base/error.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/tiles.h"
#include "kernels/cpu/sums.h"

namespace tidemark::cpu {
namespace {

/// Where the call's gradients lie; each may be absent.
struct Gradients {
  Array dq, dk, dv, dbias;
};

class Backward {
 public:
  Backward(const Call& call, Workspace& workspace)
      : attention_(call), y_(call.outputs[0]), dy_(call.d_outputs[0]), workspace_(workspace) {
    if (call.outputs.size() > 1) lse_ = call.outputs[1];
    wanted_ = {call.d_inputs[0], call.d_inputs[1], call.d_inputs[2],
               call.d_inputs.size() > 3 ? call.d_inputs[3] : Array{}};
    CHECK(y_);
    const auto height = static_cast<std::size_t>(std::min(attention_.side, attention_.tokens));
    const auto width = static_cast<std::size_t>(std::min(attention_.side, attention_.keys));
    const auto d = static_cast<std::size_t>(attention_.d),
               e = static_cast<std::size_t>(attention_.e);
    const auto keys = static_cast<std::size_t>(attention_.keys);
    weights_ = workspace.floats(height * width, 3).data();
    dq_ = workspace.floats(height * d, 4).data();
    row_lse_ = workspace.floats(2 * height, 5).data();
    row_d_ = row_lse_ + height;
    dk_ = workspace.floats(std::max(keys * (d + e), height * width), 6).data();
    dv_ = dk_ + keys * d;
    errors_ = workspace.floats(height * width, 7).data();
  }

  void run() {
    const Attention& a = attention_;
    const bool bias_is_whole = bias_has_every_score();
    if (wanted_.dbias && bias_is_whole) set_zero(wanted_.dbias);  // tiles that nobody sees
    if (wanted_.dq || wanted_.dk || wanted_.dv || (wanted_.dbias && bias_is_whole))
      for (std::int64_t b = 0; b < a.batches; ++b)
        for (std::int64_t key_head = 0; key_head < a.key_heads; ++key_head)
          run_key_head(b, key_head, bias_is_whole);
    if (wanted_.dbias && !bias_is_whole) sum_bias();
  }

 private:
  bool bias_has_every_score() const {
    if (!wanted_.dbias) return false;
    const Bias dbias(wanted_.dbias);
    return dbias.extent(0) == attention_.batches && dbias.extent(1) == attention_.heads &&
           dbias.extent(2) == attention_.tokens && dbias.extent(3) == attention_.keys;
  }

  void run_key_head(std::int64_t b, std::int64_t key_head, bool store_bias) {
    const Attention& a = attention_;
    const std::int64_t group = a.heads / a.key_heads;
    std::fill_n(dk_, a.keys * (a.d + a.e), 0.0f);
    for (std::int64_t h = key_head * group; h < (key_head + 1) * group; ++h)
      for_tiles({0, a.tokens}, a.side, [&](Range rows) { run_rows(b, h, rows, store_bias); });
    if (wanted_.dk) store(dk_, {0, a.keys}, head_of(wanted_.dk, b, key_head));
    if (wanted_.dv) store(dv_, {0, a.keys}, head_of(wanted_.dv, b, key_head));
  }

  void run_rows(std::int64_t b, std::int64_t h, Range rows, bool store_bias) {
    const Attention& a = attention_;
    begin_rows(b, h, rows);
    std::fill_n(dq_, rows.size() * a.d, 0.0f);
    for_tiles(a.visible(rows), a.side, [&](Range seen) {
      make_errors(b, h, rows, seen, wanted_.dv ? dv_ + seen.begin * a.e : nullptr);
      if (store_bias) store_bias_tile(b, h, rows, seen);
      add_query_and_key(b, h, rows, seen);
    });
    if (wanted_.dq) store(dq_, rows, head_of(wanted_.dq, b, h));
  }

  /// Statistics of the rows: log-sum-exp, and Σ dy · y.
  void begin_rows(std::int64_t b, std::int64_t h, Range rows) {
    const Matrix y = head_of(y_, b, h), dy = head_of(dy_, b, h);
    const auto width = static_cast<std::size_t>(attention_.e);
    if (lse_) {
      const std::int64_t first =
          b * lse_.strides[0] + h * lse_.strides[1] + rows.begin * lse_.strides[2];
      gather({lse_.data + first * size_of(lse_.dtype), lse_.dtype, lse_.strides[2]}, rows.size(),
             row_lse_);
    } else {
      remake_lse(b, h, rows);
    }
    float* const scratch = workspace_.floats(2 * width, 0).data();
    for (std::int64_t i = 0; i < rows.size(); ++i)
      row_d_[i] = dot(read(y.row(rows.begin + i), attention_.e, scratch),
                      read(dy.row(rows.begin + i), attention_.e, scratch + width), attention_.e);
  }

  void remake_lse(std::int64_t b, std::int64_t h, Range rows) {
    float* const sums = row_d_;  // not yet in use
    std::fill_n(row_lse_, rows.size(), -std::numeric_limits<float>::infinity());
    std::fill_n(sums, rows.size(), 0.0f);
    for_tiles(attention_.visible(rows), attention_.side, [&](Range seen) {
      attention_.score(b, h, rows, seen, weights_, workspace_);
      for (std::int64_t i = 0; i < rows.size(); ++i) {
        RunningSoftmax running{row_lse_[i], sums[i]};
        add_scores(running, weights_ + i * seen.size(), seen.size());
        row_lse_[i] = running.maximum, sums[i] = running.sum;
      }
    });
    for (std::int64_t i = 0; i < rows.size(); ++i)
      row_lse_[i] = log_sum_exp({row_lse_[i], sums[i]});
  }

  /// errors_ = gradient of the tile's scores. On the way, adds to dv [keys of the tile, e].
  void make_errors(std::int64_t b, std::int64_t h, Range rows, Range seen, float* dv) {
    const Attention& a = attention_;
    const std::int64_t height = rows.size(), width = seen.size();
    a.score(b, h, rows, seen, weights_, workspace_);
    for (std::int64_t i = 0; i < height; ++i)
      weights_from_scores(weights_ + i * width, width, row_lse_[i]);
    const Matrix weights = dense_matrix(weights_, height, width);
    const Matrix dy = head_of(dy_, b, h).block(rows.begin, 0, height, a.e);
    const Matrix v = head_of(a.v, b, h / (a.heads / a.key_heads)).block(seen.begin, 0, width, a.e);
    if (dv != nullptr)
      gemm(weights.transposed(), dy, dense_matrix(dv, width, a.e), {.adds = true}, workspace_);
    gemm(dy, v.transposed(), dense_matrix(errors_, height, width), {}, workspace_);
    for (std::int64_t i = 0; i < height; ++i)
      errors_of_scores(weights_ + i * width, errors_ + i * width, width, row_d_[i]);
  }

  void add_query_and_key(std::int64_t b, std::int64_t h, Range rows, Range seen) {
    const Attention& a = attention_;
    const GemmOptions scaled{.alpha = a.scale, .adds = true};
    const Matrix errors = dense_matrix(errors_, rows.size(), seen.size());
    if (wanted_.dq)
      gemm(errors,
           head_of(a.k, b, h / (a.heads / a.key_heads)).block(seen.begin, 0, seen.size(), a.d),
           dense_matrix(dq_, rows.size(), a.d), scaled, workspace_);
    if (wanted_.dk)
      gemm(errors.transposed(), head_of(a.q, b, h).block(rows.begin, 0, rows.size(), a.d),
           dense_matrix(dk_ + seen.begin * a.d, seen.size(), a.d), scaled, workspace_);
  }

  void store_bias_tile(std::int64_t b, std::int64_t h, Range rows, Range seen) {
    const Bias dbias(wanted_.dbias);
    for (std::int64_t i = 0; i < rows.size(); ++i)
      scatter(errors_ + i * seen.size(), seen.size(), dbias.row(b, h, rows.begin + i, seen.begin));
  }

  /// Where several scores share an element: the tiles are made once more, in the order of the
  /// bias, so that each element is summed in fp32 and stored once.
  void sum_bias() {
    const Attention& a = attention_;
    const Bias dbias(wanted_.dbias);
    const Range all_rows{0, a.tokens}, all_keys{0, a.keys};
    for (std::int64_t b = 0; b < dbias.extent(0); ++b)
      for (std::int64_t h = 0; h < dbias.extent(1); ++h) {
        // A repeated axis is summed as a whole; the others are cut into tiles.
        for_pieces(dbias.extent(2), all_rows, [&](Range rows) {
          for_pieces(dbias.extent(3), all_keys,
                     [&](Range keys) { sum_bias_tile(dbias, b, h, rows, keys); });
        });
      }
  }

  template <typename Body>
  void for_pieces(std::int64_t extent, Range whole, Body&& body) const {
    extent == 1 ? body(whole) : for_tiles(whole, attention_.side, body);
  }

  void sum_bias_tile(const Bias& dbias, std::int64_t first_b, std::int64_t first_h, Range rows,
                     Range keys) {
    const Attention& a = attention_;
    const std::int64_t height = dbias.extent(2) == 1 ? 1 : rows.size();
    const std::int64_t width = dbias.extent(3) == 1 ? 1 : keys.size();
    float* const sums = dk_;
    std::fill_n(sums, height * width, 0.0f);
    for (std::int64_t b = first_b; b < a.batches; b += dbias.extent(0))
      for (std::int64_t h = first_h; h < a.heads; h += dbias.extent(1))
        for_tiles(rows, a.side, [&](Range tile_rows) {
          begin_rows(b, h, tile_rows);
          for_tiles(keys, a.side, [&](Range tile_keys) {
            make_errors(b, h, tile_rows, tile_keys, nullptr);
            add_errors(sums, height, width, tile_rows.size(), tile_keys.size());
          });
        });
    for (std::int64_t i = 0; i < height; ++i)
      scatter(sums + i * width, width, dbias.row(first_b, first_h, rows.begin + i, keys.begin));
  }

  void add_errors(float* sums, std::int64_t height, std::int64_t width, std::int64_t rows,
                  std::int64_t keys) const {
    for (std::int64_t i = 0; i < rows; ++i) {
      const float* const errors = errors_ + i * keys;
      float* const to = sums + (height == 1 ? 0 : i * width);
      if (width != 1 || keys == 1)
        add_to(to, errors, keys);
      else
        for (std::int64_t j = 0; j < keys; ++j) *to += errors[j];
    }
  }

  static void store(const float* values, Range rows, const Matrix& to) {
    for (std::int64_t i = rows.begin; i < rows.end; ++i, values += to.columns)
      scatter(values, to.columns, to.row(i));
  }

  const Attention attention_;
  const Array y_, dy_;
  Array lse_;
  Gradients wanted_;
  Workspace& workspace_;
  float *weights_, *errors_, *dq_, *dk_, *dv_, *row_lse_, *row_d_;
};

}  // namespace

void flash_attention_backward(const Call& call, Workspace& workspace) {
  if (call.d_outputs[0])
    Backward(call, workspace).run();
  else
    for (const Array& gradient : call.d_inputs) set_zero(gradient);
}

}  // namespace tidemark::cpu
