// Names as compilers and drivers have them, shortened to what tells them apart.
#include "importers/gpu_names.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <string_view>

#include "base/quoted.h"

namespace tidemark::importers {
namespace {

/// Of the readable form, at most. A reference ("S1_", "T_") repeats what came before it, in which
/// only lower numbers can be: a piece is repeated once for each choice of none or one of every
/// number's references. A pack repeats what it expands as often as it has parts.
double most_readable_bytes(std::string_view mangled) {
  constexpr double most_of_a_letter = 64;  // "Ss" is std::basic_string<char, …>
  double bytes = most_of_a_letter * static_cast<double>(mangled.size());
  std::map<std::string_view, int> references;
  for (std::size_t i = 0; i < mangled.size(); ++i) {
    const std::string_view rest = mangled.substr(i);
    if (rest.starts_with("Dp") || rest.starts_with("sp"))
      bytes *= static_cast<double>(mangled.size());
    if (rest.front() != 'S' && rest.front() != 'T') continue;
    const std::size_t end = rest.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1);
    if (end < rest.size() && rest[end] == '_') ++references[rest.substr(0, end)];
  }
  for (const auto& [number, times] : references) bytes *= 1 + times;
  return bytes;
}

/// "_ZN7cutlass13device_kernelI…" → "cutlass::device_kernel<…>"
std::string leading_names(std::string_view mangled) {
  std::string names;
  std::size_t at = mangled.find_first_not_of("NK", 2);
  while (at < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[at])) != 0) {
    std::size_t size = 0;
    for (; at < mangled.size() && mangled[at] >= '0' && mangled[at] <= '9'; ++at)
      size = std::min(mangled.size(), 10 * size + static_cast<std::size_t>(mangled[at] - '0'));
    names += (names.empty() ? "" : "::") + std::string(mangled.substr(at, size));
    at += size;
  }
  if (names.empty()) return std::string(mangled);
  return at < mangled.size() && mangled[at] == 'I' ? names + "<…>" : names;
}

/// Some 300 bytes may stand for more text than any machine has memory, and the library that knows
/// what they stand for has no limit.
std::string demangled(const std::string& name) {
  constexpr double most_bytes = 1 << 24;
  if (most_readable_bytes(name) > most_bytes) return leading_names(name);
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string plain = text == nullptr ? name : text;
  std::free(text);
  return plain;
}

}  // namespace

std::string kernel_name(const std::string& name) {
  std::string plain = name.starts_with("_Z") ? demangled(name) : name;
  if (plain.starts_with("void ")) plain.erase(0, 5);
  if (!plain.ends_with(')')) return printable(plain, 400);
  int depth = 0;
  for (std::size_t i = plain.size(); i-- > 1;) {
    depth += plain[i] == ')' ? 1 : plain[i] == '(' ? -1 : 0;
    if (depth == 0) return printable(std::string_view(plain).substr(0, i), 400);
  }
  return printable(plain, 400);
}

std::string copy_name(std::int64_t kind, bool is_pageable) {
  constexpr std::array<std::string_view, 14> kinds = {"copy",
                                                      "copy to device",
                                                      "copy to host",
                                                      "copy to array",
                                                      "copy from array",
                                                      "copy between arrays",
                                                      "copy from array",
                                                      "copy to array",
                                                      "copy on device",
                                                      "copy on host",
                                                      "copy between devices",
                                                      "managed memory to device",
                                                      "managed memory to host",
                                                      "managed memory between devices"};
  const bool is_known = kind >= 0 && kind < static_cast<std::int64_t>(kinds.size());
  const std::string name(kinds[is_known ? static_cast<std::size_t>(kind) : 0]);
  return is_pageable ? name + " (pageable)" : name;
}

}  // namespace tidemark::importers
