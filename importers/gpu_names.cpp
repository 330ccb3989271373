// Names as compilers and drivers have them, shortened to what tells them apart.
#include "importers/gpu_names.h"

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "base/quoted.h"

namespace tidemark::importers {

std::string kernel_name(const std::string& name) {
  std::string plain = name;
  if (name.starts_with("_Z")) {
    int status = 0;
    char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    if (text != nullptr) plain = text;
    std::free(text);
  }
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
