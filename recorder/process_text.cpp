// The command line as JSON; the kernel has it as texts that end in zeros.
#include "recorder/process_text.h"

#include <fcntl.h>
#include <unistd.h>

namespace tidemark::recorder {
namespace {

constexpr std::size_t most_of_command = 1 << 14;

std::string command_line() {
  std::string text(most_of_command, '\0');
  const int file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? 0 : ::read(file, text.data(), text.size());
  if (file >= 0) ::close(file);
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  if (!text.empty() && text.back() != '\0') text += '\0';  // it was longer
  return text;
}

// Arguments may be of any bytes: what is not ASCII becomes a question mark.
void append_quoted(std::string& json, const char* text) {
  json += '"';
  for (; *text != '\0'; ++text) {
    const bool is_plain = *text >= ' ' && *text <= '~';
    if (*text == '"' || *text == '\\') json += '\\';
    json += is_plain ? *text : '?';
  }
  json += '"';
}

}  // namespace

std::string process_text(std::uint64_t start) {
  std::string json = "{\"pid\": " + std::to_string(::getpid()) +
                     ", \"start_ns\": " + std::to_string(start) + ", \"command\": [";
  const std::string command = command_line();
  for (std::size_t begin = 0; begin < command.size();) {
    if (begin > 0) json += ", ";
    append_quoted(json, command.data() + begin);
    begin = command.find('\0', begin) + 1;
  }
  return json + "]}";
}

}  // namespace tidemark::recorder
