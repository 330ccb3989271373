// A terminal sends Ctrl-C to both processes: this one waits on. What kill sends to this one alone
// is passed on, as a shell script's `exec` would have it.
#include "cli/commands/child_process.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/quoted.h"

extern char** environ;

namespace tidemark::cli {
namespace {

constexpr std::array passed_on = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

volatile std::sig_atomic_t child_process = 0;

extern "C" void tidemark_pass_on(int signal, siginfo_t* info, void*) {
  // Of a process, by kill(); the terminal's own come from the kernel.
  if (child_process != 0 && info->si_code <= 0) ::kill(static_cast<pid_t>(child_process), signal);
}

/// While it lives, signals go to the child; what this process ignores stays ignored, for both.
class PassingOn {
 public:
  PassingOn() {
    for (std::size_t i = 0; i < passed_on.size(); ++i) {
      ::sigaction(passed_on[i], nullptr, &before_[i]);
      if (before_[i].sa_handler == SIG_IGN) continue;
      struct sigaction ours {};
      ours.sa_sigaction = tidemark_pass_on;
      ours.sa_flags = SA_SIGINFO | SA_RESTART;
      ::sigaction(passed_on[i], &ours, nullptr);
    }
  }
  ~PassingOn() {
    child_process = 0;
    for (std::size_t i = 0; i < passed_on.size(); ++i)
      ::sigaction(passed_on[i], &before_[i], nullptr);
  }
  PassingOn(const PassingOn&) = delete;
  PassingOn& operator=(const PassingOn&) = delete;

 private:
  std::array<struct sigaction, passed_on.size()> before_{};
};

/// While it lives, those signals wait: one that comes before this process knows its child is the
/// child's, too.
class Waiting {
 public:
  Waiting() {
    sigset_t all;
    ::sigemptyset(&all);
    for (const int signal : passed_on) ::sigaddset(&all, signal);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~Waiting() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
};

std::vector<char*> pointers_into(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> all = variables;
  for (char** at = environ; *at; ++at) {
    const std::string_view variable(*at);
    const std::string_view key = variable.substr(0, variable.find('=') + 1);
    bool is_replaced = false;
    for (const std::string& other : variables) is_replaced |= other.starts_with(key);
    if (!is_replaced) all.emplace_back(variable);
  }
  return all;
}

// This program ignores SIGPIPE; the child is to have it as it usually is. None of its signals
// waits.
pid_t spawn(std::vector<std::string> words, std::vector<std::string> variables,
            const sigset_t& mask, StandardOutput output, std::string_view remedy) {
  sigset_t usual;
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGPIPE);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (output == StandardOutput::ToError)
    ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int problem = ::posix_spawnp(&child, words.front().c_str(), &actions, &attributes,
                                     pointers_into(words).data(), pointers_into(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (problem != 0)
    throw InputError(fmt::format("cannot run {}: {}{}", tidemark::quoted(words.front()),
                                 std::strerror(problem), remedy));
  return child;
}

}  // namespace

Ending run_program(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                   StandardOutput output, std::string_view remedy) {
  const PassingOn passing_on;
  pid_t child = 0;
  {
    const Waiting waiting;
    child = spawn(words, environment_with(variables), waiting.before(), output, remedy);
    child_process = child;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return {.exit_code = 128 + WTERMSIG(status), .signal = WTERMSIG(status)};
  return {.exit_code = WEXITSTATUS(status), .signal = 0};
}

void end_likewise(const Ending& ending) {
  if (ending.signal == 0) return;
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  std::signal(ending.signal, SIG_DFL);
  std::raise(ending.signal);
}

}  // namespace tidemark::cli
