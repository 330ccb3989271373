// What the world outside looks like: a terminal or a pipe, its width, its characters, its colours.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/options.h"

namespace tidemark::cli {

enum class Ink : unsigned char { Plain, Bold, Dim, Good, Bad, Bar, Title };

/// How text for people is written.
struct Style {
  bool color = false;
  bool unicode = true;
  std::size_t width = 120;

  /// The text in this colour, or as it is.
  std::string paint(std::string_view text, Ink ink) const;
};

/// From --color, --output, NO_COLOR, TERM, COLUMNS, the locale and the terminal.
Style style_of(const Options& options);

/// What --color may be.
std::vector<std::string> when_names();

/// Replaces the characters beyond ASCII that Tidemark's tables use by ASCII ones of the same width.
std::string to_ascii(std::string_view text);

/// Columns that UTF-8 text takes on a terminal.
std::size_t display_width(std::string_view text);

/// Writes all of it, or throws InputError.
void write_standard_output(std::string_view text);

/// Shows on a terminal's standard error how many of `all` are done; ends without a trace.
class Progress {
 public:
  Progress(const Options& options, std::string_view what, std::size_t all);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void operator()(std::size_t done) const;
  /// Instead, what is done of one of them.
  void within(std::string_view text) const;

 private:
  std::string_view what_;
  std::size_t all_;
  bool shown_;
};

}  // namespace tidemark::cli
