// What runs take of a device: time, or the part of it that nothing beside them could have.
#pragma once

#include <array>
#include <cstdint>

#include "simulator/cost/kernel_cost.h"

namespace tidemark {

/// In which plans' times are counted. Recovery on a second stream runs beside gradients, and what
/// runs together never holds more than all SMs or all of the memory's bandwidth; gradients never
/// run beside each other. So each sum but the first is below the true time of plans on two streams.
enum class Resource : std::uint8_t {
  Time,       ///< one run after another
  Sms,        ///< of runs that others may run beside, time · share of the SMs
  Bandwidth,  ///< … time · share of the bandwidth
  Stream,     ///< the time of what is no recovery
};
inline constexpr std::array shared_resources = {Resource::Sms, Resource::Bandwidth,
                                                Resource::Stream};

/// In which plans differ by what they recover.
inline constexpr std::array overlapped_resources = {Resource::Time, Resource::Sms,
                                                    Resource::Bandwidth};

/// ns, by Resource.
struct Load {
  std::array<std::int64_t, 1 + shared_resources.size()> ns = {};

  std::int64_t operator[](Resource resource) const {
    return ns[static_cast<std::size_t>(resource)];
  }
  Load& operator+=(const Load& other) {
    for (std::size_t r = 0; r < ns.size(); ++r) ns[r] += other.ns[r];
    return *this;
  }
  Load& operator-=(const Load& other) {
    for (std::size_t r = 0; r < ns.size(); ++r) ns[r] -= other.ns[r];
    return *this;
  }
  friend Load operator-(Load a, const Load& b) { return a -= b; }
};

/// Of a run that nothing runs beside.
inline Load load_alone(const Cost& cost, std::int64_t times) {
  const std::int64_t ns = times * cost.time.count();
  return {{ns, ns, ns, ns}};
}

/// Of one that something may run beside. Rounded down, so that sums are no more than there is.
inline Load load_shared(const Cost& cost, std::int64_t times, bool is_recovery) {
  const std::int64_t ns = times * cost.time.count();
  const auto share_of = [&](double share) {
    return static_cast<std::int64_t>(static_cast<double>(ns) * share);
  };
  return {{ns, share_of(cost.sm_share), share_of(cost.memory_share), is_recovery ? 0 : ns}};
}

}  // namespace tidemark
