// A part of a recorded timeline as one of its own: a step of a run of many.
#pragma once

#include "importers/timeline_builder.h"

namespace tidemark::importers {

/// What ran and was there in [begin, end), its times from `begin` on. What runs over the end is cut
/// off there, what began before is left out; what is there all the time is persistent.
RecordedTimeline window_of(const RecordedTimeline& all, Nanoseconds begin, Nanoseconds end);

}  // namespace tidemark::importers
