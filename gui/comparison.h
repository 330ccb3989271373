// What differs between two recordings, in lines: the largest differences first within a group.
#pragma once

#include <string>
#include <vector>

#include "gui/opened.h"

namespace tidemark {

struct Difference {
  enum class Unit : std::uint8_t { Time, Memory };

  std::string_view group;  ///< "step", "at the peak", "time by task", "time by kind"
  std::string name;
  Unit unit = Unit::Time;
  std::int64_t a = 0, b = 0;  ///< nanoseconds or bytes

  std::int64_t change() const { return b - a; }
};

/// What is zero in both is left out.
std::vector<Difference> differences(const Opened& a, const Opened& b);

/// "1.52 ms" or "3.20 GiB"
std::string amount_text(Difference::Unit unit, std::int64_t amount);

}  // namespace tidemark
