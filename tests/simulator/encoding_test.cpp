// How large codes and ranges are, which groups Mesa's layers have, and what fits no tensor.
#include "simulator/encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::encoding_test {
namespace {

using testing::HasSubstr;

TEST(Encoding, CodesFillWholeBytes) {
  for (const auto& [bits, bytes] : {std::pair{8, 7}, {4, 4}, {2, 2}})
    EXPECT_EQ(size_of_codes(mesa_encoding({7}, bits), {7}), Bytes{bytes}) << bits;
  EXPECT_EQ(size_of_codes(mesa_encoding({}, 2), {}), Bytes{1});
}

// Sixteen bytes for each of twelve heads; for each 64 of 128 channels; for all of 96.
TEST(Encoding, GroupsAreHeadsOrChannels) {
  const Shape heads{2, 12, 197, 197}, channels{2, 197, 128}, uneven{2, 197, 96};
  EXPECT_EQ(size_of_ranges(mesa_encoding(heads), heads), Bytes{16 * 12});
  EXPECT_EQ(size_of_ranges(mesa_encoding(channels), channels), Bytes{16 * 2});
  EXPECT_EQ(size_of_ranges(mesa_encoding(uneven), uneven), Bytes{16});
  EXPECT_EQ(size_of_ranges(mesa_encoding(uneven, 8, 32), uneven), Bytes{16 * 3});
  EXPECT_EQ(groups_of(mesa_encoding({}), {}), 1);
}

TEST(Encoding, SaysWhatFitsNoTensor) {
  EXPECT_EQ(misfit(mesa_encoding({3, 64}, 4), {3, 64}), "");
  EXPECT_THAT(misfit({.bits = 3}, {64}), HasSubstr("2, 4, 8 bits, not 3"));
  EXPECT_THAT(misfit({.metadata = 4}, {64}), HasSubstr("4 bytes hold no range"));
  EXPECT_THAT(misfit({.group = 8, .axis = 1}, {64}), HasSubstr("no axis 1"));
  EXPECT_THAT(misfit({.group = 24}, {64}), HasSubstr("24 do not divide its axis 0, which has 64"));
}

}  // namespace
}  // namespace tidemark::encoding_test
