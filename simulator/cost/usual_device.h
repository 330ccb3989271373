// The card of a question that names none.
#pragma once

#include <string_view>

namespace tidemark {

inline constexpr std::string_view usual_device = "a100-80gb";

}  // namespace tidemark
