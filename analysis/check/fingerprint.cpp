// FNV-1a over text; a trace is hashed as its file without the model's name.
#include "analysis/check/fingerprint.h"

#include <fmt/format.h>

#include "base/error.h"
#include "traces/trace_json.h"

namespace tidemark::regression {

std::string fingerprint(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211u;
  }
  return fmt::format("{:016x}", hash);
}

// The version of the format is none of the trace's: all are hashed as when baselines began. Nor is
// where its code stands: an empty line above it changes no number.
std::string fingerprint(const Trace& trace) {
  Trace nameless = trace;
  nameless.model.clear();
  nameless.lines.clear();
  for (Op& op : nameless.ops) op.line = no_line;
  std::string text = write_trace(nameless);
  const std::string now = fmt::format("\"version\": {}", trace_version);
  const std::size_t at = text.find(now);
  CHECK(at != std::string::npos);
  return fingerprint(text.replace(at, now.size(), "\"version\": 3"));
}

// Where the compute capability is from, and the rates of floats of eight and four bits, came later
// than the first baselines: without a step that multiplies such floats they change no number.
std::string fingerprint(const Device& device) {
  Device known_before = device;
  known_before.sources.erase("compute_capability");
  known_before.fp8_flops_per_second.reset(), known_before.fp8_gemm_efficiency.reset();
  known_before.fp4_flops_per_second.reset(), known_before.fp4_gemm_efficiency.reset();
  return fingerprint(write_device(known_before));
}

}  // namespace tidemark::regression
