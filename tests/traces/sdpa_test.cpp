// Which attention kernel PyTorch 2.6 picks, as its own run over a stand-in for the device showed.
#include "traces/models/sdpa.h"

#include <gtest/gtest.h>

namespace tidemark::sdpa_test {
namespace {

constexpr AttentionKernel flash = AttentionKernel::Flash;
constexpr AttentionKernel efficient = AttentionKernel::MemoryEfficient;
constexpr AttentionKernel composed = AttentionKernel::Composed;

TEST(Sdpa, FlashTakesSixteenBitsWithoutAMask) {
  EXPECT_EQ(sdpa_kernel({.dtype = DType::BFloat16, .head_width = 64}, 80), flash);
  EXPECT_EQ(sdpa_kernel({.dtype = DType::Float16, .head_width = 33}, 90), flash);
  EXPECT_EQ(sdpa_kernel({.dtype = DType::BFloat16, .head_width = 64, .grouped = true}, 80), flash);
  EXPECT_EQ(sdpa_kernel({.dtype = DType::BFloat16, .head_width = 64, .masked = true}, 80),
            efficient);
  EXPECT_EQ(sdpa_kernel({.dtype = DType::Float32, .head_width = 64}, 80), efficient);
  EXPECT_EQ(sdpa_kernel({.dtype = DType::BFloat16, .head_width = 264}, 80), efficient);
}

TEST(Sdpa, TheMemoryEfficientKernelTakesAlignedHeadsOfTheSameNumber) {
  EXPECT_EQ(sdpa_kernel({.dtype = DType::Float32, .head_width = 36}, 80), efficient);
  EXPECT_EQ(sdpa_kernel({.dtype = DType::Float32, .head_width = 33}, 80), composed);
  EXPECT_EQ(sdpa_kernel({.dtype = DType::Float32, .head_width = 33}, 75), efficient);
  EXPECT_EQ(sdpa_kernel({.dtype = DType::BFloat16, .head_width = 36, .masked = true}, 80),
            composed);
  EXPECT_EQ(sdpa_kernel({.dtype = DType::Float32, .head_width = 64, .grouped = true}, 80),
            composed);
}

TEST(Sdpa, NoKernelRepeatsAHeadByItself) {
  EXPECT_EQ(sdpa_kernel({.dtype = DType::BFloat16, .head_width = 64, .broadcasts = true}, 80),
            composed);
}

TEST(Sdpa, FlashTakesValuesOfTheWidthOfKeysOnly) {
  const AttentionCall call{.dtype = DType::BFloat16, .head_width = 192, .value_width = 128};
  EXPECT_EQ(sdpa_kernel(call, 80), efficient);
}

TEST(Sdpa, OldDevicesHaveNoFlashAndNoBf16) {
  EXPECT_EQ(sdpa_kernel({.dtype = DType::Float16, .head_width = 64}, 75), efficient);
  EXPECT_EQ(sdpa_kernel({.dtype = DType::BFloat16, .head_width = 64}, 75), composed);
}

}  // namespace
}  // namespace tidemark::sdpa_test
