// Bytes and times print with three digits in fitting units, and sizes that people type are read.
#include "base/units.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/error.h"

namespace tidemark::units_test {
namespace {

using namespace literals;
using namespace std::chrono_literals;

TEST(Units, BytesCountAndCompare) {
  EXPECT_EQ(1_GiB, 1024_MiB);
  EXPECT_EQ(1_MiB + 1_KiB, Bytes{1049600});
  EXPECT_EQ(1_KiB - 1_B, 1023_B);
  EXPECT_LT(2_B, 3_B);
  Bytes sum = 5_B;
  sum += 3_B;
  sum -= 1_B;
  EXPECT_EQ(sum, 7_B);
}

TEST(Units, RoundUpReachesTheNextMultiple) {
  EXPECT_EQ(round_up(1, 512), 512);
  EXPECT_EQ(round_up(512, 512), 512);
  EXPECT_EQ(round_up(513, 512), 1024);
}

TEST(Units, BytesHaveThreeDigitsInTheLargestFittingUnit) {
  EXPECT_EQ(to_text(0_B), "0 B");
  EXPECT_EQ(to_text(1023_B), "1023 B");
  EXPECT_EQ(to_text(1_KiB), "1.00 KiB");
  EXPECT_EQ(to_text(Bytes{1536}), "1.50 KiB");
  EXPECT_EQ(to_text(Bytes{10234}), "9.99 KiB");  // 9.994
  EXPECT_EQ(to_text(Bytes{10235}), "10.0 KiB");  // 9.995: rounding makes a fourth digit
  EXPECT_EQ(to_text(Bytes{102400}), "100 KiB");
  EXPECT_EQ(to_text(512_MiB), "512 MiB");
  EXPECT_EQ(to_text(Bytes{3435973837}), "3.20 GiB");
  EXPECT_EQ(to_text(Bytes{largest_size}), "1048576 TiB");
  EXPECT_EQ(to_text(Bytes{-1536}), "-1.50 KiB");
}

TEST(Units, TimesHaveThreeDigitsToo) {
  EXPECT_EQ(to_text(Nanoseconds(830ns)), "830 ns");
  EXPECT_EQ(to_text(Nanoseconds(1us)), "1.00 µs");
  EXPECT_EQ(to_text(Nanoseconds(1'520'000)), "1.52 ms");
  EXPECT_EQ(to_text(Nanoseconds(75s)), "75.0 s");
  EXPECT_EQ(to_text(Nanoseconds(-2ms)), "-2.00 ms");
}

TEST(ParseBytes, ReadsWhatPeopleType) {
  const std::pair<const char*, Bytes> examples[] = {
      {"0", 0_B},
      {"24GiB", 24_GiB},
      {"24 GiB", 24_GiB},
      {"24gib", 24_GiB},
      {"24G", 24_GiB},
      {"24g", 24_GiB},
      {"24GB", Bytes{24'000'000'000}},
      {"24 gb", Bytes{24'000'000'000}},
      {"1.5TB", Bytes{1'500'000'000'000}},
      {"25769803776B", 24_GiB},
      {"512 MiB", 512_MiB},
      {"640k", 640_KiB},
      {"7 MB", Bytes{7'000'000}},
      {"3kB", Bytes{3'000}},
      {"1.5KiB", Bytes{1536}},
      {"1e3 B", 1000_B},
      {"1152921504606846975B", Bytes{largest_size - 1}},
      {"1048576TiB", Bytes{largest_size}}};
  for (const auto& [text, bytes] : examples) EXPECT_EQ(parse_bytes(text, "budget"), bytes) << text;
}

TEST(ParseBytes, RefusesANumberWithoutAUnit) {
  for (const char* text : {"24", "25769803776", "1.5", "1e3"}) {
    try {
      parse_bytes(text, "budget");
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), fmt::format("budget: '{0}' has no unit (write for example {0}GiB, or "
                                          "{0}B for bytes)",
                                          text));
    }
  }
}

TEST(ParseBytes, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", "GiB", "-1", "-1GiB", "nan", "nanB", "inf", "1e400", "1 GiB ", "0x10", "1,5GiB",
        "1048577TiB", "1152921504606846977B", "8EiB", "24 gigs"}) {
    try {
      parse_bytes(text, "budget");
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), "budget: '" + std::string(text) +
                                  "' is not a size (write for example 24GiB, 24GB or 512MiB)");
    }
  }
}

TEST(ParseBytes, ReadsBackWholeUnits) {
  for (const Bytes bytes : {1_B, 999_B, 3_KiB, 7_MiB, 80_GiB})
    EXPECT_EQ(parse_bytes(to_text(bytes), "size"), bytes);
}

}  // namespace
}  // namespace tidemark::units_test
