// Every range of random values has its first largest one, as std::max_element finds it.
#include <gtest/gtest.h>

#include "gui/indexes/range_maximum.h"
#include "tests/simulator/random_step.h"

namespace tidemark::gui::range_maximum_property_test {
namespace {

TEST(RangeMaximum, IsTheFirstLargestOfEveryRange) {
  Dice dice(1);
  for (const std::size_t size : std::vector<std::size_t>{1, 2, 15, 16, 17, 255, 256, 257, 600}) {
    std::vector<std::int64_t> values(size);
    for (auto& value : values) value = static_cast<std::int64_t>(dice.below(20)) - 10;
    const RangeMaximum maximum(values);
    for (int i = 0; i < 2000; ++i) {
      const std::size_t begin = dice.below(size), end = begin + 1 + dice.below(size - begin);
      const auto expected = std::max_element(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                             values.begin() + static_cast<std::ptrdiff_t>(end));
      ASSERT_EQ(maximum.largest_in(begin, end), static_cast<std::size_t>(expected - values.begin()))
          << size << ": " << begin << " to " << end;
    }
  }
}

}  // namespace
}  // namespace tidemark::gui::range_maximum_property_test
