// The device of a scenario that names none.
#pragma once

#include <string_view>

namespace tidemark {

inline constexpr std::string_view usual_device = "a100-80gb";

}  // namespace tidemark
