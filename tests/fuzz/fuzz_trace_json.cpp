// Bytes as a trace file: read_trace returns a sound trace or throws InputError. What it returns can
// be walked, and written and read again without a change.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "tests/fuzz/refusals.h"
#include "traces/trace_json.h"

namespace {

using namespace tidemark;

/// Reads every operand that the backward would.
void walk(const Trace& trace) {
  const auto required = requires_gradient(trace);
  Bytes saved;
  for (const Op& op : trace.ops) {
    const Operands operands = saved_operands(trace, op, inputs_with_gradient(trace, op, required));
    for (int bit = 0; bit < 32; ++bit)
      if ((operands >> bit & 1) != 0) saved += size(trace[operand(trace, op, bit)]);
  }
  require(saved >= Bytes{});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  Trace trace;
  try {
    trace = read_trace(json, "fuzz");
  } catch (const InputError&) {
    return 0;
  }
  walk(trace);
  const std::string text = write_trace(trace);
  const Trace again = read_trace(text, "again");
  require(again == trace && write_trace(again) == text);
  return 0;
}
