// CUPTI's records as rows of a recorded run. Only the front of each record is read, which CUPTI 12
// and 13 have in common; later versions append.
#pragma once

#include <cstdint>

#include "recorder/run_writer.h"

namespace tidemark::recorder {

/// Adds one record; kinds that are not recorded are passed over. `offset`: what its times need to
/// be CLOCK_REALTIME.
void add_record(const std::uint8_t* record, std::int64_t offset, RunWriter& into);

}  // namespace tidemark::recorder
