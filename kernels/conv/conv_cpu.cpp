// Convolution as a matrix product: the patches of some output rows become the columns of a matrix
// [taps, positions], the weight of a group is one of [out channels, taps].
#include "kernels/conv/conv.h"
#include "kernels/conv/geometry.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/sums.h"

namespace tidemark::cpu {
namespace {

/// Floats of columns made at a time: 4 MiB, some of which stays in the second-level cache.
constexpr std::int64_t column_floats = 1 << 20;

class Conv {
 public:
  Conv(const Call& call, const Array& y, Workspace& workspace)
      : call_(call), g_(call, y), y_(y), workspace_(workspace) {
    // An output row is a run; several of them only if they follow each other.
    const bool rows_follow = y.strides[2] == g_.out_width * y.strides[3];
    rows_ = rows_follow ? std::max<std::int64_t>(1, column_floats / (g_.taps() * g_.out_width)) : 1;
    rows_ = std::min(rows_, g_.out_height);
    columns_ = floats(g_.taps() * rows_ * g_.out_width, 4);
    weight_ = floats(g_.out_channels * g_.taps(), 5);
  }

  void forward() {
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      const Matrix weight = weight_of(group);
      for_tiles([&](std::int64_t image, std::int64_t row, std::int64_t rows) {
        make_columns(image, group, row, rows);
        gemm(weight, columns(rows), results(image, group, row, rows), with_bias(group), workspace_);
      });
    }
  }

  void weight_gradient(const Array& dw) {
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      std::fill_n(weight_, g_.out_channels * g_.taps(), 0.0f);
      const Matrix sums = dense_matrix(weight_, g_.out_channels, g_.taps());
      for_tiles([&](std::int64_t image, std::int64_t row, std::int64_t rows) {
        make_columns(image, group, row, rows);
        gemm(results(image, group, row, rows), columns(rows).transposed(), sums, {.adds = true},
             workspace_);
      });
      for_kernel_rows(dw, group,
                      [&](const Run& run, float* piece) { scatter(piece, g_.kernel_width, run); });
    }
  }

  void input_gradient(const Array& dx) {
    const std::int64_t plane = g_.in_channels * g_.height * g_.width;
    float* const sums = floats(plane, 6);
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      const Matrix weight = weight_of(group).transposed();
      for_tiles([&](std::int64_t image, std::int64_t row, std::int64_t rows) {
        if (row == 0) std::fill_n(sums, plane, 0.0f);
        gemm(weight, results(image, group, row, rows), columns(rows), {}, workspace_);
        add_columns(sums, row, rows);
        if (row + rows == g_.out_height) store_plane(sums, dx, image, group);
      });
    }
  }

 private:
  float* floats(std::int64_t count, std::size_t slot) {
    return workspace_.floats(static_cast<std::size_t>(count), slot).data();
  }

  template <typename Body>
  void for_tiles(Body&& body) const {
    for (std::int64_t image = 0; image < g_.images; ++image)
      for (std::int64_t row = 0; row < g_.out_height; row += rows_)
        body(image, row, std::min(rows_, g_.out_height - row));
  }

  Matrix columns(std::int64_t rows) const {
    return dense_matrix(columns_, g_.taps(), rows * g_.out_width);
  }

  /// Of y, or of its gradient: [out channels, positions].
  Matrix results(std::int64_t image, std::int64_t group, std::int64_t row,
                 std::int64_t rows) const {
    const Run first = plane_row(y_, image, group * g_.out_channels, row);
    return {first.data,          y_.dtype,      g_.out_channels,
            rows * g_.out_width, y_.strides[1], first.stride};
  }

  GemmOptions with_bias(std::int64_t group) const {
    if (call_.inputs.size() < 3 || !call_.inputs[2]) return {};
    const Array& bias = call_.inputs[2];
    const Run all{bias.data, bias.dtype, bias.strides[0]};
    return {.bias = all.from(group * g_.out_channels), .bias_by_row = true};
  }

  /// Calls body(run, piece of weight_) for each row of each kernel of the group.
  template <typename Body>
  void for_kernel_rows(const Array& weight, std::int64_t group, Body&& body) {
    float* piece = weight_;
    for (std::int64_t o = 0; o < g_.out_channels; ++o)
      for (std::int64_t c = 0; c < g_.in_channels; ++c)
        for (std::int64_t ky = 0; ky < g_.kernel_height; ++ky, piece += g_.kernel_width)
          body(plane_row(weight, group * g_.out_channels + o, c, ky), piece);
  }

  Matrix weight_of(std::int64_t group) {
    for_kernel_rows(call_.inputs[1], group,
                    [&](const Run& run, float* piece) { gather(run, g_.kernel_width, piece); });
    return dense_matrix(weight_, g_.out_channels, g_.taps());
  }

  /// Calls body(channel of the group, input row or −1, first input column, values) for each output
  /// row that a tap meets: value i belongs to input column first + i · stride.
  template <typename Body>
  void for_column_rows(std::int64_t row, std::int64_t rows, Body&& body) const {
    float* values = columns_;
    for (std::int64_t c = 0; c < g_.in_channels; ++c)
      for (std::int64_t ky = 0; ky < g_.kernel_height; ++ky)
        for (std::int64_t kx = 0; kx < g_.kernel_width; ++kx)
          for (std::int64_t oy = row; oy < row + rows; ++oy, values += g_.out_width) {
            const std::int64_t y = oy * g_.stride + ky - g_.padding;
            body(c, y >= 0 && y < g_.height ? y : -1, kx - g_.padding, values);
          }
  }

  /// Of the values that begin at input column `first`: those inside the image.
  struct Inside {
    std::int64_t begin, end;
  };
  Inside inside(std::int64_t first) const {
    const auto steps_to = [&](std::int64_t column) {  // values before that input column
      const std::int64_t distance = std::max<std::int64_t>(0, column - first);
      return std::min((distance + g_.stride - 1) / g_.stride, g_.out_width);
    };
    return {steps_to(0), steps_to(g_.width)};
  }

  void make_columns(std::int64_t image, std::int64_t group, std::int64_t row, std::int64_t rows) {
    const Array& x = call_.inputs[0];
    for_column_rows(
        row, rows, [&](std::int64_t c, std::int64_t y, std::int64_t first, float* values) {
          const Inside in = y < 0 ? Inside{g_.out_width, g_.out_width} : inside(first);
          std::fill(values, values + in.begin, 0.0f);
          std::fill(values + in.end, values + g_.out_width, 0.0f);
          if (in.begin == in.end) return;
          const Run run = plane_row(x, image, group * g_.in_channels + c, y);
          gather({run.from(first + in.begin * g_.stride).data, run.dtype, run.stride * g_.stride},
                 in.end - in.begin, values + in.begin);
        });
  }

  void add_columns(float* sums, std::int64_t row, std::int64_t rows) const {
    for_column_rows(row, rows,
                    [&](std::int64_t c, std::int64_t y, std::int64_t first, const float* values) {
                      if (y < 0) return;
                      const Inside in = inside(first);
                      float* const to = sums + (c * g_.height + y) * g_.width;
                      if (g_.stride == 1)
                        add_to(to + first + in.begin, values + in.begin, in.end - in.begin);
                      else
                        for (std::int64_t i = in.begin; i < in.end; ++i)
                          to[first + i * g_.stride] += values[i];
                    });
  }

  void store_plane(const float* sums, const Array& dx, std::int64_t image,
                   std::int64_t group) const {
    for (std::int64_t c = 0; c < g_.in_channels; ++c)
      for (std::int64_t row = 0; row < g_.height; ++row, sums += g_.width)
        scatter(sums, g_.width, plane_row(dx, image, group * g_.in_channels + c, row));
  }

  const Call& call_;
  const Geometry g_;
  const Array& y_;
  Workspace& workspace_;
  std::int64_t rows_;  ///< of the output in one tile
  float *columns_, *weight_;
};

/// db [o]: fp32 along a row, then in double, whose sum of any number of rows is as good as exact.
void bias_gradient(const Array& dy, const Array& db, Workspace& workspace) {
  const std::int64_t width = dy.shape[3];
  float* const scratch = workspace.floats(static_cast<std::size_t>(width), 0).data();
  for (std::int64_t o = 0; o < dy.shape[1]; ++o) {
    double total = 0;
    for (std::int64_t image = 0; image < dy.shape[0]; ++image)
      for (std::int64_t row = 0; row < dy.shape[2]; ++row)
        total +=
            static_cast<double>(sum(read(plane_row(dy, image, o, row), width, scratch), width));
    set_value(db.data + o * db.strides[0] * size_of(db.dtype), db.dtype, static_cast<float>(total));
  }
}

}  // namespace

void conv2d_forward(const Call& call, Workspace& workspace) {
  if (Geometry(call, call.outputs[0]).is_depthwise())
    depthwise_forward(call, workspace);
  else
    Conv(call, call.outputs[0], workspace).forward();
}

void conv2d_backward(const Call& call, Workspace& workspace) {
  const Array& dy = call.d_outputs[0];
  if (!dy) {
    for (const Array& gradient : call.d_inputs) set_zero(gradient);
    return;
  }
  if (call.d_inputs.size() > 2 && call.d_inputs[2]) bias_gradient(dy, call.d_inputs[2], workspace);
  if (Geometry(call, dy).is_depthwise()) return depthwise_backward(call, workspace);
  Conv conv(call, dy, workspace);
  if (const Array& dx = call.d_inputs[0]) conv.input_gradient(dx);
  if (const Array& dw = call.d_inputs[1]) conv.weight_gradient(dw);
}

}  // namespace tidemark::cpu
