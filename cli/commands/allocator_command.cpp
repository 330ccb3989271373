// `tidemark allocator`: runs an allocator script from a file or from standard input.
#include "base/error.h"
#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/text/terminal.h"
#include "simulator/allocator/allocator_script.h"

namespace tidemark::cli {

Result run_allocator(const Options& options) {
  if (options.subject.empty())
    throw UsageError("no script (a file, or - for standard input; tidemark allocator --help)");
  if (options.subject == "-")
    return {allocator::run_allocator_script(read_standard_input(FileKind::AllocatorScript),
                                            "standard input"),
            "", ExitCode::Ok};
  const std::string script = read_file(options.subject, FileKind::AllocatorScript);
  return {allocator::run_allocator_script(script, options.subject), "", ExitCode::Ok};
}

}  // namespace tidemark::cli
