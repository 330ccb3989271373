// Sizes as people type them, where the program reads one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace tidemark::cli::sizes_test {
namespace {

using testing::HasSubstr;

std::string device_line(const std::string& budget) {
  const Outcome outcome =
      tidemark_with({"compare", "vit-ti-16", "--strategies", "vanilla", "--budget", budget});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  return outcome.output;
}

TEST(Budget, InDecimalUnitsIsSaidBackInBoth) {
  EXPECT_THAT(device_line("24GB"), HasSubstr("a budget of 24 GB = 22.35 GiB for tensors"));
  EXPECT_THAT(device_line("500 MB"), HasSubstr("a budget of 500 MB = 476.84 MiB for tensors"));
}

TEST(Budget, InBinaryUnitsIsSaidOnce) {
  for (const char* budget : {"24GiB", "24 gib", "24g", "25769803776B"})
    EXPECT_THAT(device_line(budget), HasSubstr("a budget of 24.0 GiB for tensors")) << budget;
}

TEST(AllocatorScript, TakesBytesWithAUnit) {
  const std::string plain = tidemark("allocator -", {.input = "a 1 5242880 0\n"}).output;
  EXPECT_EQ(tidemark("allocator -", {.input = "a 1 5MiB 0\n"}).output, plain);
  EXPECT_NE(tidemark("allocator -", {.input = "a 1 50MB 0\n"}).output, plain);
  EXPECT_THAT(tidemark("allocator -", {.input = "a 1 5XB 0\n"}).errors,
              HasSubstr(":1: BYTES: '5XB' is not a size"));
}

// A device of nothing can allocate nothing; a unit behind the number changes nothing in that.
TEST(AllocatorScript, LimitsSizesWithAUnitAsThoseWithout) {
  for (const char* nothing : {"0", "0KiB", "0.GB"}) {
    const Outcome outcome =
        tidemark("allocator -", {.input = std::string("cap ") + nothing + "\na 1 512 0\n"});
    EXPECT_EQ(outcome.exit_code, 1) << nothing;
    EXPECT_THAT(outcome.errors, HasSubstr(std::string(":1: BYTES is '") + nothing + "'; need a "));
  }
}

}  // namespace
}  // namespace tidemark::cli::sizes_test
