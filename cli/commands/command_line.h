// The command line, parsed: which command, with which options.
#pragma once

#include "cli/commands/commands.h"

namespace tidemark::cli {

struct CommandLine {
  const Command* command = nullptr;  ///< null: `text` is all that was asked for
  Options options;
  std::string text;  ///< of --help, --version or --man
};

/// Throws UsageError, with the nearest name for what is not known.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace tidemark::cli
