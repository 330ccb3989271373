// Bytes as a timeline file: the reader returns a sound recording or throws InputError. What it
// returns can be looked at as views do, and written and read again without a change.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "analysis/recording/recording_format.h"
#include "base/error.h"
#include "tests/fuzz/refusals.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidemark;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  Recording recording;
  try {
    recording = read_recording_text(json, "fuzz");
  } catch (const InputError&) {
    return 0;
  }
  require(defect_of(recording).empty());
  const Peak top = peak(recording.schedule, recording.timeline);
  require(total(top.by_category) == top.bytes);
  alive_after(recording.schedule, recording.timeline, top.event);
  require(!title(recording).empty());
  const std::string text = write_recording_text(recording);
  require(write_recording_text(read_recording_text(text, "again")) == text);
  return 0;
}
