// A data file that travels inside the program; cmake/embed_text.cmake makes tables of them.
#pragma once

#include <string_view>

namespace tidemark {

struct EmbeddedFile {
  std::string_view name;  // "a100-80gb.json", without folder
  std::string_view text;
};

}  // namespace tidemark
