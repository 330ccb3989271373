// The index of names: whatever was added is found where it stood first.
#include "base/name_index.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace tidemark::name_index_test {
namespace {

TEST(NameIndex, AnEmptyOneFindsNothing) {
  const NameIndex index;
  EXPECT_EQ(index.find("a"), NameIndex::nothing);
  EXPECT_EQ(index.find(""), NameIndex::nothing);
}

TEST(NameIndex, TheFirstOfEqualNamesCounts) {
  NameIndex index;
  EXPECT_EQ(index.add("a"), 0u);
  EXPECT_EQ(index.add("b"), 1u);
  EXPECT_EQ(index.add("a"), 0u);
  EXPECT_EQ(index.add(""), 3u);
  EXPECT_EQ(index.find("a"), 0u);
  EXPECT_EQ(index.find("b"), 1u);
  EXPECT_EQ(index.find(""), 3u);
  EXPECT_EQ(index.find("c"), NameIndex::nothing);
  EXPECT_EQ(index.names(), (std::vector<std::string_view>{"a", "b", "a", ""}));
}

// Against the standard's map, with and without room made before, and with every third name twice.
TEST(NameIndex, KeepsItsAnswersWhileItGrows) {
  std::vector<std::string> names;
  for (int i = 0; i < 5000; ++i) names.push_back("blocks." + std::to_string(i - i % 3 / 2));
  for (const std::size_t room : {0u, 10u, 5000u}) {
    NameIndex index;
    index.reserve(room);
    std::unordered_map<std::string_view, std::uint32_t> expected;
    for (std::uint32_t i = 0; i < names.size(); ++i)
      EXPECT_EQ(index.add(names[i]), expected.emplace(names[i], i).first->second);
    EXPECT_LT(expected.size(), names.size());
    for (const auto& [name, place] : expected) EXPECT_EQ(index.find(name), place);
    EXPECT_EQ(index.find("blocks.5001"), NameIndex::nothing);
  }
}

}  // namespace
}  // namespace tidemark::name_index_test
