// The script for fish: one line for each command, option and operand.
#include <fmt/format.h>

#include "cli/commands/completion.h"
#include "cli/commands/completion_words.h"

namespace tidemark::cli {
namespace {

std::string fish_quoted(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return "'" + escaped + "'";
}

// "-s b -l batch".
std::string flags_of(const OptionRow& row) {
  std::string flags;
  for (const std::string& name : spellings(row))
    flags += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  return flags;
}

// The names, and behind a comma the next one.
std::string value_of(const OptionWords& option) {
  if (option.row->value.empty()) return "";
  if (option.is_file) return " -r -F";
  if (option.names.empty()) return " -x";
  return fmt::format(" -x -a {}",
                     fish_quoted(fmt::format("(__fish_complete_list , \"string join \\n {}\")",
                                             fmt::join(option.names, " "))));
}

}  // namespace

std::string fish_completion() {
  std::string text =
      "# fish completion, written by 'tidemark completion fish'; do not edit.\n"
      "complete -c tidemark -f\n";
  const auto line = [&](std::string_view condition, std::string_view rest) {
    text += fmt::format("complete -c tidemark -n '{}'{}\n", condition, rest);
  };
  std::string names = "help";
  for (const Command& command : commands()) {
    names.append(" ").append(command.name);
    line("__fish_use_subcommand",
         fmt::format(" -a {} -d {}", command.name, fish_quoted(short_help(command.summary))));
  }
  line("__fish_use_subcommand", " -a help -d 'what a command does'");
  line("__fish_seen_subcommand_from help", " -a " + fish_quoted(names));
  for (const Command& command : commands()) {
    const std::string seen = fmt::format("__fish_seen_subcommand_from {}", command.name);
    for (const OptionWords& option : option_words(command))
      line(seen, flags_of(*option.row) + value_of(option) + " -d " +
                     fish_quoted(short_help(option.row->help)));
    if (const auto operands = operand_words(command); !operands.empty())
      line(seen, " -a " + fish_quoted(fmt::format("{}", fmt::join(operands, " "))));
    if (takes_files(command)) line(seen, " -F");
  }
  return text;
}

}  // namespace tidemark::cli
