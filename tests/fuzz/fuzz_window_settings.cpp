// Bytes as the window's settings: they are taken, with a size that a window may have, and can be
// written and read again; or they are refused in one line and change nothing.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "gui/settings_text.h"
#include "tests/fuzz/refusals.h"

namespace {

using namespace tidemark;
using namespace tidemark::gui;

bool fits(PixelSize window) {
  return window.width >= smallest_picture.width && window.width <= largest_picture.width &&
         window.height >= smallest_picture.height && window.height <= largest_picture.height;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ViewState view;
  PixelSize window = smallest_picture;
  const std::string before = write_settings_text(view, window);
  try {
    read_settings_text({reinterpret_cast<const char*>(data), size}, "fuzz", view, window);
  } catch (const InputError& error) {
    require_one_line(error.what());
    require(write_settings_text(view, window) == before);
    return 0;
  }
  require(fits(window));
  const std::string text = write_settings_text(view, window);
  read_settings_text(text, "again", view, window);
  require(write_settings_text(view, window) == text);
  return 0;
}
