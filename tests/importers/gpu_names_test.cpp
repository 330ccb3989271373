// Names of kernels, as compilers write them, made readable.
#include "importers/gpu_names.h"

#include <gtest/gtest.h>

namespace tidemark::importers::gpu_names_test {
namespace {

TEST(KernelName, IsReadableAndWithoutParameters) {
  EXPECT_EQ(kernel_name("_Z4gemmIfLi128EEvPT_"), "gemm<float, 128>");
  EXPECT_EQ(kernel_name("void gemm<float, 128>(float*)"), "gemm<float, 128>");
  EXPECT_EQ(kernel_name("_Znonsense"), "_Znonsense");
  EXPECT_EQ(kernel_name("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE"
                        "St5arrayIPcLm3EEEEviT0_T1_"),
            "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
            "std::array<char*, 3ul> >");
}

std::string reference(int number) {
  constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (number == 0) return "S_";
  std::string text;
  for (number -= 1; text.empty() || number > 0; number /= 36)
    text.insert(text.begin(), digits[static_cast<std::size_t>(number % 36)]);
  return "S" + text + "_";
}

// P<int, int>, then pairs of the pair before: 2^levels times "int". 40 levels are 12 TiB.
std::string nested_pairs(int levels) {
  std::string name = "_ZN5flash4copyI1PIiiE";
  for (int i = 1; i <= levels; ++i)
    name += reference(2) + "I" + reference(i + 2) + reference(i + 2) + "E";
  return name + "EEvv";
}

TEST(KernelName, OfMoreTextThanThereIsMemoryIsItsBeginning) {
  EXPECT_EQ(kernel_name(nested_pairs(2)),
            "flash::copy<P<int, int>, P<P<int, int>, P<int, int> >, "
            "P<P<P<int, int>, P<int, int> >, P<P<int, int>, P<int, "
            "int> > > >");
  EXPECT_EQ(kernel_name(nested_pairs(40)), "flash::copy<…>");
}

TEST(KernelName, OfMoreTextThanThereIsMemoryMayBeginWithAnything) {
  std::string tail = nested_pairs(40).substr(2);
  EXPECT_EQ(kernel_name("_Z" + tail.substr(1)), "flash::copy<…>");
  EXPECT_EQ(kernel_name("_ZK" + tail), "flash::copy<…>");
  EXPECT_EQ(kernel_name("_ZS" + tail).substr(0, 5), "_ZSN5");
  EXPECT_EQ(kernel_name("_Z99999999999999999999f" + tail).substr(0, 9), "fN5flash4");
}

}  // namespace
}  // namespace tidemark::importers::gpu_names_test
