// Any text runs as an allocation script or is refused with an InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "simulator/allocator/allocator_script.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  try {
    tidemark::allocator::run_allocator_script(text, "fuzz.in");
  } catch (const tidemark::InputError& error) {
    // The place is part of the promise.
    if (std::string_view(error.what()).substr(0, 8) != "fuzz.in:") std::abort();
  }
  return 0;
}
