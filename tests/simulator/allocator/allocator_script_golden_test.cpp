// tests/golden/allocator: what PyTorch 2.6.0 itself answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/allocator/allocator_script.h"

namespace tidemark::allocator::allocator_script_golden_test {
namespace {

const std::filesystem::path folder = std::filesystem::path(TIDEMARK_TESTS_DIR) / "golden/allocator";

std::vector<std::string> script_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".in") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read(const std::string& file_name) {
  std::ifstream file(folder / file_name);
  EXPECT_TRUE(file) << file_name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

class AllocatorGolden : public testing::TestWithParam<std::string> {};

TEST_P(AllocatorGolden, GivesTheLinesOfPyTorch) {
  const std::string file_name = GetParam() + ".in";
  const std::string output = run_allocator_script(read(file_name), file_name);
  const std::string expected = read(GetParam() + ".out");
  const auto found_lines = lines(output);
  const auto expected_lines = lines(expected);
  for (std::size_t i = 0; i < std::min(found_lines.size(), expected_lines.size()); ++i)
    ASSERT_EQ(found_lines[i], expected_lines[i]) << "line " << i + 1;
  EXPECT_EQ(output.size(), expected.size());
}

INSTANTIATE_TEST_SUITE_P(Scripts, AllocatorGolden, testing::ValuesIn(script_names()),
                         [](const auto& script) { return script.param; });

TEST(AllocatorGoldenFiles, AreAllThere) { EXPECT_GE(script_names().size(), 11u); }

}  // namespace
}  // namespace tidemark::allocator::allocator_script_golden_test
