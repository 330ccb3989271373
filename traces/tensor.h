// A tensor is one logical allocation: name, shape, dtype, category, and the storage that it shares.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/names.h"
#include "base/units.h"
#include "traces/name_pool.h"

namespace tidemark {

enum class TensorId : std::uint32_t {};
constexpr std::size_t index(TensorId id) { return static_cast<std::size_t>(id); }
inline constexpr TensorId no_tensor{0xffffffff};

enum class OpId : std::uint32_t {};
constexpr std::size_t index(OpId id) { return static_cast<std::size_t>(id); }
inline constexpr OpId no_op{0xffffffff};

/// Into Trace::fills.
enum class FillId : std::uint32_t {};
constexpr std::size_t index(FillId id) { return static_cast<std::size_t>(id); }
inline constexpr FillId no_fill{0xffffffff};

/// Float8 has four bits of exponent and three of mantissa, each half of a Float4x2 two and one;
/// numbers beside a factor of their tensor or group.
enum class DType : std::uint8_t {
  Float32,
  Float16,
  BFloat16,
  Float64,
  Int64,
  UInt8,
  Bool,
  Float8,
  Float4x2,
};

struct DTypeRow {
  DType value;
  std::string_view name;
  std::int64_t bytes;
};

inline constexpr std::array dtypes = {DTypeRow{DType::Float32, "float32", 4},
                                      DTypeRow{DType::Float16, "float16", 2},
                                      DTypeRow{DType::BFloat16, "bfloat16", 2},
                                      DTypeRow{DType::Float64, "float64", 8},
                                      DTypeRow{DType::Int64, "int64", 8},
                                      DTypeRow{DType::UInt8, "uint8", 1},
                                      DTypeRow{DType::Bool, "bool", 1},
                                      DTypeRow{DType::Float8, "float8_e4m3fn", 1},
                                      DTypeRow{DType::Float4x2, "float4_e2m1fn_x2", 1}};
static_assert(is_in_order(dtypes));

constexpr std::int64_t size_of(DType dtype) {
  return dtypes[static_cast<std::size_t>(dtype)].bytes;
}
constexpr std::string_view to_string(DType dtype) {
  return dtypes[static_cast<std::size_t>(dtype)].name;
}
constexpr bool is_floating(DType dtype) { return dtype <= DType::Float64; }

/// What memory is for. PyTorch's words (torch.profiler's memory categories) plus workspace,
/// communication and unknown: every byte has a label.
enum class Category : std::uint8_t {
  Parameter,
  Gradient,
  OptimizerState,
  Activation,
  Temporary,
  Input,
  Workspace,
  Communication,
  Unknown,
};

inline constexpr std::array categories = {
    Named{Category::Parameter, std::string_view("parameter")},
    Named{Category::Gradient, std::string_view("gradient")},
    Named{Category::OptimizerState, std::string_view("optimizer_state")},
    Named{Category::Activation, std::string_view("activation")},
    Named{Category::Temporary, std::string_view("temporary")},
    Named{Category::Input, std::string_view("input")},
    Named{Category::Workspace, std::string_view("workspace")},
    Named{Category::Communication, std::string_view("communication")},
    Named{Category::Unknown, std::string_view("unknown")}};
static_assert(is_in_order(categories));
inline constexpr std::size_t category_count = categories.size();

constexpr std::string_view to_string(Category category) {
  return categories[static_cast<std::size_t>(category)].name;
}

/// Up to six dimensions, outermost first; a scalar has none.
class Shape {
 public:
  static constexpr std::size_t max_rank = 6;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  std::span<const std::int64_t> dims() const { return {dims_.data(), rank_}; }
  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t i) const { return dims_[i]; }
  /// The i-th dimension from the end; back() is the width of a [batch, tokens, width] tensor.
  std::int64_t back(std::size_t i = 0) const { return dims_[rank_ - 1 - i]; }
  /// The same shape with its last dimension replaced.
  Shape with_back(std::int64_t dim) const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, max_rank> dims_{};
  std::uint8_t rank_ = 0;
};

/// Number of elements. Throws InputError above 2^57, where the bytes would exceed `largest_size`.
std::int64_t numel(const Shape& shape);

/// "[64, 197, 768]"
std::string to_text(const Shape& shape);

struct Tensor {
  Name name;
  Shape shape;
  DType dtype = DType::Float32;
  Category category = Category::Activation;
  bool trainable = false;        ///< a parameter that gets a gradient
  TensorId storage = no_tensor;  ///< the tensor that owns the bytes: itself unless this is a view
  OpId held_until = no_op;  ///< a local variable of the model's code keeps it until this op has run
  FillId fill = no_fill;    ///< what it is before the step; none: random
  std::uint32_t rng_key = 0;  ///< before the step: (seed, key) → its random numbers; 0 = by place

  bool operator==(const Tensor&) const = default;
};

/// Size of the tensor's own elements (a view of half a storage has half its bytes).
Bytes size(const Tensor& tensor);

}  // namespace tidemark
