// Whose times are guesses: opaque ops whose rows do not say what they compute or move.
#pragma once

#include <string>
#include <vector>

#include "traces/trace.h"

namespace tidemark {

/// Does the op's row leave open what its forward takes, or its backward where it has one?
bool is_time_guessed(const Trace& trace, const Op& op, std::uint32_t gradients);

/// One sentence about all of them, for beside the numbers; "" if there are none. `gradients`: by
/// op, as in Needs.
std::string note_on_guessed_times(const Trace& trace, const std::vector<std::uint32_t>& gradients);

}  // namespace tidemark
