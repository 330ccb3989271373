// --help, from the tables of commands and options.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/commands/commands.h"

namespace tidemark::cli {

struct ExitCodeRow {
  ExitCode code;
  std::string_view meaning;
};
std::span<const ExitCodeRow> exit_codes();

/// The headings under which options are listed, in order: "step" is "Options of the step".
struct OptionGroup {
  std::string_view name;
  std::string_view title;
};
std::span<const OptionGroup> option_groups();

/// The summary of a command as a sentence.
std::string sentence(std::string_view summary);

std::string version_text();
std::string help_text();
std::string help_text(const Command& command);

}  // namespace tidemark::cli
