// Damaged names, sizes, storages, views and holds of tensors are named as defects.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/small_trace.h"

namespace tidemark::tensor_check_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> defects_after(void (*damage)(Trace&)) {
  Trace trace = small_trace();
  damage(trace);
  return check(trace);
}

Tensor unused(const Shape& shape) {
  return {.name = "unused", .shape = shape, .storage = TensorId{39}};
}

TEST(TensorCheck, AnUnusedTensorIsNoDefect) {
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors.push_back(unused({4})); }), IsEmpty());
}

TEST(TensorCheck, NamesDiffer) {
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[5].name = t.tensors[0].name; }),
              ElementsAre("/tensors/5/name: 'x' is the name of /tensors/0, too; need another"));
}

TEST(TensorCheck, DimensionsArePositive) {
  EXPECT_THAT(defects_after([](Trace& t) {
                t.tensors.push_back(unused({2, 0, -1}));
              }),
              ElementsAre("/tensors/39/shape/1: found 0; need 1 or more",
                          "/tensors/39/shape/2: found -1; need 1 or more"));
}

// 2^31 · 2^31 elements would overflow 64 bits as bytes.
TEST(TensorCheck, SizesAreCountable) {
  EXPECT_THAT(defects_after([](Trace& t) {
                t.tensors.push_back(unused({std::int64_t{1} << 31, std::int64_t{1} << 31}));
              }),
              ElementsAre("/tensors/39/shape: [2147483648, 2147483648] is larger than 1 EiB; use a "
                          "smaller batch, sequence or model"));
}

// 4 · 2^56 bytes are 2^58, and the other tensors are above it.
TEST(TensorCheck, TheSumIsCountableAndSaidOnce) {
  EXPECT_THAT(defects_after([](Trace& t) {
                for (std::uint32_t i = 39; i < 42; ++i)
                  t.tensors.push_back({.name = t.names.add(fmt::format("huge{}", i)),
                                       .shape = {std::int64_t{1} << 56},
                                       .storage = TensorId{i}});
              }),
              ElementsAre("/tensors/39/shape: all tensors up to this one have more than 2^58 "
                          "bytes; use a smaller batch, sequence or model"));
}

TEST(TensorCheck, OnlyFloatingParametersAreTrainable) {
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[0].trainable = true; }),
              ElementsAre("/tensors/0/trainable: 'x' is float32 input; need a floating-point "
                          "parameter that no op makes"));
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[2].dtype = DType::Int64; }),
              ElementsAre("/tensors/2/trainable: 'b0.norm.weight' is int64 parameter; need a "
                          "floating-point parameter that no op makes"));
}

TEST(TensorCheck, StorageExists) {
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[0].storage = no_tensor; }),
              ElementsAre("/tensors/0/storage: found tensor number 4294967295; need one below 39"));
}

TEST(TensorCheck, StorageIsNotAView) {
  EXPECT_THAT(defects_after([](Trace& t) {
                Tensor view = unused({2, 12});
                view.storage = tensor_named(t, "flat");
                t.tensors.push_back(view);
              }),
              ElementsAre("/tensors/39/storage: 'flat' is a view itself; need the tensor that owns "
                          "the bytes"));
}

TEST(TensorCheck, AViewHasTheDTypeAndCategoryOfItsStorage) {
  EXPECT_THAT(defects_after([](Trace& t) {
                t.tensors[32].dtype = DType::Float16;
                t.tensors[32].category = Category::Temporary;
              }),
              ElementsAre("/tensors/32/dtype: found float16; need float32 as 'b1.add2', the "
                          "storage",
                          "/tensors/32/category: found temporary; need activation as 'b1.add2', "
                          "the storage"));
}

TEST(TensorCheck, AViewIsNoLargerThanItsStorage) {
  EXPECT_THAT(defects_after([](Trace& t) {
                Tensor view = unused({25});
                view.storage = tensor_named(t, "b1.add2");
                t.tensors.push_back(view);
              }),
              ElementsAre("/tensors/39/shape: [25] has 100 bytes; need at most the 96 of "
                          "'b1.add2', the storage"));
}

TEST(TensorCheck, AHoldEndsAtAnOpAfterTheTensorIsMade) {
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[9].held_until = OpId{1}; }), IsEmpty());
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[9].held_until = OpId{0}; }),
              ElementsAre("/tensors/9/held_until: /ops/0 is before /ops/1 makes 'b0.fc'; need that "
                          "or a later one"));
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[9].held_until = OpId{16}; }),
              ElementsAre("/tensors/9/held_until: found op number 16; need one below 16"));
}

TEST(TensorCheck, MemoryIsHeldByItsOwner) {
  EXPECT_THAT(defects_after([](Trace& t) { t.tensors[32].held_until = OpId{14}; }),
              ElementsAre("/tensors/32/held_until: 'flat' is a view; need it on the tensor that "
                          "owns the bytes"));
}

}  // namespace
}  // namespace tidemark::tensor_check_test
