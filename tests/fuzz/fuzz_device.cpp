// Bytes → device file → written → read again. Must give the same device or throw InputError. The
// walk over every value also makes this the fuzzer of the JSON reader.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/json_reader.h"
#include "simulator/cost/device.h"

namespace {

using namespace tidemark;

/// Asks each value for everything; what does not fit must be refused with its own pointer.
void walk(const JsonView& view) {
  switch (view.kind()) {
    case JsonKind::List:
      for (const JsonView item : view.items()) walk(item);
      break;
    case JsonKind::Object:
      for (const JsonView member : view.members()) walk(member);
      break;
    default:
      break;
  }
  try {
    view.integer(1, 1000);
    view.number(0, 1);
    view.boolean();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const JsonDocument document(text, "fuzz");
    walk(document.root());
    const Device device = read_device(text, "fuzz");
    if (read_device(write_device(device), "again") != device) std::abort();
  } catch (const InputError&) {
    return 0;
  }
  return 0;
}
