// Profiles of the reports that the program writes in JSON.
#pragma once

#include "analysis/diff/profile.h"
#include "base/json_reader.h"

namespace tidemark::diff {

/// "live_peak_bytes" is "live peak" in bytes; what is no size, time or batch is nothing.
bool understand(std::string_view key, std::string& name, Measure& measure);

/// Adds a number to the table of facts in its unit, if it has none of this name.
void add_fact(ProfileCase& one, std::string_view name, Measure measure, std::int64_t value);

Profile profile_of_comparison(JsonView root);
Profile profile_of_sweep(JsonView root);
Profile profile_of_explanation(JsonView root);

/// Which numbers of a replay.
enum class Side : std::uint8_t { Predicted, Measured };

/// Of one replay, or of a comparison whose strategies were replayed. Falls back to what was
/// predicted where nothing was measured.
Profile profile_of_replay(JsonView root, Side side);
Profile profile_of_replays(JsonView root, Side side);

/// Did it time a step?
bool was_measured(JsonView replay);

}  // namespace tidemark::diff
