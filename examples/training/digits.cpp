// Parses lines of a label and 64 shades from 0 to g, and names the first line that is none.
#include "examples/training/digits.h"

#include <fmt/format.h>

#include <sstream>

#include "base/error.h"
#include "base/files.h"

namespace tidemark::training {
namespace {

constexpr std::string_view shades = "0123456789abcdefg";

bool is_digit_line(std::string_view line) {
  return line.size() == 2 + digit_side * digit_side && line[0] >= '0' && line[0] <= '9' &&
         line[1] == ' ' && line.find_first_not_of(shades, 2) == std::string_view::npos;
}

Digit parse(std::string_view line) {
  Digit digit{.pixels = {}, .label = line[0] - '0'};
  const auto darkest = static_cast<double>(shades.size() - 1);
  for (const char c : line.substr(2))
    digit.pixels.push_back(2 * static_cast<double>(shades.find(c)) / darkest - 1);
  return digit;
}

}  // namespace

std::vector<Digit> read_digits(const std::string& path) {
  std::istringstream lines(read_file(path, FileKind::TrainingData));
  std::vector<Digit> digits;
  for (std::string line; std::getline(lines, line);) {
    if (!is_digit_line(line))
      throw InputError(fmt::format("{}:{}: need a digit, a blank and {} pixels from 0 to g", path,
                                   digits.size() + 1, digit_side * digit_side));
    digits.push_back(parse(line));
  }
  return digits;
}

}  // namespace tidemark::training
