// FNV-1a (64 bits) of what the kernel says has been started.
#include "cli/commands/program_build.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <fstream>

namespace tidemark::cli {
namespace {

std::string read_build() {
  std::string build = TIDEMARK_VERSION;
  std::ifstream program("/proc/self/exe", std::ios::binary);
  std::uint64_t hash = 0xcbf29ce484222325;
  std::array<char, 1 << 16> piece;
  while (program.read(piece.data(), piece.size()) || program.gcount() > 0)
    for (std::streamsize i = 0; i < program.gcount(); ++i)
      hash =
          (hash ^ static_cast<unsigned char>(piece[static_cast<std::size_t>(i)])) * 0x100000001b3;
  if (program.eof()) build += fmt::format("+{:016x}", hash);
  return build;
}

}  // namespace

const std::string& program_build() {
  static const std::string build = read_build();
  return build;
}

}  // namespace tidemark::cli
