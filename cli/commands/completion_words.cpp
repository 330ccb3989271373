// Takes the words apart: spellings from the option table, operands from what each command names.
#include "cli/commands/completion_words.h"

#include <algorithm>

namespace tidemark::cli {

std::vector<std::string> spellings(const OptionRow& row) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= row.names.size();) {
    const std::size_t end = std::min(row.names.find(',', begin), row.names.size());
    names.emplace_back(row.names.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

std::vector<OptionWords> option_words(const Command& command) {
  std::vector<OptionWords> words;
  for (const OptionRow& row : option_table())
    if (row.verbs & command.bit)
      words.push_back({&row, choices_of(row, command.bit), row.value == "FILE"});
  return words;
}

std::vector<std::string> operand_words(const Command& command) {
  return command.names ? command.names() : std::vector<std::string>();
}

bool takes_files(const Command& command) {
  return std::ranges::any_of(
      std::to_array<std::string_view>({"MODEL", "FILE", "SCRIPT", "BEFORE"}),
      [&](std::string_view what) { return command.operands.find(what) != what.npos; });
}

std::string short_help(std::string_view help) {
  const std::size_t end = std::min(
      {help.find(" ("), help.find(':'), help.find(';'), help.find(". "), help.find(", as ")});
  constexpr std::size_t too_short = 12;  // "fp32, tf32, …" says more than "fp32"
  return std::string(end < too_short ? help : help.substr(0, end));
}

}  // namespace tidemark::cli
