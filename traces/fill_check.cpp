// What a fill asks of the tensor that it fills.
#include <cmath>

#include "traces/trace_check.h"

namespace tidemark {
namespace {

bool is_square(std::int64_t n) {
  const auto root = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(n))));
  return root * root == n;
}

/// What is needed and not there; "" if all is well.
struct Needs {
  const Tensor& tensor;

  bool is_whole() const { return tensor.dtype == DType::Int64; }
  std::size_t rank() const { return tensor.shape.rank(); }
  std::int64_t dim(std::size_t i) const { return tensor.shape[i]; }

  std::string_view operator()(const fill::Words&) const { return is_whole() ? "" : "int64"; }
  std::string_view operator()(const fill::Pixels&) const {
    return is_floating(tensor.dtype) && rank() == 4 ? "" : "numbers [batch, channels, y, x]";
  }
  std::string_view operator()(const fill::ImageClasses&) const {
    return is_whole() && rank() == 1 ? "" : "int64 [batch]";
  }
  std::string_view operator()(const fill::Positions&) const {
    const bool counts = is_whole() || tensor.dtype == DType::Float32;
    return counts && rank() >= 1 ? "" : "int64 or float32 [..., tokens]";
  }
  std::string_view operator()(const fill::CausalMask&) const {
    const bool fits = rank() >= 2 && tensor.shape.back() >= tensor.shape.back(1);
    return is_floating(tensor.dtype) && fits ? "" : "numbers [..., tokens, as many keys or more]";
  }
  std::string_view operator()(const fill::PaddingMask&) const {
    return is_floating(tensor.dtype) ? "" : "numbers";
  }
  std::string_view operator()(const fill::Constant& fill) const {
    if (is_floating(tensor.dtype)) return "";
    return is_whole() && fill.value == std::floor(fill.value) ? "" : "numbers, or int64 if whole";
  }
  std::string_view operator()(const fill::SeamMask& fill) const {
    const bool fits = rank() == 4 && dim(2) == dim(3) && is_square(dim(0)) && is_square(dim(3)) &&
                      fill.shift * fill.shift < dim(3);
    return is_floating(tensor.dtype) && fits
               ? ""
               : "numbers [windows, 1, tokens, tokens], squares of a grid and of a window that is "
                 "wider than the shift";
  }
  std::string_view operator()(const fill::WindowDifferences&) const {
    const std::int64_t pairs = numel(tensor.shape);
    const bool fits = is_square(pairs) && is_square(std::llround(std::sqrt(pairs)));
    return is_whole() && fits ? "" : "int64, one for each two tokens of a square window";
  }
  std::string_view operator()(const fill::AxisDifferences&) const {
    const bool fits = rank() == 2 && (dim(0) % dim(1) == 0 || dim(1) % dim(0) == 0);
    return is_whole() && fits ? "" : "int64 [q side, k side], one a multiple of the other";
  }
  std::string_view operator()(const fill::RelativeBuckets& fill) const {
    const bool fits = is_square(numel(tensor.shape)) || fill::is_line_of_buckets(tensor.shape);
    if (!is_whole() || !fits) return "int64, one for each two tokens or for each distance";
    const std::int64_t near = fill.buckets / (fill.looks_ahead ? 4 : 2);
    return near >= 1 && fill.farthest > near ? "" : "fewer buckets, or a farther distance";
  }
  std::string_view operator()(const fill::RotaryTable&) const {
    const bool fits = rank() >= 2 && tensor.shape.back() % 2 == 0;
    return is_floating(tensor.dtype) && fits ? "" : "numbers [..., tokens, an even width]";
  }
};

}  // namespace

std::string_view unmet_need(const Tensor& tensor, const InputFill& fill) {
  return std::visit(Needs{tensor}, fill);
}

}  // namespace tidemark
