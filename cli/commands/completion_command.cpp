// `tidemark completion SHELL`: prints the script of one of the shells it knows.
#include <fmt/format.h>

#include <algorithm>

#include "base/names.h"
#include "base/quoted.h"
#include "cli/commands/commands.h"
#include "cli/commands/completion.h"

namespace tidemark::cli {

const std::vector<Shell>& shells() {
  static const std::vector<Shell> rows = {
      {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};
  return rows;
}

Result run_completion(const Options& options) {
  if (options.subject.empty())
    throw UsageError(
        fmt::format("no shell (tidemark completion {})", fmt::join(names_of(shells()), ", or ")));
  const auto shell = std::ranges::find(shells(), options.subject, &Shell::name);
  if (shell == shells().end())
    throw UsageError(unknown_name("shell", printable(options.subject), names_of(shells())));
  return {shell->script(), "", ExitCode::Ok};
}

}  // namespace tidemark::cli
