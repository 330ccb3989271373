// Bytes → device file → written → read again. Must give the same device or throw InputError. The
// walk over every value also makes this the fuzzer of the JSON reader.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json_reader.h"
#include "simulator/cost/device.h"
#include "tests/fuzz/refusals.h"

namespace {

using namespace tidemark;

/// Asks each value for everything; what does not fit must be refused with its own pointer.
void walk(const JsonView& view) {
  const JsonKind kind = view.kind();
  if (kind == JsonKind::List) {
    std::size_t size = 0;
    for (const JsonView item : view.items()) walk(item), ++size;
    require(view.items().size() == size);
  }
  if (kind == JsonKind::Object) {
    for (const JsonView member : view.members()) walk(member);
    answer_or_refuse([&] { view.integer_or("value", 0); });
    answer_or_refuse([&] { view.number_or("value", 0, 0, 1); });
    answer_or_refuse([&] { view.text_or("value", ""); });
    answer_or_refuse([&] { view.boolean_or("value", false); });
  }
  answer_or_refuse([&] { view.integer(1, 1000); });
  answer_or_refuse([&] { view.number(0, 1); });
  answer_or_refuse([&] { view.boolean(); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  answer_or_refuse([&] {
    const JsonDocument document(text, "fuzz");
    walk(document.root());
  });
  std::optional<Device> device;
  answer_or_refuse([&] { device = read_device(text, "fuzz"); });
  if (device) require(read_device(write_device(*device), "again") == *device);
  return 0;
}
