// A device whose numbers can be multiplied in the head: one byte and one FLOP per nanosecond, two
// SMs, no gaps, a host that is never late.
#pragma once

#include "simulator/cost/device.h"

namespace tidemark {

inline Device toy_device() {
  Device device;
  device.name = "toy";
  device.capacity = {1'000'000};
  device.sm_count = 2;
  device.clock_hz = 1e9;
  device.bytes_per_second = 1e9;
  device.memory_efficiency = 1;
  device.host_link_bytes_per_second = 0.5e9;
  device.flops_per_second.fill(1e9);
  device.gemm_efficiency.fill(1);
  return device;
}

}  // namespace tidemark
