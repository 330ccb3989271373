// A point in simulated time. A double alone would lose fractions of a nanosecond, and after 104
// days whole ones, as it grows; here the whole ones are counted and only the fraction is rounded.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "base/units.h"

namespace tidemark {

struct Moment {
  std::int64_t whole = 0;  ///< ns
  double part = 0;         ///< of one more, in [0, 1)

  bool operator==(const Moment&) const = default;
  /// Fractions are numbers, so any two moments have an order.
  std::weak_ordering operator<=>(const Moment& other) const {
    if (whole != other.whole) return whole <=> other.whole;
    if (part < other.part) return std::weak_ordering::less;
    return part > other.part ? std::weak_ordering::greater : std::weak_ordering::equivalent;
  }
};

inline constexpr Moment never{std::numeric_limits<std::int64_t>::max(), 0};

/// `ns` must not be negative. Whole nanoseconds are added exactly.
inline Moment operator+(Moment moment, double ns) {
  const auto whole = static_cast<std::int64_t>(ns);
  const double part = moment.part + (ns - static_cast<double>(whole));
  const bool carries = part >= 1;
  return {moment.whole + whole + (carries ? 1 : 0), carries ? part - 1 : part};
}

/// In ns, exact where both are close or whole.
inline double operator-(Moment end, Moment begin) {
  return static_cast<double>(end.whole - begin.whole) + (end.part - begin.part);
}

inline Nanoseconds rounded(Moment moment) {
  return Nanoseconds{moment.whole + (moment.part < 0.5 ? 0 : 1)};
}

}  // namespace tidemark
