// How large codes and ranges are, which groups Mesa's layers and COAT's have, and what fits no
// tensor.
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

// A byte per element, filled up to four, and four bytes per group behind them.
TEST(Encoding, FloatsHaveTheirMagnitudesBehindThem) {
  EXPECT_EQ(size_of_codes(float8_encoding_of_tensor(), {2, 3, 64}), Bytes{384 + 4});
  EXPECT_EQ(size_of_codes(float8_encoding_of_tensor(), {3, 3}), Bytes{12 + 4});
  EXPECT_EQ(size_of_codes(float8_encoding({2, 3, 64}), {2, 3, 64}), Bytes{384 + 24 * 4});
  EXPECT_EQ(size_of_codes(float8_encoding({2, 3, 64}, 32), {2, 3, 64}), Bytes{384 + 12 * 4});
  EXPECT_EQ(size_of_ranges(float8_encoding({2, 3, 64}), {2, 3, 64}), Bytes{0});
}

// Neighbours where they divide a row, else the row; what is shorter is one group all together.
TEST(Encoding, GroupsOfFloatsAreNeighbours) {
  EXPECT_EQ(float8_encoding({2, 197, 64}).group, 16u);
  EXPECT_EQ(float8_encoding({2, 12, 197, 197}).group, 197u);
  EXPECT_EQ(float8_encoding({2, 197, 1}).group, 0u);
  EXPECT_EQ(float8_encoding({}).group, 0u);
  EXPECT_EQ(groups_of(float8_encoding({2, 12, 197, 197}), {2, 12, 197, 197}), 2 * 12 * 197);
  EXPECT_EQ(groups_of(float8_encoding({2, 197, 1}), {2, 197, 1}), 1);
}

TEST(Encoding, SaysWhatFloatsCannotHave) {
  Encoding floats = float8_encoding({3, 64});
  EXPECT_EQ(misfit(floats, {3, 64}), "");
  EXPECT_EQ(misfit(float8_encoding_of_tensor(), {}), "");
  EXPECT_THAT(misfit(floats, {64, 3}), HasSubstr("16 do not divide its rows of 3"));
  const auto with = [&](auto member, auto value) {
    Encoding other = floats;
    other.*member = value;
    return misfit(other, {3, 64});
  };
  EXPECT_THAT(with(&Encoding::bits, std::uint8_t{4}), HasSubstr("floats have 8 bits, not 4"));
  EXPECT_THAT(with(&Encoding::metadata, std::uint8_t{16}), HasSubstr("4 bytes per group, not 16"));
  EXPECT_THAT(with(&Encoding::delayed, true), HasSubstr("by their own magnitudes"));
  EXPECT_THAT(with(&Encoding::axis, std::uint8_t{1}), HasSubstr("leave 'axis' out"));
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
