// Reads VmRSS and VmHWM from /proc/self/status; the peak is reset through clear_refs.
#include "profiler/process_memory.h"

#include <charconv>
#include <fstream>
#include <string>

namespace tidemark::profiler {
namespace {

// A line of /proc/self/status: "VmHWM:   1234 kB" (proc(5)).
std::optional<Bytes> status(std::string_view key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t digits = line.find_first_of("0123456789");
    std::int64_t kibibytes = 0;
    if (digits == std::string::npos ||
        std::from_chars(line.data() + digits, line.data() + line.size(), kibibytes).ec !=
            std::errc())
      return std::nullopt;
    return Bytes{kibibytes * 1024};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Bytes> resident_memory() { return status("VmRSS:"); }
std::optional<Bytes> resident_peak() { return status("VmHWM:"); }

bool reset_resident_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5\n";  // proc(5): resets the high-water mark
  return static_cast<bool>(file.flush());
}

}  // namespace tidemark::profiler
