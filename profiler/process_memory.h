// What the operating system says about this process's memory: an observer from outside.
#pragma once

#include <optional>

#include "base/units.h"

namespace tidemark::profiler {

/// Resident memory now; unset where the system does not say.
std::optional<Bytes> resident_memory();

/// Largest resident memory since the last reset, or since the process began.
std::optional<Bytes> resident_peak();

/// Forgets the peak so far. False where the system does not allow it.
bool reset_resident_peak();

}  // namespace tidemark::profiler
