// Ctrl-C while the program works.
#pragma once

#include "tests/cli/program.h"

namespace tidemark {

/// Runs the program and sends it as many Ctrl-C, each once the program is ready for it: it catches
/// SIGINT, number 2, as long as the second bit of SigCgt is set.
inline Outcome interrupted(const std::string& arguments, int times) {
  const std::string script = std::string(TIDEMARK_PROGRAM) + " " + arguments + R"( & pid=$!
    wait_for() { for i in {1..6000}; do
      grep -q "^SigCgt:.*[$1]\$" /proc/$pid/status && return; sleep 0.01; done; }
    wait_for 2367abef; kill -INT $pid
    if [ )" + std::to_string(times) +
                             R"( = 2 ]; then wait_for 014589cd; kill -INT $pid; fi
    wait $pid)";
  return run_command({"/bin/bash", "-c", script});
}

}  // namespace tidemark
