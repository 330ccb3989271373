// How much longer runs take because of what ranks exchange beside them.
#pragma once

#include <vector>

#include "base/units.h"

namespace tidemark {

/// What runs take of the device, alone on it.
struct DeviceUse {
  double sms = 0, memory = 0;  ///< shares of SMs and bandwidth
  double ns = 0;
};

/// Runs of equal shares together, in one fixed order.
std::vector<DeviceUse> taken_together(std::vector<DeviceUse> runs);

/// simulate() takes no less for `runs` on one stream and exchanges on others. Each of those uses at
/// least `exchange`, whose time is all of theirs alone, each less by the part of the link that it
/// leaves free.
double least_beside(const std::vector<DeviceUse>& runs, const DeviceUse& exchange);

}  // namespace tidemark
