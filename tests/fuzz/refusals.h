// What must hold for any bytes, whichever reader they are fed to.
#pragma once

#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace tidemark {

inline void require(bool condition) {
  if (!condition) std::abort();
}

inline void require_one_line(std::string_view text) {
  require(text.find('\n') == std::string_view::npos);
}

/// Calls it. What it throws must be an InputError of one line.
template <typename Ask>
void answer_or_refuse(Ask ask) {
  try {
    ask();
  } catch (const InputError& error) {
    require_one_line(error.what());
  }
}

}  // namespace tidemark
