// Recordings as Chrome trace events, which Perfetto and chrome://tracing open.
#pragma once

#include <span>
#include <string>

#include "analysis/recording/recording.h"

namespace tidemark::exports {

/// One process per recording; in it one track per stream and one counter per category. Runs of a
/// track never overlap, so they nest. Times are microseconds with three decimals, from integers.
std::string chrome_trace(std::span<const Recording> recordings);

}  // namespace tidemark::exports
