// A program of the user's as a child process, which is recorded or captures: it is to run, and to
// end, as if it had been called by itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::cli {

struct Ending {
  int exit_code = 0;
  int signal = 0;  ///< that ended it; 0: it exited
};

/// Where what the program writes to standard output goes.
enum class StandardOutput { AsOurs, ToError };

/// Runs the program with these variables beside those of this process; a signal that only this
/// process gets is passed on. InputError if there is no such program; `remedy` is a part of it.
Ending run_program(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                   StandardOutput output = StandardOutput::AsOurs, std::string_view remedy = {});

/// Ends this process in the same way, for whoever waits for it: by the signal, without a core file.
void end_likewise(const Ending& ending);

}  // namespace tidemark::cli
