// Shapes count from both ends, at most 2^57 elements are counted, and names are read back.
#include "traces/tensor.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "base/error.h"

namespace tidemark::tensor_test {
namespace {

TEST(Shape, CountsFromBothEnds) {
  const Shape shape = {64, 197, 768};
  EXPECT_EQ(shape.rank(), 3u);
  EXPECT_EQ(shape[0], 64);
  EXPECT_EQ(shape.back(), 768);
  EXPECT_EQ(shape.back(1), 197);
  EXPECT_EQ(shape.with_back(1), (Shape{64, 197, 1}));
  EXPECT_EQ(to_text(shape), "[64, 197, 768]");
}

TEST(Shape, AScalarHasNoDimensionAndOneElement) {
  EXPECT_EQ(Shape{}.rank(), 0u);
  EXPECT_EQ(numel(Shape{}), 1);
  EXPECT_EQ(to_text(Shape{}), "[]");
  EXPECT_NE(Shape{}, Shape{1});
}

TEST(Shape, HasAtMostSixDimensions) {
  EXPECT_EQ((Shape{1, 2, 3, 4, 5, 6}).rank(), Shape::max_rank);
  EXPECT_DEATH((Shape{1, 2, 3, 4, 5, 6, 7}), "max_rank");
}

TEST(Numel, IsTheProductUpTo2To57) {
  const std::int64_t largest = std::int64_t{1} << 57;
  EXPECT_EQ(numel({2, 3, 4}), 24);
  EXPECT_EQ(numel({largest}), largest);
  EXPECT_THROW(numel({largest, 2}), InputError);
  // 2^32 · 2^32 wraps around to 0 in 64 bits.
  EXPECT_THROW(numel({std::int64_t{1} << 32, std::int64_t{1} << 32}), InputError);
}

TEST(Numel, SaysWhatToDo) {
  try {
    numel({std::int64_t{1} << 32, std::int64_t{1} << 32});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "a tensor of shape [4294967296, 4294967296] is larger than 1 EiB; use a smaller "
                 "batch, sequence or model");
  }
}

TEST(Size, IsElementsTimesBytes) {
  const auto bytes = [](DType dtype) {
    return size({.name = "x", .shape = {2, 3}, .dtype = dtype}).count;
  };
  EXPECT_EQ(bytes(DType::Float32), 24);
  EXPECT_EQ(bytes(DType::BFloat16), 12);
  EXPECT_EQ(bytes(DType::Int64), 48);
  EXPECT_EQ(bytes(DType::Bool), 6);
}

TEST(DTypes, KnowWhichOfThemFloat) {
  for (const DType dtype : {DType::Float32, DType::Float16, DType::BFloat16, DType::Float64})
    EXPECT_TRUE(is_floating(dtype)) << to_string(dtype);
  for (const DType dtype : {DType::Int64, DType::UInt8, DType::Bool})
    EXPECT_FALSE(is_floating(dtype)) << to_string(dtype);
}

TEST(Tables, ReadBackTheirNames) {
  std::set<std::string_view> names;
  for (const auto& row : dtypes) {
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_EQ(parse_name(dtypes, "dtype", to_string(row.value)), row.value);
  }
  for (const auto& row : categories) {
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_EQ(parse_name(categories, "category", to_string(row.value)), row.value);
  }
}

TEST(Tensor, EqualityIsThatOfAllFields) {
  const Tensor tensor{.name = "x", .shape = {2}, .storage = TensorId{0}};
  Tensor other = tensor;
  EXPECT_EQ(other, tensor);
  other.held_until = OpId{3};
  EXPECT_NE(other, tensor);
}

}  // namespace
}  // namespace tidemark::tensor_test
