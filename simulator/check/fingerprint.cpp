#include "simulator/check/fingerprint.h"

#include <fmt/format.h>

#include "traces/trace_json.h"

namespace tidemark {

std::string fingerprint(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211u;
  }
  return fmt::format("{:016x}", hash);
}

std::string fingerprint(const Trace& trace) {
  Trace nameless = trace;
  nameless.model.clear();
  return fingerprint(write_trace(nameless));
}

std::string fingerprint(const Device& device) { return fingerprint(write_device(device)); }

}  // namespace tidemark
