// Short numbers that tell whether two things are the same, for files that people compare.
#pragma once

#include <string>
#include <string_view>

#include "simulator/cost/device.h"
#include "traces/trace.h"

namespace tidemark::regression {

/// FNV-1a, 64 bits (offset 14695981039346656037, prime 1099511628211), as 16 hexadecimal digits. It
/// tells accidents apart, not forgeries.
std::string fingerprint(std::string_view text);

/// Of the trace file's text without the name of the model: moving a config changes nothing.
std::string fingerprint(const Trace& trace);

/// Of all figures of the device.
std::string fingerprint(const Device& device);

}  // namespace tidemark::regression
