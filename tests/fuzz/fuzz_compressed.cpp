// Bytes as a .zst or, where they begin as one, a .gz file: its text, which can be compressed and
// read again, or an InputError of one line; never more than the kind of file may have.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/compression.h"
#include "base/error.h"
#include "base/gzip.h"
#include "tests/fuzz/refusals.h"

namespace {

using namespace tidemark;

/// So small that inputs of a few bytes can exceed it.
constexpr FileKindRow kind = {FileKind::Config, "a test", {1 << 17}, "use a smaller one"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view packed(reinterpret_cast<const char*>(data), size);
    const bool is_gz = packed.starts_with("\x1f\x8b");
    const std::string text =
        is_gz ? gunzipped(packed, "fuzz", kind) : decompressed(packed, "fuzz", kind);
    require(text.size() <= static_cast<std::size_t>(kind.limit.count));
    require(decompressed(compressed(text), "again", kind) == text);
  } catch (const InputError& error) {
    require_one_line(error.what());
  }
  return 0;
}
