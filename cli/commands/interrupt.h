// Ctrl-C in commands that have something to show for the time that was spent.
#pragma once

#include <csignal>

namespace tidemark::cli {

/// While it lives, the first Ctrl-C only asks to stop, and a second one ends the program.
class Interrupt {
 public:
  Interrupt() : before_(std::signal(SIGINT, on_signal)) {}
  ~Interrupt() { std::signal(SIGINT, before_); }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool came() const { return came_ != 0; }

 private:
  static void on_signal(int) {
    came_ = 1;
    std::signal(SIGINT, SIG_DFL);
  }
  static inline volatile std::sig_atomic_t came_ = 0;
  void (*before_)(int);
};

}  // namespace tidemark::cli
