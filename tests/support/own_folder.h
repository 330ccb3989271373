// A folder for the files of one test: tests of one program run beside each other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace tidemark {

/// Empty, called after the test, without a slash at its end.
inline std::string own_folder() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test.test_suite_name()) + "-" + test.name();
  std::ranges::replace(name, '/', '-');  // of tests with parameters
  const std::string folder = testing::TempDir() + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace tidemark
