// Extents grow by what they are to include.
#include "analysis/export/extent.h"

#include <algorithm>

namespace tidemark::exports {

void Extent::include(double value) {
  if (value <= 0) return;
  smallest = smallest > 0 ? std::min(smallest, value) : value;
  largest = std::max(largest, value);
}

void Extent::include(const Extent& other) { include(other.smallest), include(other.largest); }

}  // namespace tidemark::exports
