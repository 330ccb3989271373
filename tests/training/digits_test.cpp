// Digits are read as published, pixels go from white to black, and a damaged line is named.
#include "examples/training/digits.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/own_folder.h"

namespace tidemark::training::digits_test {
namespace {

const std::string shipped = TIDEMARK_SOURCE_DIR "/examples/training/data/digits.txt";

std::string scratch(std::string_view text) {
  std::string path = own_folder() + "/digits.txt";
  write_file(path, text);
  return path;
}

TEST(Digits, AreReadAsTheyWerePublished) {
  const std::vector<Digit> digits = read_digits(shipped);
  ASSERT_EQ(digits.size(), 1797u);
  // The numbers of each class in scikit-learn's description of the same data.
  std::array<int, 10> count{};
  double sum = 0;
  for (const Digit& digit : digits) {
    ++count[static_cast<std::size_t>(digit.label)];
    for (const double pixel : digit.pixels) sum += (pixel + 1) * 8;
  }
  EXPECT_THAT(count, testing::ElementsAre(178, 182, 177, 183, 181, 182, 181, 179, 174, 180));
  EXPECT_EQ(sum, 561718);  // numpy.sum of the source
}

TEST(Digits, PixelsGoFromWhiteToBlack) {
  const Digit first = read_digits(shipped).front();
  EXPECT_EQ(first.label, 0);
  EXPECT_EQ(first.pixels[0], -1);
  EXPECT_EQ(first.pixels[2], 2 * 5 / 16.0 - 1);
  EXPECT_EQ(first.pixels[3], 2 * 13 / 16.0 - 1);
}

TEST(Digits, ADamagedLineIsNamed) {
  const std::string good = "3 " + std::string(64, 'g');
  for (const std::string& bad :
       {std::string("3"), good + "0", "x " + std::string(64, '0'), "3 " + std::string(64, 'h')})
    try {
      read_digits(scratch(good + "\n" + bad + "\n"));
      ADD_FAILURE() << bad;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(":2: need a digit")) << bad;
    }
}

}  // namespace
}  // namespace tidemark::training::digits_test
