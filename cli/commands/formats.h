// What can be written: the formats, how files of each are called, and which command writes which.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/option_table.h"

namespace tidemark::cli {

enum class Format : unsigned char {
  Table,
  Json,
  Csv,
  Markdown,
  Html,
  Svg,
  Chrome,
  Timeline,
  Collapsed,
  Github,
  Junit,
  Sarif,
  SmallerIsBetter,
  Bmf
};

std::string_view name_of(Format format);

/// What a command writes, the default first. Some of its options change that: `when` is "" for
/// the usual, or the words of --help for them.
struct FormatSet {
  std::uint32_t verbs;
  std::string_view when;
  std::vector<Format> formats;
};

inline constexpr std::string_view of_an_item = "of a TENSOR or OP";
inline constexpr std::string_view of_a_snapshot = "of a memory snapshot";
inline constexpr std::string_view with_saved = "with --saved";
inline constexpr std::string_view with_levers = "with --levers";
inline constexpr std::string_view with_beside = "with --beside";
inline constexpr std::string_view with_replay = "with --replay";

const std::vector<Format>& formats_of(VerbBit command, std::string_view when = {});

/// The one of the command's formats that --format names. Without it, what the name of --output
/// says: UsageError for a name that belongs to something else. Without both, the first.
Format format_of(const Options& options, VerbBit command, std::string_view when = {});

/// All that it writes, whatever its options.
std::vector<std::string> format_names(VerbBit command);

/// One way to write an answer.
struct Writer {
  Format format;
  std::function<std::string()> write;
};

/// Writes it in this format, for which there must be a writer: format_of() gives no other.
std::string written_as(Format format, std::initializer_list<Writer> writers);

/// Of what is written in one format only: refuses a name that no command would read it from again.
/// A name without an ending (/dev/stdout) is taken as it is.
void require_ending(const Options& options, std::string_view ending, std::string_view what);

/// For --help: "table, json or csv. Default table, or …". Of all commands if none is given.
std::string describe_formats(std::uint32_t commands);

}  // namespace tidemark::cli
