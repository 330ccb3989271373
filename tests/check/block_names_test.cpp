// Block names that count up form ranges, which contain exactly the names that they were made of.
#include "analysis/check/block_names.h"

#include <gtest/gtest.h>

namespace tidemark::regression::block_names_test {
namespace {

using Names = std::vector<std::string>;

TEST(BlockNames, ThatCountUpAreOneRange) {
  EXPECT_EQ(block_ranges({"blocks.0", "blocks.1", "blocks.2"}), Names{"blocks.0-2"});
  EXPECT_EQ(block_ranges({"stages.0.blocks.0", "stages.0.blocks.1", "stages.1.blocks.0"}),
            (Names{"stages.0.blocks.0-1", "stages.1.blocks.0"}));
  EXPECT_EQ(block_ranges({"a.0", "a.2", "a.3", "head"}), (Names{"a.0", "a.2-3", "head"}));
  EXPECT_EQ(block_ranges({"7", "8"}), Names{"7-8"});
  EXPECT_EQ(block_ranges({"a.06", "a.7"}), (Names{"a.06", "a.7"}));
  EXPECT_TRUE(block_ranges({}).empty());
}

// Also where a name itself looks like a range, or a number has no end.
TEST(BlockNames, AreAllInTheirRangesAndOthersAreNot) {
  const Names names = {"blocks.0", "blocks.1", "blocks.3", "x-2", "a.1-4", "99999999999999999999"};
  const Names ranges = block_ranges(names);
  for (const std::string& name : names) EXPECT_TRUE(is_in_ranges(ranges, name)) << name;
  EXPECT_TRUE(is_in_ranges({"a.3-5"}, "a.3") && is_in_ranges({"a.3-5"}, "a.5"));
  for (const char* other : {"blocks.2", "blocks.4", "blocks", "stages.0", "x-1", "", "blocks.01"})
    EXPECT_FALSE(is_in_ranges(ranges, other)) << other;
  for (const char* other : {"a.2", "a.6", "b.4", "a.4-5"})
    EXPECT_FALSE(is_in_ranges({"a.3-5"}, other)) << other;
}

}  // namespace
}  // namespace tidemark::regression::block_names_test
