// What the scripts of all shells say: which words follow which.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/commands.h"

namespace tidemark::cli {

/// The value of an option: one of some names, a file, or anything.
struct OptionWords {
  const OptionRow* row;
  std::vector<std::string> names;
  bool is_file;
};

/// The options of a command, with what may follow each.
std::vector<OptionWords> option_words(const Command& command);

/// "-b" and "--batch".
std::vector<std::string> spellings(const OptionRow& row);

/// The names that the first operand may be.
std::vector<std::string> operand_words(const Command& command);
/// May it be the path of a file?
bool takes_files(const Command& command);

/// The beginning of its help, short enough for a menu.
std::string short_help(std::string_view help);

}  // namespace tidemark::cli
