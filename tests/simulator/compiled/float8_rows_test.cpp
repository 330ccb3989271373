// Bytes and kernels of linears in eight bits in compiled code, by hand.
#include "simulator/compiled/float8_rows.h"

#include <gtest/gtest.h>

namespace tidemark::float8_rows_test {
namespace {

constexpr std::int64_t rows = 32, in = 64, out = 48;
constexpr std::int64_t x = rows * in, w = in * out, y = rows * out;
constexpr Bytes scratch{1 << 20};

/// In bf16, of an input that a fused kernel makes of two tensors as large.
Float8Product product() {
  return {.x = x,
          .w = w,
          .y = y,
          .rows = rows,
          .wide = 2,
          .stored = 2,
          .needs = Bytes{4 * x},
          .wanted = 0b11};
}

// The weight is read for the largest, for its codes and for these turned.
TEST(Float8Rows, OfAWeightHaveItsCodesTwice) {
  const OpaqueRow row = float8_codes_row(product());
  EXPECT_EQ(row.forward.moved, Bytes{3 * 2 * w + 2 * w});
  EXPECT_EQ(row.forward.kernels, 4);
  EXPECT_EQ(row.gradients, 0u);
}

TEST(Float8Rows, OfAProductCastItsInputOnce) {
  OpaqueRow row = float8_product_row(product());
  EXPECT_EQ(row.forward.flops, 2 * rows * in * out);
  EXPECT_EQ(row.forward.moved, Bytes{x + w + 2 * y});
  EXPECT_EQ(row.forward.streamed, Bytes{3 * x});
  EXPECT_EQ(row.forward.workspace, Bytes{x + w});
  EXPECT_EQ(row.forward.scratch, scratch);
  EXPECT_EQ(row.forward.kernels, 4);
  Float8Product of_library = product(), cast_before = product();
  of_library.x_is_fused = false, cast_before.codes_x = false;
  EXPECT_EQ(float8_product_row(of_library).forward.streamed, Bytes{5 * x});
  EXPECT_EQ(float8_product_row(cast_before).forward.streamed, Bytes{});
  EXPECT_EQ(float8_product_row(cast_before).forward.kernels, 1);
}

// The gradient is read three times and its codes are there by rows and turned; x is made again of
// what it was made of, for its largest and for its codes.
TEST(Float8Rows, OfABackwardCastTheGradientAndTheInput) {
  const OpaqueRow row = float8_product_row(product());
  EXPECT_EQ(row.backward.flops, 2 * 2 * rows * in * out);
  EXPECT_EQ(row.backward.moved, Bytes{y + w + 2 * x + y + x + 2 * w});
  EXPECT_EQ(row.backward.streamed, Bytes{3 * 2 * y + 2 * y + 2 * 4 * x + x});
  EXPECT_EQ(row.backward.workspace, Bytes{y + x});
  EXPECT_EQ(row.backward.kernels, 9);
  EXPECT_EQ(row.backward.scratch, scratch);
}

// Kept codes of x are turned in the forward, and not made in the backward.
TEST(Float8Rows, OfKeptCodesAreTurnedInTheForward) {
  Float8Product keeps = product();
  keeps.keeps_codes_of_x = true, keeps.needs = {};
  const OpaqueRow row = float8_product_row(keeps);
  EXPECT_EQ(row.forward.streamed, Bytes{3 * x + 3 * x});
  EXPECT_EQ(row.forward.kernels, 5);
  EXPECT_EQ(row.backward.streamed, Bytes{3 * 2 * y + 2 * y});
  EXPECT_EQ(row.backward.workspace, Bytes{y});
  EXPECT_EQ(row.backward.kernels, 6);
}

// An fp32 weight's gradient is made in bf16 and cast.
TEST(Float8Rows, OfAWideWeightCastItsGradient) {
  Float8Product wide = product();
  wide.stored = 4;
  const OpaqueRow row = float8_product_row(wide), narrow = float8_product_row(product());
  EXPECT_EQ(row.backward.streamed, narrow.backward.streamed + Bytes{6 * w});
  EXPECT_EQ(row.backward.kernels, narrow.backward.kernels + 1);
  EXPECT_EQ(row.backward.workspace, Bytes{2 * w});
}

TEST(Float8Rows, OfAFrozenWeightMakeNoGradientOfIt) {
  Float8Product frozen = product();
  frozen.wanted = 0b01;
  const OpaqueRow row = float8_product_row(frozen);
  EXPECT_EQ(row.gradients, 1u);
  EXPECT_EQ(row.backward.moved, Bytes{y + w + 2 * x});
  EXPECT_EQ(row.backward.streamed, Bytes{2 * y + 3 * y});
  EXPECT_EQ(row.backward.workspace, Bytes{y});
}

}  // namespace
}  // namespace tidemark::float8_rows_test
