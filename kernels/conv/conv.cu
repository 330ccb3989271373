// Convolution by columns and gemm, some images at a time; depthwise by kernels of its own.
#include "kernels/conv/conv.cuh"
#include "kernels/conv/conv.h"
#include "kernels/cuda/gemm.h"

namespace tidemark::cuda {
namespace {

ConvGeometry geometry_of(const Call& call, const Array& y) {
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  const Settings& s = call.settings;
  return {x[0],       x[2],     x[3],      w[2],     w[3], y.shape[2],
          y.shape[3], s.stride, s.padding, s.groups, w[1], w[0] / s.groups};
}

ImageStrides strides_of(const Array& a) {
  return {a.strides[0], a.strides[1], a.strides[2], a.strides[3]};
}

const Array& bias_of(const Call& call) {
  static const Array absent;
  return call.inputs.size() > 2 ? call.inputs[2] : absent;
}

/// Indices [first, first + count) of one axis.
Array slice(const Array& array, std::size_t axis, std::int64_t first, std::int64_t count) {
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::ranges::copy(array.shape.dims(), dims.begin());
  dims[axis] = count;
  Array result = array;
  result.shape = Shape(std::span<const std::int64_t>(dims).first(array.shape.rank()));
  result.data += first * array.strides[axis] * size_of(array.dtype);
  return result;
}

/// Bytes of columns made at a time: more would only take memory, products of this size are large.
constexpr std::int64_t column_bytes = 64 << 20;

/// A convolution in pieces of some images and one group: columns [taps, images · positions] and
/// results [out channels, images · positions].
class Conv {
 public:
  Conv(const Call& call, const Array& y, Launch& launch)
      : call_(call), launch_(launch), all_(geometry_of(call, y)) {
    const Array &x = call.inputs[0], &w = call.inputs[1];
    dtype_ = x.dtype == w.dtype && x.dtype == y.dtype ? x.dtype : DType::Float32;
    taps_inside_ = all_.stride == all_.kernel_width && all_.padding == 0;
    const std::int64_t per_image = all_.taps() * all_.positions() * size_of(dtype_);
    images_ = std::clamp<std::int64_t>(column_bytes / std::max<std::int64_t>(per_image, 1), 1,
                                       std::max<std::int64_t>(all_.images, 1));
  }

  void forward(const Array& y) {
    for_pieces([&](std::int64_t first, std::int64_t count, std::int64_t group) {
      const ConvGeometry g = piece(count);
      const GemmOperand columns = make_columns(g, first, group);
      const Array results = results_in(scratch(launch_, result_count(g) * 4, 2), DType::Float32, g);
      gemm(launch_, {.m = g.out_channels,
                     .n = g.images * g.positions(),
                     .k = g.taps(),
                     .a = weight(group),
                     .b = columns,
                     .c = matrix(results, g)});
      const Array to = slice(slice(y, 0, first, count), 1, group * g.out_channels, g.out_channels);
      const Array bias = spread_bias(group);
      pointwise(launch_, "conv2d", PerElement<PlusBias>{}, {&results, &bias, &to});
    });
  }

  void input_gradient(const Array& dy, const Array& dx) {
    for_pieces([&](std::int64_t first, std::int64_t count, std::int64_t group) {
      const ConvGeometry g = piece(count);
      const GemmOperand errors = gathered(dy, g, first, group);
      const Columns layout = layout_of(g);
      auto* const columns =
          reinterpret_cast<float*>(scratch(launch_, g.taps() * g.images * g.positions() * 4, 3));
      GemmOperand a = weight(group), b = errors;
      a.transposed = true;
      Gemm product{
          .m = g.taps(),
          .n = g.images * g.positions(),
          .k = g.out_channels,
          .a = a,
          .b = b,
          .c = {reinterpret_cast<std::byte*>(columns), DType::Float32, g.images * g.positions()}};
      if (taps_inside_) {  // the transpose: columns are stored by position
        product.a = errors, product.a.transposed = true;
        product.b = weight(group);
        std::swap(product.m, product.n);
        product.c.row_stride = g.taps();
      }
      gemm(launch_, product);
      const Array to = slice(slice(dx, 0, first, count), 1, group * g.in_channels, g.in_channels);
      with_dtype_of(std::array{&to}, [&](auto tag) {
        using T = typename decltype(tag)::type;
        start(launch_, "conv2d input", images_kernel<T>, dim3(blocks_for(launch_, numel(to.shape))),
              dim3(usual_threads), 0, static_cast<const float*>(columns), layout, g, writer<T>(to),
              strides_of(to));
      });
    });
  }

  void weight_gradient(const Array& dy, const Array& dw) {
    const std::int64_t size = all_.out_channels * all_.taps();
    float* sums = nullptr;
    for_pieces([&](std::int64_t first, std::int64_t count, std::int64_t group) {
      const ConvGeometry g = piece(count);
      if (first == 0) sums = reinterpret_cast<float*>(scratch(launch_, size * 4, 3));
      GemmOperand columns = make_columns(g, first, group);
      columns.transposed = !columns.transposed;
      gemm(launch_, {.m = g.out_channels,
                     .n = g.taps(),
                     .k = g.images * g.positions(),
                     .a = gathered(dy, g, first, group),
                     .b = columns,
                     .c = {reinterpret_cast<std::byte*>(sums), DType::Float32, g.taps()},
                     .beta = first == 0 ? 0.0f : 1.0f});
      if (first + count < all_.images) return;
      const Array to = slice(dw, 0, group * g.out_channels, g.out_channels);
      const Array from =
          array_at(reinterpret_cast<std::byte*>(sums), DType::Float32, dense(to.shape));
      pointwise(launch_, "conv2d weight", PerElement<Identity>{}, {&from, &to});
    });
  }

 private:
  template <typename Body>
  void for_pieces(const Body& body) {
    for (std::int64_t group = 0; group < all_.groups; ++group)
      for (std::int64_t first = 0; first < all_.images; first += images_)
        body(first, std::min(images_, all_.images - first), group);
  }

  ConvGeometry piece(std::int64_t images) const {
    ConvGeometry g = all_;
    g.images = images;
    return g;
  }
  static std::int64_t result_count(const ConvGeometry& g) {
    return g.out_channels * g.images * g.positions();
  }

  Columns layout_of(const ConvGeometry& g) const {
    return taps_inside_ ? Columns{1, g.taps()} : Columns{g.images * g.positions(), 1};
  }

  /// [taps, images · positions], stored as layout_of() says.
  GemmOperand make_columns(const ConvGeometry& g, std::int64_t first, std::int64_t group) {
    const Array x =
        slice(slice(call_.inputs[0], 0, first, g.images), 1, group * g.in_channels, g.in_channels);
    const std::int64_t count = g.taps() * g.images * g.positions();
    const Columns layout = layout_of(g);
    Array columns{scratch(launch_, count * size_of(dtype_), 0), dtype_, Shape{count}, {1}};
    if (taps_inside_) {
      copy_patches(x, g, columns.data);
      return {columns.data, dtype_, g.taps(), true};
    }
    with_dtype_of(std::array<const Array*, 2>{&x, &columns}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      start(launch_, "conv2d columns", columns_kernel<T>, dim3(blocks_for(launch_, count)),
            dim3(usual_threads), 0, reader<T>(x), strides_of(x), g, writer<T>(columns), layout);
    });
    return {columns.data, dtype_, g.images * g.positions()};
  }

  /// Patches side by side, [images, rows, columns, channels, row in it, column in it], are a view
  /// of the image: a row of a patch is read and written in vectors.
  void copy_patches(const Array& x, const ConvGeometry& g, std::byte* columns) {
    const Shape patches = {g.images,      g.out_height,    g.out_width,
                           g.in_channels, g.kernel_height, g.kernel_width};
    const ImageStrides at = strides_of(x);
    const Array from{
        x.data,
        x.dtype,
        patches,
        {at.image, g.stride * at.row, g.stride * at.column, at.channel, at.row, at.column}};
    const Array to = array_at(columns, dtype_, dense(patches));
    pointwise(launch_, "conv2d columns", PerElement<Identity>{}, {&from, &to});
  }

  /// The group's weight [out channels, taps]; a copy unless it lies so.
  GemmOperand weight(std::int64_t group) {
    const Array own = slice(call_.inputs[1], 0, group * all_.out_channels, all_.out_channels);
    if (own.dtype == dtype_ && is_dense(own.layout())) return {own.data, dtype_, all_.taps()};
    const Array copy =
        array_at(scratch(launch_, numel(own.shape) * size_of(dtype_), 1), dtype_, dense(own.shape));
    pointwise(launch_, "conv2d weight", PerElement<Identity>{}, {&own, &copy});
    return {copy.data, dtype_, all_.taps()};
  }

  /// Memory of [out channels, images, h, w] as an array [images, out channels, h, w].
  static Array results_in(std::byte* data, DType dtype, const ConvGeometry& g) {
    const std::int64_t positions = g.positions();
    return {data,
            dtype,
            Shape{g.images, g.out_channels, g.out_height, g.out_width},
            {positions, g.images * positions, g.out_width, 1}};
  }
  static GemmOperand matrix(const Array& results, const ConvGeometry& g) {
    return {results.data, results.dtype, g.images * g.positions()};
  }

  /// dy of the piece as a matrix [out channels, images · positions].
  GemmOperand gathered(const Array& dy, const ConvGeometry& g, std::int64_t first,
                       std::int64_t group) {
    const Array from =
        slice(slice(dy, 0, first, g.images), 1, group * g.out_channels, g.out_channels);
    const Array to = results_in(scratch(launch_, result_count(g) * size_of(dtype_), 2), dtype_, g);
    pointwise(launch_, "conv2d errors", PerElement<Identity>{}, {&from, &to});
    return matrix(to, g);
  }

  Array spread_bias(std::int64_t group) const {
    const Array& bias = bias_of(call_);
    if (!bias) return {};
    const Array own = slice(bias, 0, group * all_.out_channels, all_.out_channels);
    return {own.data, own.dtype, Shape{1, all_.out_channels, 1, 1}, {0, own.strides[0], 0, 0}};
  }

  const Call& call_;
  Launch& launch_;
  const ConvGeometry all_;
  DType dtype_;
  bool taps_inside_;
  std::int64_t images_;
};

bool is_depthwise(const ConvGeometry& g) { return g.in_channels == 1 && g.out_channels == 1; }

void depthwise_forward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
  Array bias = bias_of(call);
  if (!bias) bias = {nullptr, y.dtype, Shape{1}, {}};
  with_dtype_of(std::array<const Array*, 4>{&x, &w, &y, &bias}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    start(launch, "depthwise conv2d", depthwise_forward_kernel<T>,
          dim3(blocks_for(launch, numel(y.shape))), dim3(usual_threads), 0, reader<T>(x),
          strides_of(x), reader<T>(w), strides_of(w), reader<T>(bias), bias.strides[0],
          geometry_of(call, y), writer<T>(y), strides_of(y));
  });
}

void depthwise_backward(const Call& call, Launch& launch) {
  const Array &x = call.inputs[0], &w = call.inputs[1], &dy = call.d_outputs[0];
  const Array &dx = call.d_inputs[0], &dw = call.d_inputs[1];
  const ConvGeometry g = geometry_of(call, dy);
  if (dx)
    with_dtype_of(std::array<const Array*, 3>{&dy, &w, &dx}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      start(launch, "depthwise input", depthwise_input_kernel<T>,
            dim3(blocks_for(launch, numel(dx.shape))), dim3(usual_threads), 0, reader<T>(dy),
            strides_of(dy), reader<T>(w), strides_of(w), g, writer<T>(dx), strides_of(dx));
    });
  if (dw)
    with_dtype_of(std::array<const Array*, 3>{&x, &dy, &dw}, [&](auto tag) {
      using T = typename decltype(tag)::type;
      start(launch, "depthwise weight", depthwise_weight_kernel<T>,
            dim3(blocks_for(launch, numel(dw.shape), 1)), dim3(usual_threads), 0, reader<T>(x),
            strides_of(x), reader<T>(dy), strides_of(dy), g, writer<T>(dw), strides_of(dw));
    });
}

}  // namespace

void conv2d_forward(const Call& call, Launch& launch) {
  const Array& y = call.outputs[0];
  if (numel(y.shape) == 0) return;
  if (is_depthwise(geometry_of(call, y))) return depthwise_forward(call, launch);
  Conv(call, y, launch).forward(y);
}

void conv2d_backward(const Call& call, Launch& launch) {
  const Array& dy = call.d_outputs[0];
  if (!dy) {
    for (const Array& gradient : call.d_inputs) fill_with(launch, gradient, 0);
    return;
  }
  if (call.d_inputs.size() > 2 && call.d_inputs[2]) {
    const Array& db = call.d_inputs[2];
    const Array spread{db.data, db.dtype, Shape{1, db.shape[0], 1, 1}, {0, db.strides[0], 0, 0}};
    reduce(launch, "conv2d bias", Identity{}, dy.shape, {&dy}, spread);
  }
  if (is_depthwise(geometry_of(call, dy))) return depthwise_backward(call, launch);
  Conv conv(call, dy, launch);
  if (const Array& dx = call.d_inputs[0]) conv.input_gradient(dy, dx);
  if (const Array& dw = call.d_inputs[1]) conv.weight_gradient(dy, dw);
}

}  // namespace tidemark::cuda
