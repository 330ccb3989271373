// Finds CUPTI in a process that may have brought its own, as PyTorch does.
#pragma once

#include <string>

#include "profiler/cupti_interface.h"

namespace tidemark::recorder {

struct CuptiLibrary {
  profiler::cupti::Functions functions{};
  std::uint32_t version = 0;

  std::string text_of(profiler::cupti::Result result) const;
};

/// False, with the reason in one line, where there is none or one whose records are not known.
bool load_cupti(CuptiLibrary& library, std::string& problem);

}  // namespace tidemark::recorder
