// The script for bash: a case for each command and option, the words of each written out, so that
// Tab starts no program.
#include <fmt/format.h>

#include "cli/commands/completion.h"
#include "cli/commands/completion_words.h"

namespace tidemark::cli {
namespace {

// Behind the last comma a list goes on.
constexpr std::string_view helpers = R"(_tidemark_words() {
  local head=""
  [[ $cur == *,* ]] && head="${cur%,*},"
  COMPREPLY+=($(compgen -P "$head" -W "$1" -- "${cur##*,}"))
}
_tidemark_files() {
  local IFS=$'\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY+=($(compgen -f -- "$cur"))
}
)";

// bash splits --device=h100 at the sign.
constexpr std::string_view beginning = R"(_tidemark() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" verb="${COMP_WORDS[1]}"
  COMPREPLY=()
  [[ $cur == "=" ]] && cur=""
  [[ $prev == "=" ]] && prev="${COMP_WORDS[COMP_CWORD-2]}"
)";

std::string commands_text() {
  std::string names = "help";
  for (const Command& command : commands()) names.append(" ").append(command.name);
  return names;
}

std::string pattern_of(const Command& command, const OptionRow& row) {
  std::string pattern;
  for (const std::string& name : spellings(row))
    pattern += fmt::format("{}\"{} {}\"", pattern.empty() ? "" : "|", command.name, name);
  return pattern;
}

std::string bash_value_cases() {
  std::string text = "  case \"$verb $prev\" in\n";
  for (const Command& command : commands())
    for (const OptionWords& option : option_words(command)) {
      if (option.row->value.empty()) continue;
      const std::string answer = option.is_file         ? "_tidemark_files; "
                                 : option.names.empty() ? ""
                                                        : fmt::format("_tidemark_words \"{}\"; ",
                                                                      fmt::join(option.names, " "));
      text += fmt::format("    {}) {}return ;;\n", pattern_of(command, *option.row), answer);
    }
  return text + "  esac\n";
}

std::string bash_option_cases() {
  std::string text = "  if [[ $cur == -* ]]; then\n    case \"$verb\" in\n";
  for (const Command& command : commands()) {
    std::vector<std::string> names = {"--help"};
    for (const OptionWords& option : option_words(command))
      for (std::string& name : spellings(*option.row)) names.push_back(std::move(name));
    text += fmt::format("      {}) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")) ;;\n", command.name,
                        fmt::join(names, " "));
  }
  return text + "    esac\n    return\n  fi\n";
}

std::string bash_operand_cases() {
  std::string text = "  case \"$verb\" in\n";
  text += fmt::format("    help) _tidemark_words \"{}\" ;;\n", commands_text());
  for (const Command& command : commands()) {
    std::string answer;
    if (const auto names = operand_words(command); !names.empty())
      answer = fmt::format("_tidemark_words \"{}\"", fmt::join(names, " "));
    if (takes_files(command)) answer += answer.empty() ? "_tidemark_files" : "; _tidemark_files";
    if (!answer.empty()) text += fmt::format("    {}) {} ;;\n", command.name, answer);
  }
  return text + "  esac\n";
}

}  // namespace

std::string bash_completion() {
  std::string text = "# bash completion, written by 'tidemark completion bash'; do not edit.\n";
  text += helpers;
  text += beginning;
  text += fmt::format("  if [[ $COMP_CWORD -eq 1 ]]; then _tidemark_words \"{}\"; return; fi\n",
                      commands_text() + " --help --man --version");
  text += bash_value_cases() + bash_option_cases() + bash_operand_cases();
  return text + "}\ncomplete -F _tidemark tidemark\n";
}

}  // namespace tidemark::cli
