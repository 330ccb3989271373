// The GPU of the tests: one backend for the whole program.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kernels/backend.h"

namespace tidemark {

/// nullptr where there is no usable GPU; why_no_gpu() then says why.
Backend* gpu();
const std::string& why_no_gpu();

/// The plugin: where TIDEMARK_CUDA_PLUGIN points, else the one that was built with the tests. Empty
/// if there is none.
std::string plugin_of_tests();

}  // namespace tidemark

/// Skips the test, with the reason.
#define TIDEMARK_NEEDS_GPU() \
  if (::tidemark::gpu() == nullptr) GTEST_SKIP() << ::tidemark::why_no_gpu()
