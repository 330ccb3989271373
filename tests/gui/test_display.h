// Runs a test again in a process of its own, which has a display.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace tidemark::gui {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;  // graphics drivers leak and race, and that is not ours
#else
inline constexpr bool is_sanitized = false;
#endif

inline bool has_display() { return std::getenv("TIDEMARK_HAS_TEST_DISPLAY") != nullptr; }

/// Null or why that is not possible.
inline const char* run_with_display(const std::string& test) {
  if (is_sanitized) return "not with sanitizers";
  if (std::system("command -v xvfb-run > /dev/null") != 0) return "xvfb is not installed";
  // One at a time: xvfb-run takes the first free display, and two that look at once take the same.
  const std::string lock = "flock " + testing::TempDir() + "tidemark_test_display.lock ";
  const std::string command = "LIBGL_ALWAYS_SOFTWARE=1 TIDEMARK_HAS_TEST_DISPLAY=1 " + lock +
                              "xvfb-run -a -s '-screen 0 1920x1200x24' "
                              "/proc/" +
                              std::to_string(::getpid()) + "/exe --gtest_filter=" + test;
  EXPECT_EQ(std::system(command.c_str()), 0);
  return nullptr;
}

}  // namespace tidemark::gui
