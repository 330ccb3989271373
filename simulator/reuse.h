// When the memory of a freed buffer may be taken again, and by whom.
#pragma once

#include <array>
#include <vector>

#include "simulator/schedule.h"

namespace tidemark {

/// By stream: after how many of its waits it is known to follow something; 0 is at once. A
/// synchronization of the host counts as a wait of every stream.
using Moments = std::array<std::uint32_t, max_streams>;
inline constexpr std::uint32_t never_known = 0xffffffff;

/// By buffer, from its Free on: when each stream follows its last users, and those of the memory
/// before it.
std::vector<Moments> derive_reuse(const Schedule& schedule);

}  // namespace tidemark
