// Checks attributes, dtypes and shapes of one op against what the CPU and CUDA kernels take.
#include "profiler/kernel_limits.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/quoted.h"
#include "profiler/call_settings.h"
#include "traces/formula.h"

namespace tidemark::profiler {
namespace {

/// What the CPU's loop has room for beside the result.
constexpr std::size_t most_averaged = 6;

class Limits {
 public:
  Limits(const Trace& trace, const Op& op) : trace_(trace), op_(op) {}

  std::string defect() const {
    if (const std::string found = attribute_defect(); !found.empty()) return found;
    if (const OpaqueRow* row = opaque_row(trace_, op_))  // what a formula needs was checked before
      return row->computes != Formula::None
                 ? ""
                 : fmt::format("{} is opaque; no kernel is known for it", quoted(row->operation));
    if (const std::string found = dtype_defect(); !found.empty()) return found;
    switch (op_.kind) {
      case OpKind::Average:
        if (op_.inputs <= most_averaged) return "";
        return fmt::format("it averages {} tensors; kernels do up to {}", op_.inputs,
                           most_averaged);
      case OpKind::RepeatHeads:
      case OpKind::DropPath:
        if (in(0).shape.rank() < Shape::max_rank) return "";
        return fmt::format("its input has {} axes; kernels do up to {}", in(0).shape.rank(),
                           Shape::max_rank - 1);
      case OpKind::LayerNorm:
      case OpKind::RmsNorm:
        return op_.inputs > 1 ? "" : "it has no weight; kernels need one";
      case OpKind::MeanPool:
        return mean_pool_defect();
      case OpKind::MaxPool:
        return max_pool_defect();
      case OpKind::Replicate:
      case OpKind::AllReduce:
      case OpKind::AllGather:
      case OpKind::ReduceScatter:
      case OpKind::Scatter:
      case OpKind::Receive:
      case OpKind::Send:
      case OpKind::VocabularyLoss:
        return "it exchanges something with other ranks, and a replay has none";
      case OpKind::Linear:
      case OpKind::MatMul:
      case OpKind::Conv2d:
      case OpKind::FlashAttention:
      case OpKind::MsLayerNorm:
      case OpKind::MsRmsNorm:
      case OpKind::Gelu:
      case OpKind::GeluComposed:
      case OpKind::Silu:
      case OpKind::Tanh:
      case OpKind::Sigmoid:
      case OpKind::Relu:
      case OpKind::ReGelu2:
      case OpKind::ReSilu2:
      case OpKind::Softmax:
      case OpKind::LogSoftmax:
      case OpKind::Add:
      case OpKind::Mul:
      case OpKind::Scale:
      case OpKind::Dropout:
      case OpKind::Cast:
      case OpKind::Rope:
      case OpKind::View:
      case OpKind::Select:
      case OpKind::Split:
      case OpKind::Copy:
      case OpKind::Concat:
      case OpKind::Embedding:
      case OpKind::NllLoss:
      case OpKind::Opaque:
        break;
    }
    return "";
  }

 private:
  const Tensor& in(std::size_t i) const { return trace_[trace_.inputs(op_)[i]]; }
  const Tensor& out(std::size_t i) const { return trace_[trace_.outputs(op_)[i]]; }

  static std::string wrong_dtype(const Tensor& tensor, std::string_view need) {
    return fmt::format("{} is {}; kernels need {}", quoted(tensor.name), to_string(tensor.dtype),
                       need);
  }

  bool is_transform() const {
    return is_view(op_.kind) || op_.kind == OpKind::Copy || op_.kind == OpKind::Concat ||
           op_.kind == OpKind::RepeatHeads;
  }

  const Tensor* operand_of(Operands bits) const {
    const TensorId tensor =
        bits == 0 ? no_tensor : operand(trace_, op_, static_cast<int>(std::countr_zero(bits)));
    return tensor == no_tensor ? nullptr : &trace_[tensor];
  }

  /// Up to 2^53 a double is a whole number, and one that fits into what kernels count with.
  std::string attribute_defect() const {
    for (const Attribute& attribute : trace_.attributes_of(op_))
      if (std::abs(attribute.value) > 0x1p53)
        return fmt::format("its {} is beyond 2^53",
                           attribute_keys[static_cast<std::size_t>(attribute.key)].name);
    return "";
  }

  std::string dtype_defect() const {
    const OpRow& row = row_of(op_.kind);
    const Tensor* const places = operand_of(row.places);
    const Tensor* const raw = operand_of(row.raw_bytes);
    if (places && places->dtype != DType::Int64) return wrong_dtype(*places, "int64");
    if (op_.kind == OpKind::Scale && op_.outputs > 1 && out(1).dtype != DType::Float64)
      return wrong_dtype(out(1), "float64");
    for (const auto& operands : {trace_.inputs(op_), trace_.outputs(op_)})
      for (const TensorId id : operands) {
        const Tensor& tensor = trace_[id];
        // A concatenation converts: a class token in fp32 may join 16-bit ones.
        const bool is_converted =
            op_.kind == OpKind::Concat && is_floating(tensor.dtype) && is_floating(out(0).dtype);
        if (is_transform() && !is_converted && tensor.dtype != out(0).dtype)
          return wrong_dtype(tensor,
                             fmt::format("{} for all that it moves", to_string(out(0).dtype)));
        const bool is_mask = op_.kind == OpKind::Cast && tensor.dtype == DType::Bool;
        if (!is_transform() && !is_mask && &tensor != places && &tensor != raw &&
            !is_floating(tensor.dtype))
          return wrong_dtype(tensor, "a floating-point number");
      }
    return "";
  }

  std::string mean_pool_defect() const {
    const Shape &x = in(0).shape, &y = out(0).shape;
    const bool fits = x.rank() >= 2 && y == Shape{x[0], x.back()};
    return fits ? "" : "kernels pool [b, ..., c] to [b, c]";
  }

  std::string max_pool_defect() const {
    const Shape &x = in(0).shape, &y = out(0).shape;
    if (x.rank() != 4 || y.rank() != 4 || x[0] != y[0] || x[1] != y[1])
      return "kernels pool planes: [n, c, h, w] to [n, c, h', w']";
    if (op_.outputs < 2) return "its backward needs the places of the maxima as a second output";
    // Whole numbers no larger than a plane, so that nothing overflows; and every window has a part
    // inside of the plane.
    const auto is_whole = [&](AttributeKey key, double least) {
      const double value = attribute(trace_, op_, key, least);
      const auto most = static_cast<double>(2 * std::min(x[2], x[3]) + 1);
      return value == std::floor(value) && value >= least && value <= most;
    };
    constexpr std::string_view unsuitable = "its window, stride and padding do not suit its planes";
    if (attribute(trace_, op_, AttributeKey::Window) < 1 || !is_whole(AttributeKey::Window, 1) ||
        !is_whole(AttributeKey::Stride, 1) || !is_whole(AttributeKey::Padding, 0))
      return std::string(unsuitable);
    const Settings settings = settings_of(trace_, op_);
    const std::int64_t window = settings.window, padding = settings.padding;
    if (2 * padding > window) return std::string(unsuitable);
    for (const std::size_t axis : {2u, 3u}) {
      const std::int64_t padded = x[axis] + 2 * padding;
      if (padded < window || y[axis] != (padded - window) / settings.stride + 1)
        return "its window, stride and padding do not make that shape";
    }
    return "";
  }

  const Trace& trace_;
  const Op& op_;
};

}  // namespace

std::string kernel_defect(const Trace& trace, const Op& op) { return Limits(trace, op).defect(); }

void require_kernels(const Trace& trace) {
  for (const Op& op : trace.ops) {
    if (is_view(op.kind)) continue;
    if (const std::string why = kernel_defect(trace, op); !why.empty())
      throw InputError(fmt::format("cannot replay forward of {}: {}", quoted(op.name), why));
  }
}

}  // namespace tidemark::profiler
