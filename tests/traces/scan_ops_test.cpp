// Rows of scans: what mamba_ssm's own code requested of PyTorch, and products counted by hand.
#include "traces/scan_ops.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tidemark::scan_ops_test {
namespace {

/// What tests/reference/make_scan_fixture.py prints: requests beside the inputs in the forward, and
/// in the backward beside the gradients that it returns.
struct Requested {
  ScanSizes sizes;
  std::int64_t forward, backward;
};

ScanSizes sizes(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t width,
                std::int64_t groups, std::int64_t state, std::int64_t chunk, std::int64_t out = 0,
                DType dtype = DType::BFloat16) {
  return {.batch = batch,
          .tokens = tokens,
          .heads = heads,
          .head_width = width,
          .groups = groups,
          .state = state,
          .chunk = chunk,
          .out = out,
          .dtype = dtype};
}

const std::array requested = {
    Requested{sizes(1, 1024, 16, 64, 4, 128, 128), 13238272, 32321984},
    Requested{sizes(2, 1000, 16, 64, 8, 64, 128), 27656192, 59256256},
    Requested{sizes(1, 1024, 16, 64, 4, 128, 256), 14286848, 42807488},
    Requested{sizes(1, 8192, 64, 64, 8, 128, 128), 341835776, 714034816},
    Requested{sizes(1, 512, 8, 32, 1, 64, 64, 0, DType::Float32), 2588672, 4874976},
    Requested{sizes(1, 1024, 16, 64, 4, 128, 128, 512), 12206080, 35991968},
    Requested{sizes(2, 1000, 8, 64, 2, 128, 128, 256), 11984512, 36345552},
    Requested{sizes(1, 8192, 64, 64, 8, 128, 128, 2688), 352583680, 828329472}};

std::int64_t results(const ScanSizes& s) {
  const std::int64_t rows = s.batch * s.tokens, element = size_of(s.dtype);
  const std::int64_t states = s.batch * s.inner() * s.state * 4;
  if (s.out == 0) return 2 * rows * s.inner() * element + states;
  return rows * (s.inner() + s.out) * element + states + rows * s.groups * 4;
}

TEST(ScanRow, RequestsInTheForwardWhatTheCodeDoes) {
  for (const Requested& of : requested)
    EXPECT_EQ(results(of.sizes) + scan_row(of.sizes).forward.workspace.count, of.forward);
}

// The gradients of a layer's small parameters are not there yet where it needs most.
TEST(ScanRow, RequestsInTheBackwardWhatTheCodeDoesButForSmallTensors) {
  for (const Requested& of : requested) {
    const double ours = static_cast<double>(scan_row(of.sizes).backward.workspace.count);
    EXPECT_NEAR(ours / static_cast<double>(of.backward), 1, 1.6e-3) << of.sizes.tokens;
  }
}

TEST(ScanRow, LeavesOutTheGradientOfAFrozenProduct) {
  ScanSizes frozen = sizes(1, 1024, 16, 64, 4, 128, 128, 512);
  const std::int64_t trained = scan_row(frozen).backward.workspace.count;
  frozen.trains_product = false;
  EXPECT_EQ(scan_row(frozen).backward.workspace.count - trained, 1024 * 512 * 2);
}

// Two chunks of 4 tokens, 2 heads of 3 columns, one group, states of 5; the convolution has 6 + 10
// channels. 10 of 16 products of a chunk lie on and below the diagonal.
TEST(ScanRow, CountsEachProductOnce) {
  const ScanSizes small = {
      .tokens = 8, .heads = 2, .head_width = 3, .groups = 1, .state = 5, .kernel = 4, .chunk = 4};
  const std::int64_t conv = 2 * 8 * 16 * 4, states = 2 * 8 * 6 * 5, groups = 2 * 2 * 16 * 5;
  const std::int64_t triangle = 2 * 2 * 10 * 6;
  EXPECT_EQ(scan_row(small).forward.flops, conv + groups + 2 * states + triangle);
  EXPECT_EQ(scan_row(small).backward.flops, 3 * conv + 3 * groups + 5 * states + 3 * triangle);
  ScanSizes multiplied = small;
  multiplied.out = 7;
  EXPECT_EQ(*scan_row(multiplied).forward.flops - *scan_row(small).forward.flops, 2 * 8 * 6 * 7);
  EXPECT_EQ(*scan_row(multiplied).backward.flops - *scan_row(small).backward.flops,
            2 * 2 * 8 * 6 * 7);
}

TEST(ScanRow, KeepsWhatItReadAndItsResultBeforeTheGate) {
  const Operands read = 0b11'1111;
  EXPECT_EQ(scan_row(sizes(1, 8, 2, 4, 1, 4, 4)).saved, read | output_bit(1));
  EXPECT_EQ(scan_row(sizes(1, 8, 2, 4, 1, 4, 4, 16)).saved,
            0b1111'1111U | output_bit(1) | output_bit(3));
}

// Groups of 512 columns take two warps: 132 · 2 / 8 = 33 rows of partial sums.
TEST(GroupNormRow, SumsItsWeightsGradientByRows) {
  Tensor x;
  x.shape = {1, 16, 4096}, x.dtype = DType::BFloat16;
  EXPECT_EQ(group_norm_row(x, 8).backward.workspace, Bytes{33 * 4096 * 4});
}

}  // namespace
}  // namespace tidemark::scan_ops_test
