// Bytes as a session of the window: they are taken and can be written and read again, or refused in
// one line that names the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "gui/session_text.h"
#include "tests/fuzz/refusals.h"

namespace {

using namespace tidemark;
using namespace tidemark::gui;

// What the window takes for granted when it looks as the session says.
void require_usable(const ViewState& view) {
  require(view.lower_share >= static_cast<float>(least_lower_share));
  require(view.lower_share <= static_cast<float>(most_lower_share));
  require(view.visible.span() > 0 && view.cursor_time >= 0);
  require(!view.bytes || view.bytes->span() > 0);
  require(!view.range || view.range->span() > 0);
  for (const Note& note : view.notes)
    require(note.step >= 1 && note.moment >= 0 && note.moment <= note.step);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Session session =
        read_session_text({reinterpret_cast<const char*>(data), size}, "fuzz.session.json");
    require_usable(session.view);
    require(!session.planned || !session.command.empty());
    const std::string text = write_session_text(session);
    require(write_session_text(read_session_text(text, "again")) == text);
  } catch (const InputError& error) {
    require_one_line(error.what());
    require(std::string_view(error.what()).starts_with("fuzz.session.json:"));
  }
  return 0;
}
