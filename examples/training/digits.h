// Handwritten digits of 8 × 8 pixels (data/README.md says whose).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::training {

struct Digit {
  std::vector<double> pixels;  ///< row by row, −1 (white) to 1 (black)
  std::int64_t label = 0;
};

inline constexpr std::int64_t digit_side = 8, digit_classes = 10;

/// InputError with the line that is none.
std::vector<Digit> read_digits(const std::string& path);

}  // namespace tidemark::training
