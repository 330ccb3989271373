// The script for zsh: as for bash, with the beginning of each option's help beside it.
#include <fmt/format.h>

#include "cli/commands/completion.h"
#include "cli/commands/completion_words.h"

namespace tidemark::cli {
namespace {

// "'name:help'": a colon divides them, a quote ends the word.
std::string described(std::string_view name, std::string_view help) {
  std::string text;
  for (const char c : short_help(help)) {
    if (c == '\'') text += "'\\'";
    if (c == ':') text += '\\';
    text += c;
  }
  return fmt::format("'{}:{}'", name, text);
}

std::string command_list() {
  std::string list = "'help:what a command does'";
  for (const Command& command : commands()) list += " " + described(command.name, command.summary);
  return list;
}

// Behind the last comma a list goes on.
std::string names_answer(const std::vector<std::string>& names) {
  return fmt::format("compset -P '*,'; compadd -- {}", fmt::join(names, " "));
}

std::string zsh_value_cases() {
  std::string text = "  case \"$verb $words[CURRENT-1]\" in\n";
  for (const Command& command : commands())
    for (const OptionWords& option : option_words(command)) {
      if (option.row->value.empty()) continue;
      std::string pattern;
      for (const std::string& name : spellings(*option.row))
        pattern += fmt::format("{}\"{} {}\"", pattern.empty() ? "" : "|", command.name, name);
      const std::string answer = option.is_file         ? "_files; "
                                 : option.names.empty() ? "_message value; "
                                                        : names_answer(option.names) + "; ";
      text += fmt::format("    {}) {}return ;;\n", pattern, answer);
    }
  return text + "  esac\n";
}

std::string zsh_option_cases() {
  std::string text = "  if [[ $PREFIX == -* ]]; then\n    case $verb in\n";
  for (const Command& command : commands()) {
    std::string options = "'--help:what the command does'";
    for (const OptionWords& option : option_words(command))
      for (const std::string& name : spellings(*option.row))
        options += " " + described(name, option.row->help);
    text += fmt::format("      {}) choices=({}) ;;\n", command.name, options);
  }
  return text + "    esac\n    _describe option choices\n    return\n  fi\n";
}

std::string zsh_operand_cases() {
  std::string text = "  case $verb in\n";
  text += fmt::format("    help) choices=({}); _describe command choices ;;\n", command_list());
  for (const Command& command : commands()) {
    std::string answer;
    if (const auto names = operand_words(command); !names.empty())
      answer = fmt::format("compadd -- {}", fmt::join(names, " "));
    if (takes_files(command)) answer += answer.empty() ? "_files" : "; _files";
    if (!answer.empty()) text += fmt::format("    {}) {} ;;\n", command.name, answer);
  }
  return text + "  esac\n";
}

}  // namespace

std::string zsh_completion() {
  std::string text =
      "#compdef tidemark\n# Written by 'tidemark completion zsh'; do not edit.\n"
      "_tidemark() {\n  local verb=$words[2]\n  local -a choices\n";
  text += fmt::format(
      "  if (( CURRENT == 2 )); then choices=({}); _describe command choices; return; fi\n",
      command_list());
  text += zsh_value_cases() + zsh_option_cases() + zsh_operand_cases() + "}\n";
  // In a folder of fpath the file is the function's body; sourced, it defines the function.
  return text +
         "if [[ $funcstack[1] == _tidemark ]]; then _tidemark \"$@\"; "
         "else compdef _tidemark tidemark; fi\n";
}

}  // namespace tidemark::cli
