// Loading the CUDA plugin, on machines that have none that works.
#include "kernels/cuda_plugin.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"

namespace tidemark::cuda_plugin_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(const std::string& file) {
  try {
    load_cuda_backend(file);
  } catch (const NoDevice& error) {
    return error.what();
  }
  return "no error";
}

TEST(CudaPlugin, AMissingOneIsNamedWithTheRemedy) {
  EXPECT_THAT(error_of("/nowhere/libtidemark_cuda.so"),
              AllOf(HasSubstr("no CUDA plugin at /nowhere/libtidemark_cuda.so"),
                    HasSubstr("TIDEMARK_CUDA_PLUGIN")));
}

TEST(CudaPlugin, ABrokenOneIsNamed) {
  const std::string file = testing::TempDir() + "broken_plugin.so";
  std::ofstream(file) << "not a library";
  EXPECT_THAT(error_of(file), AllOf(HasSubstr("cannot be loaded"), HasSubstr(file)));
}

TEST(CudaPlugin, AnyOtherLibraryIsToldFromIt) {
  Dl_info libc{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::malloc), &libc), 0);
  if (std::string(libc.dli_fname).find(".so") == std::string::npos)
    GTEST_SKIP() << "a sanitizer has its own malloc";
  EXPECT_THAT(error_of(libc.dli_fname), HasSubstr("is no CUDA plugin of Tidemark"));
}

TEST(CudaPlugin, OneOfAnotherVersionIsRefusedBeforeItIsCalled) {
  EXPECT_THAT(error_of(TIDEMARK_FAKE_LIBRARIES "/fake_plugin_of_another_version.so"),
              AllOf(HasSubstr("another version"), HasSubstr("build it again")));
}

TEST(CudaPlugin, WhatItSaysAboutTheGpuReachesTheUser) {
  EXPECT_EQ(error_of(TIDEMARK_FAKE_LIBRARIES "/fake_plugin_without_gpu.so"),
            "no usable NVIDIA GPU: this plugin is a test's");
}

TEST(CudaPlugin, TheEnvironmentNamesAnother) {
  setenv("TIDEMARK_CUDA_PLUGIN", "/nowhere/chosen.so", 1);
  try {
    load_cuda_backend();
    ADD_FAILURE();
  } catch (const NoDevice& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/chosen.so"));
  }
  unsetenv("TIDEMARK_CUDA_PLUGIN");
}

}  // namespace
}  // namespace tidemark::cuda_plugin_test
