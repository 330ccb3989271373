// Bytes as a script of the window: it is played to its end, or refused with the line that is wrong.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "gui/script.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const gui::Script script(text, "fuzz.in");
    gui::Input input;
    // Frames in which nothing happens are many and alike.
    for (int frame = 0; frame < std::min(script.frames(), 64); ++frame) script.play(frame, input);
    script.play(script.frames() - 1, input);
  } catch (const InputError& error) {
    const std::string_view what = error.what();
    if (what.substr(0, 8) != "fuzz.in:" || what.find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
