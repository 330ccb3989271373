// Programs that judge pictures and pages from outside. A test that needs one of them is skipped,
// with its name, where it is not installed.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace tidemark::exports {

inline bool is_installed(const std::string& program) {
  return std::filesystem::exists("/usr/bin/" + program);
}

/// Is the text well-formed XML? Prints what is wrong.
inline bool is_xml(const std::string& text) {
  const Folder folder;
  write_text(folder / "x.svg", text);
  const Outcome outcome = run_command({"xmllint", "--noout", folder / "x.svg"});
  EXPECT_EQ(outcome.errors, "");
  return outcome.exit_code == 0;
}

/// Width and height of the PNG that rsvg-convert makes of an SVG; 0 if it does not.
inline std::pair<unsigned, unsigned> rendered_size(const std::string& svg) {
  const Folder folder;
  write_text(folder / "x.svg", svg);
  const Outcome outcome = run_command({"rsvg-convert", folder / "x.svg", "-o", folder / "x.png"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  if (outcome.exit_code != 0) return {};
  const std::string png = file_text(folder / "x.png");
  const auto number = [&](std::size_t at) {
    unsigned value = 0;
    for (std::size_t i = at; i < at + 4; ++i)
      value = value << 8 | static_cast<unsigned char>(png.at(i));
    return value;
  };
  return {number(16), number(20)};  // of the header's first chunk
}

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

}  // namespace tidemark::exports
