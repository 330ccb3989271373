// How far values reach that several pictures show on the same axis.
#pragma once

namespace tidemark::exports {

/// From the smallest to the largest value of several pictures that are to be compared.
struct Extent {
  double smallest = 0, largest = 0;  ///< 0: no value yet

  void include(double value);
  void include(const Extent& other);
  bool operator==(const Extent&) const = default;
};

}  // namespace tidemark::exports
