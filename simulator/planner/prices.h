// Prices of a byte, at which bounds are looked at.
#pragma once

#include <set>

namespace tidemark {

/// All below `most`, and that in place of those above.
inline std::set<double> up_to(double most, std::set<double> prices) {
  const auto beyond = prices.lower_bound(most);
  if (beyond == prices.end()) return prices;
  prices.erase(beyond, prices.end());
  prices.insert(most);
  return prices;
}

/// Above it, standing still until the link has brought a byte away costs less than the byte.
inline double most_price(double link) { return link > 0 ? 1 / link : 1e300; }

}  // namespace tidemark
